/* Allocations for programs that are not about allocating: a failure ends the program with status 9.
 */
#ifndef TESTS_TAKE_H
#define TESTS_TAKE_H

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static inline CUdeviceptr take(size_t bytes)
{
	CUdeviceptr address = 0;
	if (!cuMemAlloc(&address, bytes))
		return address;
	fprintf(stderr, "cannot allocate %zu bytes\n", bytes);
	exit(9);
}

static inline void give(CUdeviceptr address)
{
	if (!cuMemFree(address))
		return;
	fprintf(stderr, "cannot free\n");
	exit(9);
}

#endif
