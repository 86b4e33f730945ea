/* The arithmetic of sizes. */
#ifndef MT_BASE_BYTES_H
#define MT_BASE_BYTES_H

#include <stdint.h>

static inline uint64_t bytes_larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t bytes_smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* 0 where more is taken than there is. */
static inline uint64_t bytes_less(uint64_t bytes, uint64_t part)
{
	return bytes > part ? bytes - part : 0;
}

static inline void bytes_raise(uint64_t *highest, uint64_t bytes)
{
	*highest = bytes_larger(*highest, bytes);
}

#endif
