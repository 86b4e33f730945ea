/* Page-locked host memory ran out: which of the program's has most of it. Owns that the card has nothing to do with
 * it. */
#include "model/verdict_private.h"

void judge_host(struct situation *at, size_t index)
{
	struct verdict *verdict = at->verdict;
	struct verdict_evidence *evidence = &verdict->evidence;
	struct model_share largest = {0};
	verdict->cause = VERDICT_HOST_PINNED;
	verdict->is_certain = true;
	evidence->live_bytes = at->oom->allocated_bytes;
	if (model_stacks_at_oom(at->m, index, &largest, 1)) {
		evidence->bytes = largest.bytes;
		evidence->count = largest.count;
		evidence->stack = largest.stack;
	}
	verdict_add_action(verdict, ADVICE_LESS_PINNED, true, evidence->bytes);
	verdict_add_not(verdict, NOT_SETTINGS);
	verdict_add_not(verdict, NOT_EMPTY_CACHE);
	verdict_add_not(verdict, NOT_SMALLER_MODEL);
}
