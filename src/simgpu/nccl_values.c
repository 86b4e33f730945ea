/*
 * The arithmetic of small collectives, and where its results go. The half types are added up as
 * float and rounded once. Float8 is copied right and reduced to zeros. Owns no state.
 */
#include <stdlib.h>
#include <string.h>

#include "sim_nccl.h"

size_t nccl_type_bytes(int type)
{
	static const unsigned char bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

	return type >= 0 && type < (int)sizeof(bytes) ? bytes[type] : 0;
}

/* ---- the half types ---- */

static float float_of_bits(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint32_t bits_of_float(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float float_of_half(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000) << 16;
	uint32_t exponent = half >> 10 & 31, fraction = half & 1023;

	if (exponent == 31)
		return float_of_bits(sign | 0x7f800000 | fraction << 13);
	if (exponent > 0)
		return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
	float value = (float)fraction / 16777216.0F; /* 2^24 */
	return sign ? -value : value;
}

/* To the nearest, ties to even; `bits` is shifted away. */
static uint32_t round_off(uint32_t value, unsigned bits)
{
	uint32_t half = 1U << (bits - 1);
	uint32_t rest = value & (2 * half - 1), kept = value >> bits;

	return kept + (rest > half || (rest == half && (kept & 1)));
}

static uint16_t half_of_float(float value)
{
	uint32_t bits = bits_of_float(value);
	uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
	uint32_t size = bits & 0x7fffffff;

	if (size > 0x7f800000)
		return sign | 0x7e00;
	if (size >= 0x47800000) /* 65536 and up */
		return sign | 0x7c00;
	if (size >= 0x38800000) /* a carry out of the fraction is right, also into infinity */
		return (uint16_t)(sign | (round_off(size, 13) - (112U << 10)));
	if (size < 0x33000000)
		return sign;
	unsigned exponent = size >> 23;
	return (uint16_t)(sign | round_off((size & 0x7fffff) | 0x800000, 126 - exponent));
}

static float float_of_bfloat(uint16_t value)
{
	return float_of_bits((uint32_t)value << 16);
}

static uint16_t bfloat_of_float(float value)
{
	if (value != value)
		return 0x7fc0;
	return (uint16_t)round_off(bits_of_float(value), 16);
}

/* ---- one function a type ---- */

#define SAME(value) (value)

/* wide: what is added up in */
#define DEFINE_TYPE(name, type, wide, widen, narrow)                                          \
	static wide name##_at(const void *part, size_t i)                                     \
	{                                                                                     \
		return part ? widen(((const type *)part)[i]) : 0;                             \
	}                                                                                     \
	static wide name##_both(wide a, wide b, int operation)                                \
	{                                                                                     \
		switch (operation) {                                                          \
		case NCCL_PROD:                                                               \
			return a * b;                                                         \
		case NCCL_MAX:                                                                \
			return a > b ? a : b;                                                 \
		case NCCL_MIN:                                                                \
			return a < b ? a : b;                                                 \
		default:                                                                      \
			return a + b;                                                         \
		}                                                                             \
	}                                                                                     \
	static void name##_combine(void *to, const void *const *parts, int part_count,        \
				   size_t count, int operation)                               \
	{                                                                                     \
		for (size_t i = 0; i < count; i++) {                                          \
			wide sum = name##_at(parts[0], i);                                    \
			for (int part = 1; part < part_count; part++)                         \
				sum = name##_both(sum, name##_at(parts[part], i), operation); \
			if (operation == NCCL_AVG)                                            \
				sum = sum / (wide)part_count;                                 \
			((type *)to)[i] = (type)narrow(sum);                                  \
		}                                                                             \
	}                                                                                     \
	static void name##_scale(void *contents, size_t count, double factor)                 \
	{                                                                                     \
		for (size_t i = 0; i < count; i++) {                                          \
			wide scaled = (wide)((double)name##_at(contents, i) * factor);        \
			((type *)contents)[i] = (type)narrow(scaled);                         \
		}                                                                             \
	}                                                                                     \
	static double name##_number(const void *contents)                                     \
	{                                                                                     \
		return (double)name##_at(contents, 0);                                        \
	}

DEFINE_TYPE(int8, int8_t, int64_t, SAME, SAME)
DEFINE_TYPE(uint8, uint8_t, uint64_t, SAME, SAME)
DEFINE_TYPE(int32, int32_t, int64_t, SAME, SAME)
DEFINE_TYPE(uint32, uint32_t, uint64_t, SAME, SAME)
DEFINE_TYPE(int64, int64_t, int64_t, SAME, SAME)
DEFINE_TYPE(uint64, uint64_t, uint64_t, SAME, SAME)
DEFINE_TYPE(float16, uint16_t, float, float_of_half, half_of_float)
DEFINE_TYPE(float32, float, float, SAME, SAME)
DEFINE_TYPE(float64, double, double, SAME, SAME)
DEFINE_TYPE(bfloat16, uint16_t, float, float_of_bfloat, bfloat_of_float)

static const struct {
	void (*combine)(void *, const void *const *, int, size_t, int);
	void (*scale)(void *, size_t, double);
	double (*number)(const void *);
} types[] = {
#define ROW(id, name) [id] = {name##_combine, name##_scale, name##_number}
	ROW(NCCL_INT8, int8),         ROW(NCCL_UINT8, uint8),     ROW(NCCL_INT32, int32),
	ROW(NCCL_UINT32, uint32),     ROW(NCCL_INT64, int64),     ROW(NCCL_UINT64, uint64),
	ROW(NCCL_FLOAT16, float16),   ROW(NCCL_FLOAT32, float32), ROW(NCCL_FLOAT64, float64),
	ROW(NCCL_BFLOAT16, bfloat16),
#undef ROW
};

static bool is_known(int type)
{
	return type >= 0 && type <= NCCL_BFLOAT16;
}

void nccl_combine(void *to, const void *const *parts, int part_count, size_t count, int type,
		  int operation)
{
	if (is_known(type))
		types[type].combine(to, parts, part_count, count, operation);
	else
		memset(to, 0, count * nccl_type_bytes(type));
}

void nccl_scale(void *contents, size_t count, int type, double factor)
{
	if (is_known(type))
		types[type].scale(contents, count, factor);
}

double nccl_number(const void *contents, int type)
{
	return is_known(type) ? types[type].number(contents) : 1;
}

/* ---- delivery ---- */

static void put(void *to, const void *contents, size_t bytes)
{
	const struct sim_gate_table *gates = nccl_gates();

	if (gates == NULL || bytes == 0)
		return;
	if (contents != NULL)
		gates->write((uintptr_t)to, contents, bytes);
	else
		gates->forget((uintptr_t)to, bytes);
}

static bool is_any(const void *const *parts, int part_count)
{
	for (int i = 0; i < part_count; i++) {
		if (parts[i] != NULL)
			return true;
	}
	return false;
}

static const void *behind(const void *part, size_t bytes)
{
	return part ? (const char *)part + bytes : NULL;
}

/* The elements of the parts from `offset` on. */
static void put_combined(const struct nccl_work *work, const void *const *parts, size_t offset)
{
	const struct nccl_message *message = &work->message;
	int part_count = work->comm->rank_count;
	const void *shifted[part_count];
	size_t bytes = work->receive_bytes;
	void *result = is_any(parts, part_count) ? malloc(bytes) : NULL;

	for (int i = 0; i < part_count; i++)
		shifted[i] = behind(parts[i], offset);
	if (result != NULL)
		nccl_combine(result, shifted, part_count, message->count, message->type,
			     message->operation);
	put(work->receive, result, bytes);
	free(result);
}

/* Every rank's part, from `offset` of it on, one behind the other. */
static void put_all(const struct nccl_work *work, const void *const *parts, size_t offset)
{
	size_t bytes = work->message.count * nccl_type_bytes(work->message.type);

	for (int i = 0; i < work->comm->rank_count; i++)
		put((char *)work->receive + (size_t)i * bytes, behind(parts[i], offset), bytes);
}

void nccl_deliver(const struct nccl_work *work, const void *const *parts)
{
	const struct nccl_message *message = &work->message;
	size_t own = (size_t)work->comm->rank * message->count * nccl_type_bytes(message->type);

	if (work->receive_bytes == 0)
		return;
	switch (message->kind) {
	case NCCL_ALL_REDUCE:
	case NCCL_REDUCE:
		put_combined(work, parts, 0);
		break;
	case NCCL_REDUCE_SCATTER:
		put_combined(work, parts, own);
		break;
	case NCCL_BROADCAST:
		put(work->receive, parts[message->peer], work->receive_bytes);
		break;
	case NCCL_SCATTER:
		put(work->receive, behind(parts[message->peer], own), work->receive_bytes);
		break;
	case NCCL_ALL_TO_ALL:
		put_all(work, parts, own);
		break;
	case NCCL_RECEIVE:
		put(work->receive, parts[0], work->receive_bytes);
		break;
	default: /* gathers */
		put_all(work, parts, 0);
		break;
	}
}
