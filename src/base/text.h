/* A growing text, for reports and messages; no malloc, no stdio streams, no locale. After a failed growth
 * the text stays as it was and text_failed() is true. */
#ifndef MT_BASE_TEXT_H
#define MT_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *data; /* not zero-terminated unless text_string() was called */
	size_t used_bytes, capacity_bytes;
	bool fixed, failed;
};

void text_init(struct text *);                             /* grows by mmap */
void text_init_fixed(struct text *, char *buffer, size_t bytes); /* never grows: cut off at the end */
void text_release(struct text *);
void text_add(struct text *, const char *string);
void text_add_bytes(struct text *, const void *data, size_t bytes);
void text_add_char(struct text *, char c);
/* printf subset that needs no locale and no allocation: %s %.*s %c %d %u %ld %lu %zu %lld %llu %x %lx %llx
 * %p %% with width, '-', '0', and '\'' for thousands separated by commas; PRIu64 and friends work. */
void text_printf(struct text *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(struct text *, const char *format, va_list);
/* A double with `digits` decimals (0 to 9), rounded half away from zero, '.' as the point. */
void text_add_decimal(struct text *, double value, int digits);
/* Untrusted text for people: control bytes and invalid UTF-8 as \xNN. */
void text_add_escaped(struct text *, const char *string);
void text_add_escaped_bytes(struct text *, const void *data, size_t bytes);
bool text_is_printable(const char *string); /* no byte of it would be escaped */
/* A JSON string with its quotes, without a character that ends a line or is not printable; of invalid UTF-8 each byte
 * is the text \xNN. */
void text_add_json(struct text *, const char *string);
void text_pad_to(struct text *, size_t column); /* spaces up to a column of the current line (bytes, UTF-8 aware) */
const char *text_string(struct text *); /* zero-terminated */
bool text_failed(const struct text *);

#endif
