/* What the rules of the levers share. Private to levers*.c. */
#ifndef MT_REPORT_LEVERS_RULES_H
#define MT_REPORT_LEVERS_RULES_H

#include "base/bytes.h"
#include "report/levers.h"
#include "report/levers_facts.h"

/* levers.c: a row is begun, its text added to what that returns, and ended. */
struct text lever_begin(struct levers *, const char *name);
void lever_end(struct levers *, uint64_t saves_bytes, bool up_to, const char *reason);
void lever_add(struct levers *, const char *name, const char *words, uint64_t saves_bytes, bool up_to,
	       const char *reason);
void lever_add_useless(struct levers *, const char *name, const char *words, const char *reason);
bool lever_is_worth(const struct lever_facts *, uint64_t bytes);
/* What is left of a saving when another moment, of `floor` bytes, becomes the peak. */
uint64_t lever_above(const struct lever_facts *, uint64_t saves, uint64_t floor);
/* The same where it is a bound: of the floor, what the allocator's rounding added may go too. */
uint64_t lever_most_above(const struct lever_facts *, uint64_t saves, uint64_t floor);

/* Each adds the rows of its file. */
void levers_find_activations(struct levers *, const struct lever_facts *);
void levers_find_static(struct levers *, const struct lever_facts *);

#endif
