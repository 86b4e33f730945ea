/* `memtrace report --by line|stack|owner|op|module|category`: the memory at the peak of each device, by one criterion.
 */
#ifndef MT_REPORT_BY_H
#define MT_REPORT_BY_H

#include "base/text.h"
#include "model/model.h"
#include "report/facts.h"
#include "report/stacks.h"
#include "trace/defs.h"

enum by_kind { BY_LINE, BY_STACK, BY_OWNER, BY_OP, BY_MODULE, BY_CATEGORY };

struct by_style {
	enum by_kind kind;
	size_t limit; /* rows a device, 0: all */
	struct stacks_style stacks;
};

/* After model_finish(). */
void by_print(struct text *, const struct model *, const struct defs *,
	      const struct summary_facts *, const struct by_style *);

#endif
