/* The checksum of <memtrace/trace.h>, the one definition of it: writer and reader both take this.
 */
#ifndef MT_BASE_HASH_H
#define MT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CHECKSUM_FACTOR 0x9E3779B97F4A7C15ull

static inline uint64_t checksum_word(uint64_t h, uint64_t word)
{
	h = (h ^ word) * CHECKSUM_FACTOR;
	return h ^ h >> 32;
}

/* Goes on from `h`. Of a chunk: first its struct with checksum = 0, from h = sizeof the struct,
 * then the stored bytes from what that gave. */
static inline uint64_t memtrace_checksum(uint64_t h, const void *data, size_t bytes)
{
	const unsigned char *at = data;
	uint64_t word;
	for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
		memcpy(&word, at, sizeof word);
		h = checksum_word(h, word);
	}
	if (bytes) {
		word = 0;
		memcpy(&word, at, bytes);
		h = checksum_word(h, word);
	}
	return h;
}

#endif
