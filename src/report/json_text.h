/* JSON as it is written: keys, commas, nesting. Private to report/ and cli/. Keys are our own words
 * and are not escaped; a NULL key is for the elements of an array. What is not known is
 * json_null(), never 0. */
#ifndef MT_REPORT_JSON_TEXT_H
#define MT_REPORT_JSON_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct json {
	struct text *out;
	bool needs_comma;
};

static inline void json_key(struct json *json, const char *key)
{
	if (json->needs_comma)
		text_add(json->out, ", ");
	json->needs_comma = true;
	if (key) {
		text_add_char(json->out, '"');
		text_add(json->out, key);
		text_add(json->out, "\": ");
	}
}

/* bracket: '{' or '[' */
static inline void json_open(struct json *json, const char *key, char bracket)
{
	json_key(json, key);
	text_add_char(json->out, bracket);
	json->needs_comma = false;
}

static inline void json_close(struct json *json, char bracket)
{
	text_add_char(json->out, bracket);
	json->needs_comma = true;
}

static inline void json_word(struct json *json, const char *key, const char *word)
{
	json_key(json, key);
	text_add(json->out, word);
}

static inline void json_null(struct json *json, const char *key)
{
	json_word(json, key, "null");
}

static inline void json_bool(struct json *json, const char *key, bool value)
{
	json_word(json, key, value ? "true" : "false");
}

/* Digits by hand: `dump` writes a dozen numbers an event. */
static inline void json_unsigned(struct json *json, const char *key, uint64_t value)
{
	char digits[20], *at = digits + sizeof digits;
	json_key(json, key);
	do {
		*--at = (char)('0' + value % 10);
	} while (value /= 10);
	text_add_bytes(json->out, at, (size_t)(digits + sizeof digits - at));
}

static inline void json_signed(struct json *json, const char *key, int64_t value)
{
	json_key(json, key);
	text_printf(json->out, "%lld", (long long)value);
}

static inline void json_known(struct json *json, const char *key, bool is_known, uint64_t value)
{
	if (is_known)
		json_unsigned(json, key, value);
	else
		json_null(json, key);
}

/* NULL and "" are unknown. */
static inline void json_string(struct json *json, const char *key, const char *value)
{
	json_key(json, key);
	if (value && *value)
		text_add_json(json->out, value);
	else
		text_add(json->out, "null");
}

#endif
