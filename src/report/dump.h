/* `memtrace dump`: one line an event, as JSON (the oracle of the tests) or as a table for people.
 */
#ifndef MT_REPORT_DUMP_H
#define MT_REPORT_DUMP_H

#include "base/text.h"
#include "model/model.h"
#include "trace/defs.h"
#include "trace/event.h"

struct dump_style {
	bool stacks; /* frames too, innermost first */
	bool ascii;
	struct model *tracked; /* or NULL: the events up to this one; its figures are written too */
};

/* `category`: of the memory concerned, NULL unknown or none. */
void dump_json(struct text *, const struct defs *, const struct event *, const char *category,
	       const struct dump_style *);

void dump_table_head(struct text *);
void dump_table(struct text *, const struct defs *, const struct event *,
		const struct dump_style *);

#endif
