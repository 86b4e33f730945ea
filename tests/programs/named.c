/* Allocates from functions whose names and lines are known: static ones, one inlined into another.
 *   named        ends as usual
 *   named kill   kills itself: nothing can be stored at the end */
#include <signal.h>
#include <string.h>

#include "take.h"

#define NOINLINE __attribute__((noinline))

static inline __attribute__((always_inline)) CUdeviceptr inlined(size_t bytes)
{
	return take(bytes); /* line: inlined */
}

static NOINLINE CUdeviceptr innermost(size_t bytes)
{
	CUdeviceptr address = inlined(bytes); /* line: innermost */
	__asm__ volatile("" ::: "memory");    /* no tail call */
	return address;
}

static NOINLINE CUdeviceptr middle(size_t bytes)
{
	CUdeviceptr address = innermost(bytes); /* line: middle */
	__asm__ volatile("" ::: "memory");
	return address;
}

int main(int count, char **arguments)
{
	CUdeviceptr address = middle(3 << 20); /* line: main */
	if (count > 1 && !strcmp(arguments[1], "kill"))
		raise(SIGKILL);
	give(address);
	return 0;
}
