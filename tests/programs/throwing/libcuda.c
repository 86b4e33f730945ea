/* A driver whose cuMemAlloc of one byte calls back into the program, which may leave the call by
 * other ways than a return. Other sizes succeed. */
#include <stddef.h>
#include <stdint.h>

int cuInit(unsigned flags);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);

void (*throwing_callback)(void);

int cuInit(unsigned flags)
{
	(void)flags;
	return 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	static uint64_t next = 0x700000000000;
	if (bytes == 1 && throwing_callback)
		throwing_callback();
	*address = next += 1 << 20;
	return 0;
}

int cuMemFree_v2(uint64_t address)
{
	(void)address;
	return 0;
}
