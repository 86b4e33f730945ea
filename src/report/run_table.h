/* The processes of one `memtrace run`, a row each. */
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
};

void run_table_start(struct run_table *, struct text *, size_t count);
void run_table_add(struct run_table *, const struct model *, const struct defs *,
		   const struct summary_facts *);
void run_table_end(struct run_table *);

#endif
