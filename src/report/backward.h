/* Which line a backward pass stands for. Private to report/. */
#ifndef MT_REPORT_BACKWARD_H
#define MT_REPORT_BACKWARD_H

#include "base/text.h"
#include "model/model.h"
#include "report/sites.h"
#include "report/where.h"

/* Of a request with this stack, and where that is: did a thread of autograd's make it, without Python frames? */
bool backward_has_made(const struct defs *, uint32_t stack, const struct where *);

/* The place of what a backward pass made: "train.py:41 step › MmBackward0", the line that called backward() if it is
 * known which, by what was live then (`of`) or as there is only one; else as where_add() has it. */
void backward_add_place(struct text *, const struct model *, const struct defs *, const struct where *,
			struct composition of, bool ascii);

#endif
