/* The reading of a mangled symbol: what cxx_name.c (names) and cxx_skip.c (all that is not shown)
 * share. Functions take what they read; false: it is not what the ABI says, or too deep. */
#ifndef MT_BASE_CXX_PRIVATE_H
#define MT_BASE_CXX_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

struct cxx {
	const char *at, *end;
	struct text out;
	unsigned quiet;   /* above 0: what is read is not shown */
	unsigned depth;   /* of nesting */
	unsigned steps;   /* in all: hostile symbols end */
	const char *last; /* the name that constructors repeat, not terminated */
	size_t last_bytes;
};

static inline char cxx_peek(const struct cxx *cxx, size_t ahead)
{
	return (size_t)(cxx->end - cxx->at) > ahead ? cxx->at[ahead] : 0;
}

static inline bool cxx_take(struct cxx *cxx, char wanted)
{
	if (cxx_peek(cxx, 0) != wanted)
		return false;
	cxx->at++;
	return true;
}

static inline bool cxx_take_two(struct cxx *cxx, const char *wanted)
{
	if (cxx_peek(cxx, 0) != wanted[0] || cxx_peek(cxx, 1) != wanted[1])
		return false;
	cxx->at += 2;
	return true;
}

/* To be called by whatever may nest; cxx_leave() after each that gave true. */
bool cxx_enter(struct cxx *);
static inline bool cxx_leave(struct cxx *cxx, bool result)
{
	cxx->depth--;
	return result;
}

/* cxx_name.c */
bool cxx_encoding(struct cxx *); /* after _Z: a name and the types behind it, up to E or the end */

/* cxx_parse.c */
void cxx_show(struct cxx *, const char *word);
bool cxx_any_name(struct cxx *);    /* nested, local or plain, with its template arguments */
bool cxx_unqualified(struct cxx *); /* one component */
bool cxx_source_name(struct cxx *); /* <length> <bytes> */
bool cxx_substitution(struct cxx *);
const char *cxx_operator(struct cxx *); /* its spelling, or NULL: none begins here */

/* cxx_skip.c */
bool cxx_skip_number(struct cxx *); /* [n] digits, perhaps none */
bool cxx_skip_type(struct cxx *);
bool cxx_skip_arguments(struct cxx *); /* I … E */
bool cxx_skip_expression(struct cxx *);

#endif
