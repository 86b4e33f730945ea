/* Copies that autocast keeps of weights that are gone. A copy in half the precision is half its weight: when the
 * copies are more than half of all that is left without them, some of their weights cannot be there any more. Owns
 * that rule. */
#include "model/verdict_private.h"

#define LEAST_BYTES (16ull << 20)

/* A fair part of what the run ever had. */
static bool is_large(const struct casts_burst *burst, const struct device *d)
{
	return burst->bytes >= LEAST_BYTES && burst->bytes * 8 >= d->now.pytorch_allocated.peak_bytes;
}

bool judge_casts_that_were_kept(struct situation *at, const struct device *d)
{
	const struct casts_burst *burst = &d->casts.most;
	struct verdict *verdict = at->verdict;
	if (!is_large(burst, d) || burst->bytes * 2 <= burst->left_bytes)
		return false;
	verdict->cause = VERDICT_AUTOCAST_COPIES;
	verdict->is_certain = true;
	verdict->evidence.bytes = burst->bytes;
	verdict->evidence.count = burst->count;
	verdict->evidence.left_bytes = burst->left_bytes;
	verdict->evidence.stack = burst->stack;
	verdict_add_action(verdict, ADVICE_CLEAR_AUTOCAST, true, burst->bytes);
	return true;
}

bool are_casts_kept(const struct situation *at, const struct trend_growth *growth, uint64_t cast_bytes,
		    uint64_t source_bytes, uint64_t grown_bytes)
{
	bool was_left = at->work->casts_end && at->work->casts_end >= growth->begin;
	return at->oom && !at->work->has_trained && !was_left && cast_bytes * 8 >= grown_bytes &&
	       (cast_bytes + source_bytes) * 4 >= grown_bytes * 3;
}
