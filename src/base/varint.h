/* LEB128 and zigzag, as <memtrace/trace.h> defines them; bounds-checked on reading. */
#ifndef MT_BASE_VARINT_H
#define MT_BASE_VARINT_H

#include <stdint.h>

#define VARINT_BYTES_MAX 10

static inline uint64_t zigzag(int64_t n)
{
	return ((uint64_t)n << 1) ^ (uint64_t)(n >> 63);
}

static inline int64_t unzigzag(uint64_t n)
{
	return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

static inline uint8_t *varint_put(uint8_t *at, uint64_t n)
{
	while (n >= 0x80) {
		*at++ = (uint8_t)(n | 0x80);
		n >>= 7;
	}
	*at++ = (uint8_t)n;
	return at;
}

/* The byte after the number, or NULL when it is cut off or longer than VARINT_BYTES_MAX. */
static inline const uint8_t *varint_get(const uint8_t *at, const uint8_t *end, uint64_t *n)
{
	uint64_t value = 0;
	for (unsigned shift = 0; at < end && shift < 70; shift += 7) {
		uint8_t byte = *at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*n = value;
			return at;
		}
	}
	return 0;
}

#endif
