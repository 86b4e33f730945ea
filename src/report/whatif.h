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
	uint64_t card_bytes; /* of the recorded device; 0: not known */
	uint64_t memory_bytes; /* what the run was put into; 0: no limit */
};

enum whatif_outcome { /* to get past is all that can be said of a run that ran out itself */
	WHATIF_FITS,
	WHATIF_MAY_FIT,
	WHATIF_GETS_PAST,
	WHATIF_MAY_GET_PAST,
	WHATIF_MAY_RUN_OUT,
	WHATIF_RUNS_OUT
};
/* In `memory_bytes`, which is not 0. "May" is within the error of private pools. */
enum whatif_outcome whatif_outcome_of(const struct whatif_view *, const struct whatif_setting *);

void whatif_print(struct text *, const struct whatif_view *);
void whatif_print_json(struct text *, const struct whatif_view *); /* ends in a newline */

#endif
