/* Owns the reading of names and lines from code objects, at first sight of a frame. It must never
 * call Python: strings are copied from where they lie, line tables are decoded here. */
#include <string.h>

#include "recorder/python.h"
#include "recorder/python_private.h"

#define CODE_UNIT_BYTES 2

/* ---------- texts ---------- */

/* Bytes of a file name that are no UTF-8 are in Python the characters U+DC80 to U+DCFF: here bytes
 * again. */
static unsigned put_utf8(char *at, uint32_t c)
{
	static const unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
	bool is_byte = c >= 0xDC80 && c <= 0xDCFF;
	if (c < 0x80 || is_byte) {
		at[0] = (char)(c & 0xff);
		return 1;
	}
	unsigned extra = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	for (unsigned i = extra; i; i--) {
		at[i] = (char)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	at[0] = (char)(lead[extra] | c);
	return extra + 1;
}

static uint32_t character(const struct python_text *text, size_t index)
{
	switch (text->kind) {
	case 1:
		return ((const uint8_t *)text->data)[index];
	case 2:
		return ((const uint16_t *)(const void *)text->data)[index];
	default:
		return ((const uint32_t *)(const void *)text->data)[index];
	}
}

static void copy_text(const struct python_layout *layout, uintptr_t object, char *buffer,
		      size_t bytes)
{
	size_t used = 0;
	strcpy(buffer, "?");
	if (!python_is_a(object, python.text_type, PYTHON_IS_TEXT))
		return;
	struct python_text text = python_text(layout, object);
	for (size_t i = 0; i < text.length && used + 5 < bytes; i++)
		used += put_utf8(buffer + used, character(&text, i));
	buffer[used] = 0;
}

/* ---------- lines ---------- */

struct line_table {
	const uint8_t *at, *end;
	int32_t first_line;
};

static int32_t line_in_lnotab(struct line_table table, int32_t lasti)
{
	int32_t line = table.first_line, address = 0;
	for (; table.end - table.at >= 2; table.at += 2) {
		address += table.at[0];
		if (address > lasti)
			break;
		line += (int8_t)table.at[1];
	}
	return line;
}

#define LINE_OF_NO_SOURCE (-128)

static int32_t line_in_pep626(struct line_table table, int32_t lasti)
{
	int32_t line = table.first_line, end = 0;
	if (lasti < 0)
		return line;
	for (; table.end - table.at >= 2; table.at += 2) {
		int8_t delta = (int8_t)table.at[1];
		end += table.at[0];
		if (delta != LINE_OF_NO_SOURCE)
			line += delta;
		if (lasti < end)
			return delta == LINE_OF_NO_SOURCE ? -1 : line;
	}
	return -1;
}

#define LOCATION_NONE       15 /* codes of the location table, PEP 657 */
#define LOCATION_LONG       14
#define LOCATION_NO_COLUMNS 13
#define LOCATION_ONE_LINE   10 /* 10, 11, 12: 0, 1 or 2 lines on */

static int32_t signed_varint(const uint8_t *at, const uint8_t *end)
{
	uint32_t value = 0;
	for (unsigned shift = 0; at < end && shift < 32; shift += 6) {
		uint8_t byte = *at++;
		value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

static int32_t line_delta(unsigned code, const uint8_t *at, const uint8_t *end)
{
	if (code == LOCATION_LONG || code == LOCATION_NO_COLUMNS)
		return signed_varint(at, end);
	return code >= LOCATION_ONE_LINE && code < LOCATION_NO_COLUMNS
		       ? (int32_t)code - LOCATION_ONE_LINE
		       : 0;
}

/* Entries begin with a byte whose top bit is set: code in bits 3 to 6, code units - 1 in bits 0
 * to 2. */
static int32_t line_in_pep657(struct line_table table, int32_t lasti)
{
	int32_t line = table.first_line, offset = 0;
	const uint8_t *at = table.at;
	if (lasti < 0)
		return line;
	while (at < table.end) {
		uint8_t entry = *at++;
		unsigned code = entry >> 3 & 15;
		line += line_delta(code, at, table.end);
		offset += ((entry & 7) + 1) * CODE_UNIT_BYTES;
		if (lasti < offset)
			return code == LOCATION_NONE ? -1 : line;
		while (at < table.end && !(*at & 0x80))
			at++;
	}
	return -1;
}

static int32_t line_of(const struct python_layout *layout, uintptr_t code, int32_t lasti)
{
	uintptr_t bytes = load_pointer(code, layout->code_lines);
	struct line_table table = {.first_line = load_int(code, layout->code_first_line)};
	if (!python_is_a(bytes, python.bytes_type, PYTHON_IS_BYTES))
		return -1;
	table.at = (const uint8_t *)bytes + layout->bytes_data;
	table.end = table.at + load_pointer(bytes, layout->bytes_size);
	switch (layout->lines) {
	case PYTHON_LINES_LNOTAB:
		return line_in_lnotab(table, lasti);
	case PYTHON_LINES_PEP626:
		return line_in_pep626(table, lasti);
	default:
		return line_in_pep657(table, lasti);
	}
}

/* Before its first traceable instruction a frame is incomplete, or it is the clean-up frame that
 * the interpreter pushes under __init__ (3.13 on): `traceback` shows neither. */
static bool is_hidden(const struct python_layout *layout, const struct python_frame *frame)
{
	if (layout->code_first_traceable == PYTHON_ABSENT || (frame->flags & PYTHON_GENERATOR))
		return false;
	return frame->lasti < load_int(frame->code, layout->code_first_traceable) * CODE_UNIT_BYTES;
}

/* The hook of a dry run (src/simgpu/python) stands between the program and every operator. */
static bool is_of_dry_run(const char *file)
{
	static const char hook[] = "libmemtrace-sim/python/sitecustomize.py";
	size_t bytes = strlen(file), hook_bytes = sizeof hook - 1;
	return bytes >= hook_bytes && !memcmp(file + bytes - hook_bytes, hook, hook_bytes);
}

bool python_describe(const struct python_frame *frame, struct python_source *source)
{
	const struct python_layout *layout = python.layout;
	uintptr_t code = frame->code;
	if (!python_has_type(code, python.code_type))
		return false;
	copy_text(layout, load_pointer(code, layout->code_file), source->file, sizeof source->file);
	copy_text(layout, load_pointer(code, python_name_offset(layout)), source->function,
		  sizeof source->function);
	source->is_hidden = is_hidden(layout, frame) || is_of_dry_run(source->file);
	source->line = line_of(layout, code, frame->lasti);
	return true;
}
