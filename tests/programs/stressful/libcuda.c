/* A driver for many threads: addresses are never used twice, more than STRESSFUL_MUCH bytes are refused, and a call
 * for one byte is left by whatever the calling thread's callback does. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define STRESSFUL_MUCH ((size_t)1 << 40)

int cuInit(unsigned flags);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);

extern __thread void (*stressful_callback)(void);
__thread void (*stressful_callback)(void);

static atomic_ullong next = 0x700000000000;

int cuInit(unsigned flags)
{
	(void)flags;
	return 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	if (bytes > STRESSFUL_MUCH)
		return 2;
	if (bytes == 1 && stressful_callback)
		stressful_callback();
	*address = atomic_fetch_add(&next, 4096);
	return 0;
}

int cuMemFree_v2(uint64_t address)
{
	return address ? 0 : 1;
}
