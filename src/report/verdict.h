/* A verdict in words and in JSON. */
#ifndef MT_REPORT_VERDICT_H
#define MT_REPORT_VERDICT_H

#include "base/text.h"
#include "model/verdict.h"
#include "report/facts.h"
#include "report/json_text.h"
#include "trace/defs.h"

struct verdict_words {
	const struct defs *defs;
	const struct summary_facts *facts;
	bool is_finding;
};

/* "  TOO BIG, certain. …", wrapped; then what speaks against it, what would help and by how much, and what would
 * not. */
void verdict_print(struct text *, const struct verdict *, const struct verdict_words *);
/* Its first two lines alone. */
void verdict_print_short(struct text *, const struct verdict *, const struct verdict_words *);

/* "verdict", "kind", "confidence", "evidence_of_verdict", "counter_evidence", "advice", "not_advised". */
void verdict_add_json(struct json *, const struct verdict *, const struct verdict_words *);

#endif
