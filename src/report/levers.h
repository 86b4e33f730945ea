/* Levers: what would lower the peak of this run, by how much, and what would not. Computed from what
 * was live at the peak and from what the steps had at the borders of their phases; nothing is asked
 * of the program. Private to report/. */
#ifndef MT_REPORT_LEVERS_H
#define MT_REPORT_LEVERS_H

#include "base/text.h"
#include "model/model.h"
#include "trace/defs.h"

#define LEVER_OF_ALLOCATOR "allocator_settings"
#define LEVERS_MAX	 20
#define LEVER_TEXT_BYTES 96

struct lever {
	const char *name;     /* stable, for scripts: "half_batch" */
	uint64_t saves_bytes; /* of this run's peak */
	bool up_to;	      /* saves_bytes is a bound: another moment may become the peak, or it depends on the code */
	bool applies;	      /* worth trying; false: it would not help here, or is in use, and `reason` says why */
	bool mends_fault;     /* what the run does wrong: before all others */
	const char *reason;   /* one clause, lower case; never NULL */
	char text[LEVER_TEXT_BYTES]; /* what to do, for people: "half the batch, accumulated twice" */
};

struct levers {
	struct lever rows[LEVERS_MAX]; /* those that apply first, by bytes, largest first */
	size_t count;
	uint64_t peak_bytes;
};

/* After model_finish(). No rows for a program that does not train. */
void levers_find(struct levers *, const struct model *, const struct defs *, const struct model_device *);

/* At most `limit` rows with what each saves, how many more there are, and a line with those that would not help;
 * nothing if there is nothing to say. */
void levers_print(struct text *, const struct levers *, size_t limit);
const char *levers_next(const struct levers *, bool are_shown); /* the verb that tells more of them (NULL: of none) */

#endif
