/* `memtrace whatif`: the run under other settings of PyTorch's allocator, for people and as JSON. */
#ifndef MT_REPORT_WHATIF_H
#define MT_REPORT_WHATIF_H

#include "base/text.h"
#include "model/whatif.h"
#include "report/facts.h"

struct whatif_view {
	const struct whatif *whatif;
	const struct summary_facts *facts;
	unsigned device;
	uint64_t memory_bytes; /* what the run was put into; 0: no limit */
};

void whatif_print(struct text *, const struct whatif_view *);
void whatif_print_json(struct text *, const struct whatif_view *); /* ends in a newline */

#endif
