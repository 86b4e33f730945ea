/* Tables of an OOM's report. Private to report/. */
#ifndef MT_REPORT_OOM_TABLES_H
#define MT_REPORT_OOM_TABLES_H

#include "base/text.h"
#include "model/model.h"
#include "model/verdict.h"
#include "report/facts.h"

#define OOM_LOWS_SHOWN 8

/* By line, with category and age. */
void oom_print_live(struct text *, const struct model *, const struct defs *, const struct summary_facts *,
		    size_t index);
/* A line or two; nothing where fewer than two steps were completed. */
void oom_print_trend(struct text *, const struct model *, size_t index, const struct verdict *);
/* And an empty line; nothing where little is free between live blocks and the verdict does not blame it. */
void oom_print_holes(struct text *, const struct model *, const struct defs *, size_t index, const struct verdict *,
		     bool ascii);

#endif
