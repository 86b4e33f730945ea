/* Which of a bounded trace's chunks make a new one. */
#ifndef MT_TRACE_REPAIR_BOUNDED_H
#define MT_TRACE_REPAIR_BOUNDED_H

#include "trace/reader_private.h"

/* `kept`: all chunks that are sound, in any order, perhaps with some that were given up before and only came to light
 * in what was room. They are put in the order in which a reader takes them, and those that are of no use are dropped:
 * the new trace begins at the oldest state after which no event is missing, so that its figures are those of the whole
 * run; without such a one at the oldest. `end`: the sequence that follows those that ought to be in chunks. */
void bounded_choose(struct chunk_list *kept, uint64_t end);

#endif
