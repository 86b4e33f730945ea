/* A library that allocates 6000 bytes when it is told to and frees them when the process ends, in
 * its destructor, as C++ libraries do with their static objects. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
void frees_take(void);

static uint64_t held;

void frees_take(void)
{
	cuMemAlloc_v2(&held, 6000);
}

__attribute__((destructor)) static void give_back(void)
{
	if (held)
		cuMemFree_v2(held);
}
