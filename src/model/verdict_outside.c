/* Memory of this process that PyTorch did not obtain: who has it, and by which call. Owns when that is the cause; what
 * PyTorch keeps in its cache while a library asks for memory is the other side of it. */
#include "model/verdict_private.h"

#define CONTEXT_USUAL_BYTES (512ull << 20)
#define STACKS_MAX	    64

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

/* ---------- who ---------- */

struct outside_row { /* what one stack has obtained */
	uint32_t stack;
	uint64_t bytes;
};

struct outside_sums {
	uint64_t *owners; /* by owner */
	struct outside_row rows[STACKS_MAX];
	uint32_t row_count;
	uint32_t owner; /* whose rows; UINT32_MAX: the owners are summed */
};

static void add_memory(const struct situation *at, struct outside_sums *sums, const struct memory *memory)
{
	uint32_t i = 0;
	if (memory->role != ROLE_OUTSIDE || memory->slot != at->oom->device || memory->born > at->oom->sequence)
		return;
	if (sums->owner == UINT32_MAX)
		sums->owners[memory->owner] += memory->bytes;
	if (sums->owner != memory->owner)
		return;
	while (i < sums->row_count && sums->rows[i].stack != memory->stack)
		i++;
	if (i == STACKS_MAX)
		return;
	sums->row_count += i == sums->row_count;
	sums->rows[i].stack = memory->stack;
	sums->rows[i].bytes += memory->bytes;
}

static void walk(const struct situation *at, struct outside_sums *sums)
{
	const struct ranges *index = &at->m->regions.device;
	for (struct span *span = ranges_after(index, 0); span; span = ranges_after(index, span->start)) {
		const struct mapping *mapping = (const struct mapping *)span;
		if (span->kind == SPAN_REGION)
			add_memory(at, sums, &((const struct region *)span)->memory);
		else if (span->kind == SPAN_MAPPING && mapping->handle && mapping->handle->mappings == mapping)
			add_memory(at, sums, &mapping->handle->memory);
	}
}

static uint32_t largest_stack(const struct outside_sums *sums)
{
	const struct outside_row *largest = NULL;
	for (uint32_t i = 0; i < sums->row_count; i++)
		if (!largest || sums->rows[i].bytes > largest->bytes)
			largest = &sums->rows[i];
	return largest ? largest->stack : 0;
}

/* Who has most of what was traced, and by which stack. */
static void find_owner(struct situation *at)
{
	struct verdict_evidence *evidence = &at->verdict->evidence;
	struct outside_sums sums = {.owner = UINT32_MAX};
	uint32_t most = 0;
	sums.owners = arena_alloc(at->arena, (at->m->owner_count + 1) * sizeof *sums.owners);
	if (!sums.owners)
		return;
	walk(at, &sums);
	for (uint32_t i = 1; i < at->m->owner_count; i++)
		most = sums.owners[i] > sums.owners[most] ? i : most;
	if (!at->m->owner_count || !sums.owners[most])
		return;
	sums.owner = most;
	walk(at, &sums);
	evidence->owner = at->m->owner_names[most];
	evidence->owner_bytes = sums.owners[most];
	evidence->stack = largest_stack(&sums);
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

/* A library fails while PyTorch's cache has what it asks for, and more than libraries have. */
static bool is_hoarded(const struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	return !at->oom->by_pytorch && evidence->releasable_bytes >= evidence->outside_bytes &&
	       evidence->releasable_bytes + (evidence->free_bytes == UINT64_MAX ? 0 : evidence->free_bytes) >=
		       evidence->asked_bytes;
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
