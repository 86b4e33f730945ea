/* Memory of this process that PyTorch did not obtain: who has it, and by which call. Owns when that is the cause; what
 * PyTorch keeps in its cache while a library asks for memory is the other side of it. */
#include "model/verdict_private.h"

#define CONTEXT_USUAL_BYTES (512ull << 20)

/* Of this process but not PyTorch's: what was traced, and what code and contexts take beyond the usual. */
static uint64_t own_outside(const struct verdict_evidence *evidence)
{
	uint64_t untracked = evidence->untracked_bytes;
	if (untracked == UINT64_MAX || untracked < CONTEXT_USUAL_BYTES)
		return evidence->outside_bytes;
	return evidence->outside_bytes + untracked - CONTEXT_USUAL_BYTES;
}

static bool is_outside(const struct verdict_evidence *evidence)
{
	uint64_t outside = own_outside(evidence);
	return outside >= evidence->short_bytes && outside * 5 >= evidence->total_bytes &&
	       outside * 2 >= evidence->live_bytes;
}

/* Who has most of what was traced, and by which stack. */
static void find_owner(struct situation *at)
{
	struct verdict_evidence *evidence = &at->verdict->evidence;
	if (!at->outside || !at->outside->bytes)
		return;
	evidence->owner = at->m->owner_names[at->outside->owner];
	evidence->owner_bytes = at->outside->bytes;
	evidence->stack = at->outside->stack;
}

/* ---------- the questions ---------- */

bool judge_outside(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	struct verdict_evidence *evidence = &verdict->evidence;
	if (!is_outside(evidence))
		return false;
	verdict->cause = VERDICT_OUTSIDE_PYTORCH;
	verdict->is_certain = evidence->short_bytes > 0;
	evidence->bytes = own_outside(evidence);
	find_owner(at);
	verdict_add_action(verdict, ADVICE_LESS_OUTSIDE, true, evidence->bytes);
	if (!at->oom->by_pytorch && evidence->releasable_bytes >= evidence->asked_bytes)
		verdict_add_action(verdict, ADVICE_EMPTY_CACHE, true, evidence->releasable_bytes);
	verdict_add_not(verdict, NOT_SETTINGS);
	return true;
}

/* Then there is nothing that it could be outside of: it is the program's own, with its libraries. */
void judge_without_pytorch(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	struct verdict_evidence *evidence = &verdict->evidence;
	verdict->cause = VERDICT_TOO_BIG;
	uint64_t own_bytes = evidence->outside_bytes + (at->oom->untracked_known ? at->oom->untracked_bytes : 0);
	verdict->is_certain = evidence->total_bytes && own_bytes + evidence->asked_bytes > evidence->total_bytes;
	evidence->bytes = evidence->outside_bytes;
	find_owner(at);
	verdict_add_action(verdict, ADVICE_SMALLER_MODEL, false, 0);
}

/* A library fails while PyTorch's cache has what it asks for, and more than libraries have. */
static bool is_hoarded(const struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	return evidence->has_pytorch && !at->oom->by_pytorch && evidence->releasable_bytes >= evidence->outside_bytes &&
	       evidence->releasable_bytes + known_or_none(evidence->free_bytes) >= evidence->asked_bytes;
}

bool judge_hoarded(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	if (!is_hoarded(at))
		return false;
	verdict->cause = VERDICT_OUTSIDE_PYTORCH;
	verdict->evidence.bytes = verdict->evidence.releasable_bytes;
	verdict->evidence.stack = at->oom->stack;
	verdict_add_action(verdict, ADVICE_EMPTY_CACHE, true, verdict->evidence.releasable_bytes);
	return true;
}
