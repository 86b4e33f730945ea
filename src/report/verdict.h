/* A verdict in words and in JSON. */
#ifndef MT_REPORT_VERDICT_H
#define MT_REPORT_VERDICT_H

#include "base/text.h"
#include "model/verdict.h"
#include "report/facts.h"
#include "report/json_text.h"
#include "trace/defs.h"

#define VERDICT_CURES_MAX 3

struct verdict_setting {
	char conf[256]; /* as in PYTORCH_ALLOC_CONF; "" the defaults */
	bool empties_each_step;
};

struct verdict_cure { /* what a replay under other settings of PyTorch's allocator told of an OOM */
	bool was_replayed; /* false: there was none, and it is not known */
	bool is_inferred;  /* there are private pools, which a replay can only guess */
	bool has_old_name; /* the variable is PYTORCH_CUDA_ALLOC_CONF: PyTorch before 2.9 */
	size_t tried, count;
	size_t doubtful; /* get past it by less than the replay may be off, which is no promise: not among the settings */
	struct verdict_setting settings[VERDICT_CURES_MAX]; /* under which it gets past the OOM */
};

struct verdict_words {
	const struct defs *defs;
	const struct summary_facts *facts;
	bool is_finding;
	const struct verdict_cure *cure; /* NULL: nobody replayed */
};

/* Where no setting helps, that blocks lie between is not certain to be why: to be called before the verdict is told. */
void verdict_heed_cure(struct verdict *, const struct verdict_cure *); /* NULL: nobody replayed */

/* "  TOO BIG, certain. …", wrapped; then what speaks against it, what would help and by how much, and what would
 * not. */
void verdict_print(struct text *, const struct verdict *, const struct verdict_words *);
/* Of a finding, for a summary: its first paragraph, and what helps first. */
void verdict_print_short(struct text *, const struct verdict *, const struct verdict_words *);

/* "verdict", "kind", "confidence", "evidence_of_verdict", "counter_evidence", "advice", "not_advised",
 * "replay". */
void verdict_add_json(struct json *, const struct verdict *, const struct verdict_words *);

#endif
