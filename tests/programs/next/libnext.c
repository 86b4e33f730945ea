/* Another library for LD_PRELOAD that stands between the program and CUDA: it makes each allocation
 * 64 bytes larger and goes on by RTLD_NEXT, asked for anew at each call. At its end it says on
 * stderr how often it was called. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int cuMemAlloc_v2(uint64_t *address, size_t bytes);

static unsigned calls;

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	int (*next)(uint64_t *, size_t) = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	calls++;
	return next ? next(address, bytes + 64) : 999;
}

__attribute__((destructor)) static void tell(void)
{
	dprintf(2, "next: %u calls\n", calls);
}
