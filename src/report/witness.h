/* What CUPTI saw that the hooks did not (MEMTRACE_CHECK=cupti). */
#ifndef MT_REPORT_WITNESS_H
#define MT_REPORT_WITNESS_H

#include "base/text.h"
#include "model/model.h"
#include "report/json_text.h"

/* Lines for a person, "  stream memory: …", one a kind in which something was missed; nothing when
 * there was no check or nothing was missed. */
void witness_add_gaps(struct text *out, const struct model *);
/* One line for a person about a check that found nothing; nothing otherwise. */
void witness_add_line(struct text *out, const struct model *);
/* The key "check"; nothing when there was no check. */
void witness_add_json(struct json *, const struct model *);

#endif
