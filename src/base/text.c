/* A growing text. Owns: the memory of the text, and what fits into it. Must never call malloc:
 * reports are written inside the traced program, whose malloc may be broken or locked. Growth fails
 * quietly and for good (text_failed): nothing is added after a hole. */
#define _GNU_SOURCE
#include "base/text.h"
#include "base/text_private.h"

#include <string.h>
#include <sys/mman.h>

#define FIRST_BYTES 4096

void text_init(struct text *text)
{
	*text = (struct text){0};
}

void text_init_fixed(struct text *text, char *buffer, size_t bytes)
{
	*text = (struct text){.data = buffer, .capacity_bytes = bytes, .fixed = true};
}

void text_release(struct text *text)
{
	if (!text->fixed && text->data)
		munmap(text->data, text->capacity_bytes);
	*text = (struct text){0};
}

/* Room for `bytes` more and a terminating zero. */
static bool has_room(const struct text *text, size_t bytes)
{
	return text->capacity_bytes && bytes <= text->capacity_bytes - 1 - text->used_bytes;
}

static bool grow(struct text *text, size_t bytes)
{
	size_t wanted = text->capacity_bytes ? text->capacity_bytes * 2 : FIRST_BYTES;
	if (bytes > PTRDIFF_MAX / 4 || wanted > PTRDIFF_MAX / 2)
		return false;
	while (wanted - 1 - text->used_bytes < bytes)
		wanted *= 2;
	void *data = text->data ? mremap(text->data, text->capacity_bytes, wanted, MREMAP_MAYMOVE)
				: mmap(0, wanted, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED)
		return false;
	text->data = data;
	text->capacity_bytes = wanted;
	return true;
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* What still fits of a fixed text, without half a character at its end. */
static void add_cut(struct text *text, const char *data)
{
	if (!text->fixed || !text->capacity_bytes)
		return;
	size_t bytes = text->capacity_bytes - 1 - text->used_bytes;
	while (bytes && is_continuation(data[bytes]))
		bytes--;
	memcpy(text->data + text->used_bytes, data, bytes);
	text->used_bytes += bytes;
}

void text_add_bytes(struct text *text, const void *data, size_t bytes)
{
	if (text->failed || !bytes)
		return;
	if (!has_room(text, bytes) && (text->fixed || !grow(text, bytes))) {
		text->failed = true;
		add_cut(text, data);
		return;
	}
	memcpy(text->data + text->used_bytes, data, bytes);
	text->used_bytes += bytes;
}

void text_add(struct text *text, const char *string)
{
	text_add_bytes(text, string, strlen(string));
}

void text_add_char(struct text *text, char c)
{
	text_add_bytes(text, &c, 1);
}

void text_add_repeated(struct text *text, char c, size_t count)
{
	char block[32];
	memset(block, c, sizeof block);
	for (; count && !text->failed; count -= count < sizeof block ? count : sizeof block)
		text_add_bytes(text, block, count < sizeof block ? count : sizeof block);
}

void text_pad_to(struct text *text, size_t column)
{
	size_t now = 0;
	for (size_t i = text->used_bytes; i > 0 && text->data[i - 1] != '\n'; i--)
		now += !is_continuation(text->data[i - 1]);
	if (now < column)
		text_add_repeated(text, ' ', column - now);
}

const char *text_string(struct text *text)
{
	if (!has_room(text, 0) && (text->fixed || !grow(text, 0))) {
		text->failed = true;
		return "";
	}
	text->data[text->used_bytes] = 0;
	return text->data;
}

bool text_failed(const struct text *text)
{
	return text->failed;
}
