/* Untrusted bytes in texts for people and in JSON. Owns: what counts as printable UTF-8. Must never
 * let through a byte that a terminal or a JSON parser would act upon: names, paths and arguments in
 * a trace may come from anyone. Besides control bytes and invalid UTF-8, the C1 controls and the
 * characters that turn the direction of writing round are escaped for people: with them a line can
 * show what it does not say. */
#include <string.h>

#include "base/text.h"

static const char hex_digits[] = "0123456789abcdef";

/* How long a character is that begins with this byte, 0 if none can. */
static size_t lead_bytes(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead >= 0xf5)
		return 0;
	return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* Length of the valid UTF-8 character at `at`, 0 if there is none. */
static size_t character_bytes(const unsigned char *at, size_t bytes, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = lead_bytes(*at);
	if (!length || length > bytes)
		return 0;
	*code = length == 1 ? *at : *at & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (at[i] & 0x3f);
	}
	bool is_surrogate = *code >= 0xd800 && *code < 0xe000;
	return *code < least[length] || *code > 0x10ffff || is_surrogate ? 0 : length;
}

static bool is_printable(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code < 0xa0))
		return false;
	bool is_mark = code == 0x200e || code == 0x200f || code == 0x061c; /* of direction */
	bool is_separator = code == 0x2028 || code == 0x2029;
	bool is_override = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
	return !is_mark && !is_separator && !is_override;
}

static void add_hex(struct text *text, const char *prefix, unsigned char byte)
{
	text_add(text, prefix);
	text_add_char(text, hex_digits[byte >> 4]);
	text_add_char(text, hex_digits[byte & 15]);
}

void text_add_escaped_bytes(struct text *text, const void *data, size_t bytes)
{
	const unsigned char *at = data, *end = at + bytes, *plain = at;
	while (at < end) {
		uint32_t code;
		size_t length = character_bytes(at, (size_t)(end - at), &code);
		if (length && is_printable(code)) {
			at += length;
			continue;
		}
		text_add_bytes(text, plain, (size_t)(at - plain));
		for (size_t i = 0; i < (length ? length : 1); i++)
			add_hex(text, "\\x", at[i]);
		at += length ? length : 1;
		plain = at;
	}
	text_add_bytes(text, plain, (size_t)(end - plain));
}

bool text_is_printable(const char *string)
{
	const unsigned char *at = (const void *)string, *end = at + strlen(string);
	uint32_t code;
	for (size_t length; at < end; at += length) {
		length = character_bytes(at, (size_t)(end - at), &code);
		if (!length || !is_printable(code))
			return false;
	}
	return true;
}

void text_add_escaped(struct text *text, const char *string)
{
	text_add_escaped_bytes(text, string, strlen(string));
}

/* A character that may not stand for itself. None of those is longer than four hexadecimal digits. */
static void add_json_special(struct text *text, uint32_t code)
{
	static const char names[][2] = {"\"\"", "\\\\", "\nn", "\tt", "\rr"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (code == (unsigned char)names[i][0]) {
			text_add_char(text, '\\');
			text_add_char(text, names[i][1]);
			return;
		}
	}
	add_hex(text, "\\u", (unsigned char)(code >> 8));
	add_hex(text, "", (unsigned char)code);
}

void text_add_json(struct text *text, const char *string)
{
	const unsigned char *at = (const void *)string, *end = at + strlen(string), *plain = at;
	text_add_char(text, '"');
	while (at < end) {
		uint32_t code;
		size_t length = character_bytes(at, (size_t)(end - at), &code);
		if (length && is_printable(code) && code != '"' && code != '\\') {
			at += length;
			continue;
		}
		text_add_bytes(text, plain, (size_t)(at - plain));
		if (length)
			add_json_special(text, code);
		else
			add_hex(text, "\\\\x", *at); /* a byte that is no UTF-8 can only be shown */
		plain = at += length ? length : 1;
	}
	text_add_bytes(text, plain, (size_t)(end - plain));
	text_add_char(text, '"');
}
