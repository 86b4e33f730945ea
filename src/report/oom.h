/* What is said when memory ran out: `<output>.oomN.txt`, and its first block on stderr. */
#ifndef MT_REPORT_OOM_H
#define MT_REPORT_OOM_H

#include "base/text.h"
#include "model/model.h"
#include "report/facts.h"
#include "trace/defs.h"

struct verdict_cure;

/* `index` counts from 0 and must be below model_oom_count(). The whole text, at most 50 lines. `cure` NULL: a word on
 * how to ask for it stands at the end. */
void oom_print(struct text *, const struct model *, const struct defs *,
	       const struct summary_facts *, size_t index, const struct verdict_cure *cure);

/* Its first block alone: who asked, and the figures. `report_path`, if not NULL, is where the rest
 * is. */
void oom_print_head(struct text *, const struct model *, const struct defs *,
		    const struct summary_facts *, size_t index, const char *report_path);

#endif
