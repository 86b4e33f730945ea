/* The processes of one `memtrace run`, a row each in the order in which they are added; and one
 * process in a line. */
#ifndef MT_REPORT_RUN_TABLE_H
#define MT_REPORT_RUN_TABLE_H

#include "base/text.h"
#include "model/model.h"
#include "report/facts.h"
#include "trace/defs.h"

struct run_table {
	struct text *out;
	char next[4352]; /* path of the trace with the highest peak: it is what one looks at next */
	uint64_t highest_bytes;
	bool has_outsiders; /* the reserved of some row is not PyTorch's alone */
};

void run_table_start(struct run_table *, struct text *, size_t count);
void run_table_add(struct run_table *, const struct model *, const struct defs *,
		   const struct summary_facts *);
void run_table_end(struct run_table *);

/* One process in a line: what a rank other than the first says at its end. */
void run_line_print(struct text *, const struct model *, const struct defs *,
		    const struct summary_facts *);

#endif
