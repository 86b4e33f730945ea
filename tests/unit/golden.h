/* Text compared literally with a file of tests/golden/. MEMTRACE_UPDATE_GOLDEN=1 writes the file
 * anew instead: then read what changed. Tests run in the root of the tree. */
#ifndef TEST_GOLDEN_H
#define TEST_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define GOLDEN_BYTES_MAX 65536

static void golden_path(char path[256], const char *name)
{
	snprintf(path, 256, "tests/golden/report/%s", name);
}

static void golden_write(const char *path, const struct text *text)
{
	FILE *file = fopen(path, "w");
	if (!file)
		fail_msg("%s cannot be written", path);
	fwrite(text->data, 1, text->used_bytes, file);
	fclose(file);
}

static void assert_golden(struct text *text, const char *name)
{
	static char expected[GOLDEN_BYTES_MAX];
	char path[256];
	golden_path(path, name);
	if (getenv("MEMTRACE_UPDATE_GOLDEN"))
		golden_write(path, text);
	FILE *file = fopen(path, "r");
	if (!file)
		fail_msg("%s is missing", path);
	expected[fread(expected, 1, sizeof expected - 1, file)] = 0;
	fclose(file);
	assert_string_equal(text_string(text), expected);
	assert_false(text_failed(text));
}

/* Columns of the longest line, and the number of lines. */
static inline size_t text_columns(const struct text *text)
{
	size_t column = 0, longest = 0;
	for (size_t i = 0; i < text->used_bytes; i++) {
		column = text->data[i] == '\n' ? 0 : column + ((text->data[i] & 0xc0) != 0x80);
		longest = column > longest ? column : longest;
	}
	return longest;
}

static inline size_t text_lines(const struct text *text)
{
	size_t lines = 0;
	for (size_t i = 0; i < text->used_bytes; i++)
		lines += text->data[i] == '\n';
	return lines;
}

#endif
