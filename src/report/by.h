/* `memtrace report --by line|stack|owner`: the memory at the peak of each device, by one criterion.
 */
#ifndef MT_REPORT_BY_H
#define MT_REPORT_BY_H

#include "base/text.h"
#include "model/model.h"
#include "report/facts.h"
#include "trace/defs.h"

enum by_kind { BY_LINE, BY_STACK, BY_OWNER };

/* After model_finish(). `limit` rows a device, 0: all. */
void by_print(struct text *, const struct model *, const struct defs *,
	      const struct summary_facts *, enum by_kind, size_t limit);

#endif
