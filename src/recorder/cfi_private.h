/* What cfi_find.c (a function's description) and cfi.c (its program) share: the reading of numbers, bounded. */
#ifndef MT_RECORDER_CFI_PRIVATE_H
#define MT_RECORDER_CFI_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const uint8_t *at, *end;
};

static inline uint64_t read_uleb(struct reader *reader)
{
	uint64_t value = 0;
	for (unsigned shift = 0; reader->at < reader->end && shift < 64; shift += 7) {
		uint8_t byte = *reader->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

static inline int64_t read_sleb(struct reader *reader)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte = 0;
	do {
		if (reader->at >= reader->end)
			break;
		byte = *reader->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 64);
	if (shift < 64 && byte & 0x40)
		value |= ~UINT64_C(0) << shift;
	return (int64_t)value;
}

static inline uint64_t read_fixed(struct reader *reader, unsigned bytes)
{
	uint64_t value = 0;
	if (reader->end - reader->at < (ptrdiff_t)bytes) {
		reader->at = reader->end;
		return 0;
	}
	memcpy(&value, reader->at, bytes);
	reader->at += bytes;
	return value;
}

#define ENCODING_RELATIVE 0x10 /* to where the value stands */

/* DW_EH_PE_*: the low nibble is the form. */
static inline uint64_t read_encoded(struct reader *reader, unsigned encoding)
{
	uint64_t here = (uint64_t)(uintptr_t)reader->at, value;
	switch (encoding & 15) {
	case 1: value = read_uleb(reader); break;
	case 2: value = read_fixed(reader, 2); break;
	case 3: value = read_fixed(reader, 4); break;
	case 9: value = (uint64_t)read_sleb(reader); break;
	case 10: value = (uint64_t)(int16_t)read_fixed(reader, 2); break;
	case 11: value = (uint64_t)(int32_t)read_fixed(reader, 4); break;
	default: value = read_fixed(reader, 8); break;
	}
	return (encoding & 0x70) == ENCODING_RELATIVE ? value + here : value;
}

struct description {
	uintptr_t start, end;          /* of the function */
	struct reader common, own;     /* programs */
	int64_t code_factor, data_factor;
	unsigned encoding;
	bool is_signal;
};

/* Finds the description of the function that contains `pc`. */
bool cfi_describe(struct description *, uintptr_t pc);

#endif
