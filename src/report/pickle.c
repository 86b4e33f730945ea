/* Owns the bytes of the pickle format. Knows nothing of what they mean, keeps no value that it has written. No
 * malloc or stdio: see summary.c. */
#include "report/pickle.h"

#include <string.h>

#define OPERATION_BYTES 9 /* at most, with its argument */
#define BATCH		1000 /* items that a reader in JavaScript takes at once */

static void flush(struct pickle *pickle)
{
	if (!pickle->error)
		pickle->error =
			pickle->take(pickle->context, pickle->buffer, pickle->used_bytes, pickle->offset);
	pickle->offset += pickle->used_bytes;
	pickle->used_bytes = 0;
}

static void add(struct pickle *pickle, const void *data, size_t bytes)
{
	while (bytes && !pickle->error) {
		size_t room = sizeof pickle->buffer - pickle->used_bytes;
		size_t part = bytes < room ? bytes : room;
		memcpy(pickle->buffer + pickle->used_bytes, data, part);
		pickle->used_bytes += part;
		data = (const char *)data + part;
		bytes -= part;
		if (pickle->used_bytes == sizeof pickle->buffer)
			flush(pickle);
	}
}

/* An operation, and its argument: the low `bytes` of a number, least significant first. */
static void operate(struct pickle *pickle, uint8_t code, uint64_t number, size_t bytes)
{
	if (sizeof pickle->buffer - pickle->used_bytes < OPERATION_BYTES)
		flush(pickle);
	uint8_t *out = pickle->buffer + pickle->used_bytes;
	*out++ = code;
	for (size_t i = 0; i < bytes; i++)
		*out++ = (uint8_t)(number >> 8 * i);
	pickle->used_bytes += 1 + bytes;
}

void pickle_begin(struct pickle *pickle, pickle_take *take, void *context)
{
	pickle->take = take;
	pickle->context = context;
	pickle->offset = 0;
	pickle->memo_count = 0;
	pickle->error = 0;
	pickle->used_bytes = 0;
	operate(pickle, 0x80, 2, 1);
}

int pickle_end(struct pickle *pickle)
{
	operate(pickle, '.', 0, 0);
	flush(pickle);
	return pickle->error;
}

void pickle_dict(struct pickle *pickle)
{
	add(pickle, "}(", 2);
}

void pickle_dict_end(struct pickle *pickle)
{
	operate(pickle, 'u', 0, 0);
}

void pickle_list(struct pickle *pickle, struct pickle_list *list)
{
	list->item_count = 0;
	operate(pickle, ']', 0, 0);
}

void pickle_item(struct pickle *pickle, struct pickle_list *list)
{
	if (list->item_count % BATCH == 0) {
		pickle_list_end(pickle, list);
		operate(pickle, '(', 0, 0);
	}
	list->item_count++;
}

void pickle_list_end(struct pickle *pickle, struct pickle_list *list)
{
	if (list->item_count)
		operate(pickle, 'e', 0, 0);
}

void pickle_integer(struct pickle *pickle, uint64_t value)
{
	if (value <= UINT8_MAX) {
		operate(pickle, 'K', value, 1);
	} else if (value <= UINT16_MAX) {
		operate(pickle, 'M', value, 2);
	} else if (value <= INT32_MAX) {
		operate(pickle, 'J', value, 4);
	} else {
		operate(pickle, 0x8a, 8, 1);
		uint64_t last = value <= INT64_MAX ? value : INT64_MAX;
		operate(pickle, (uint8_t)last, last >> 8, 7);
	}
}

void pickle_bool(struct pickle *pickle, bool value)
{
	operate(pickle, value ? 0x88 : 0x89, 0, 0);
}

void pickle_real(struct pickle *pickle, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	operate(pickle, 'G', __builtin_bswap64(bits), 8);
}

void pickle_text(struct pickle *pickle, const char *utf8, size_t bytes)
{
	operate(pickle, 'X', bytes, 4);
	add(pickle, utf8, bytes);
}

void pickle_pair(struct pickle *pickle)
{
	operate(pickle, 0x86, 0, 0);
}

uint32_t pickle_keep(struct pickle *pickle)
{
	operate(pickle, 'r', pickle->memo_count, 4);
	return pickle->memo_count++;
}

void pickle_again(struct pickle *pickle, uint32_t kept)
{
	if (kept <= UINT8_MAX)
		operate(pickle, 'h', kept, 1);
	else
		operate(pickle, 'j', kept, 4);
}
