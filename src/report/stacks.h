/* A mixed stack, Python and native, as lines for people. */
#ifndef MT_REPORT_STACKS_H
#define MT_REPORT_STACKS_H

#include <stdbool.h>

#include "base/text.h"
#include "trace/defs.h"

struct stacks_style {
	bool full; /* every frame, innermost first; else the user's lines, and of the rest how much
		      there is */
	bool ascii;
	/* Full: the whole C++ name of a symbol, valid until the next call; NULL when it cannot be
	 * had. NULL: short. */
	const char *(*demangle)(const char *symbol);
};

/* Lines that each begin with six spaces. The user's own innermost line is the first; what it called
 * stands below it, what called it after that. */
void stacks_print(struct text *, const struct defs *, uint32_t stack, const struct stacks_style *);

/* Every frame in full, innermost first, a line each after `indent`. */
void stacks_print_all(struct text *, const struct defs *, uint32_t stack, const char *indent,
		      const struct stacks_style *);

#endif
