/* Reading and writing a state by tables of fields. Owns the encoding of numbers and the checks of what
 * is read; no memory and no I/O: those are the caller's turn(). Must never give a value that its field
 * does not allow. */
#include "base/archive.h"

#include <errno.h>
#include <string.h>

#define VARINT_BYTES_MAX 10

void archive_fail(struct archive *archive, int error)
{
	if (!archive->error)
		archive->error = error;
}

/* True when there is room for a byte, or one to be read. */
static bool is_ready(struct archive *archive)
{
	if (!archive->error && archive->at == archive->end)
		archive_fail(archive, archive->turn(archive));
	if (!archive->error && archive->at == archive->end)
		archive_fail(archive, archive->is_loading ? -ENODATA : -ENOSPC);
	return !archive->error;
}

static void put_byte(struct archive *archive, uint8_t byte)
{
	if (is_ready(archive))
		*archive->at++ = byte;
}

static void put_number(struct archive *archive, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put_byte(archive, (uint8_t)(value | 0x80));
	put_byte(archive, (uint8_t)value);
}

static uint64_t get_number(struct archive *archive)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < VARINT_BYTES_MAX && is_ready(archive); i++) {
		uint8_t byte = *archive->at++;
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			return value;
	}
	archive_fail(archive, -EINVAL);
	return 0;
}

void archive_number(struct archive *archive, uint64_t *value)
{
	if (archive->is_loading)
		*value = get_number(archive);
	else
		put_number(archive, *value);
}

void archive_number_below(struct archive *archive, uint64_t *value, uint64_t limit)
{
	archive_number(archive, value);
	if (!archive->is_loading || *value < limit)
		return;
	archive_fail(archive, -EINVAL);
	*value = 0;
}

void archive_bool(struct archive *archive, bool *value)
{
	uint64_t number = *value;
	archive_number_below(archive, &number, 2);
	*value = number;
}

void archive_bytes(struct archive *archive, void *bytes, size_t count)
{
	uint8_t *at = bytes;
	for (size_t i = 0; i < count; i++) {
		if (!archive->is_loading)
			put_byte(archive, at[i]);
		else
			at[i] = is_ready(archive) ? *archive->at++ : 0;
	}
}

/* ---------- fields ---------- */

static uint64_t checked(struct archive *archive, const struct field *field, uint64_t value)
{
	uint64_t largest = field->bytes == 8 ? UINT64_MAX : (UINT64_C(1) << field->bytes * 8) - 1;
	uint64_t limit = field->limit;
	if (value > largest)
		archive_fail(archive, -EINVAL);
	if (limit > UINT64_MAX - ARCHIVE_BOUNDS) {
		if (value >= archive->bounds[UINT64_MAX - limit])
			return 0;
	} else if (limit > UINT64_MAX - 2 * ARCHIVE_BOUNDS) {
		limit = archive->bounds[UINT64_MAX - ARCHIVE_BOUNDS - limit];
		if (value >= limit)
			archive_fail(archive, -EINVAL);
	} else if (limit && value >= limit) {
		archive_fail(archive, -EINVAL);
	}
	return archive->error ? 0 : value;
}

static uint64_t load(const void *at, unsigned bytes)
{
	uint64_t value = 0;
	memcpy(&value, at, bytes); /* little-endian */
	return value;
}

void archive_fields(struct archive *archive, void *object, const struct field *field)
{
	for (; field->bytes; field++) {
		char *at = (char *)object + field->offset;
		for (uint32_t i = 0; i < field->count; i++, at += field->bytes) {
			if (!archive->is_loading) {
				put_number(archive, load(at, field->bytes));
				continue;
			}
			uint64_t value = checked(archive, field, get_number(archive));
			memcpy(at, &value, field->bytes);
		}
	}
}
