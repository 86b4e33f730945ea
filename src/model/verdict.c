/* The order of the questions, from what rules the others out to what is left: one request larger than the card; a
 * limit; other processes; what this process took past PyTorch; memory in pieces; what grows; what is there twice;
 * too much. Owns that order and what speaks against the answer. Looks at a moment that the model has kept; takes
 * memory from an arena of its own. */
#include "base/bytes.h"
#include "model/allocator_conf.h"
#include "model/verdict_private.h"

#define SEGMENT_BYTES	    (20ull << 20) /* of blocks up to 10 MiB; larger ones have their own */
#define CONTEXT_MOST_BYTES  (2ull << 30) /* a context and its kernels are smaller */

/* ---------- the causes that need no map ---------- */

static bool is_impossible(const struct verdict_evidence *evidence)
{
	return evidence->total_bytes &&
	       (evidence->segment_bytes > evidence->total_bytes || evidence->asked_bytes > evidence->total_bytes);
}

static void judge_impossible(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	verdict->cause = VERDICT_IMPOSSIBLE_REQUEST;
	verdict->is_certain = true;
	verdict->evidence.stack = at->oom->stack;
	verdict_add_action(verdict, ADVICE_CHECK_SHAPES, false, 0);
	verdict_add_not(verdict, NOT_SETTINGS);
	verdict_add_not(verdict, NOT_EMPTY_CACHE);
}

/* For a block and the segment that it would be cut from. */
static bool had_room(const struct verdict_evidence *evidence)
{
	return evidence->free_bytes != UINT64_MAX && evidence->free_bytes >= evidence->asked_bytes + SEGMENT_BYTES;
}

/* PyTorch gave up without asking the driver. Where events or stacks are missing it may have asked, unseen: then only
 * room that it left free says so. */
static bool is_limited(const struct situation *at)
{
	bool is_whole = !at->m->has_gaps && !at->m->lost_count;
	return at->oom->by_pytorch && !at->oom->driver_bytes && (is_whole || had_room(&at->verdict->evidence));
}

/* The environment set the share of the card, and it is that which was hit, not a lower one of the program's own. */
static bool is_of_setting(const struct situation *at, uint64_t segment_bytes)
{
	struct allocator_conf conf;
	char buffer[64];
	struct text reason;
	const char *set = defs_info(at->m->defs, MEMTRACE_INFO_ALLOC_CONF, 0);
	text_init_fixed(&reason, buffer, sizeof buffer);
	allocator_conf_init(&conf, (struct allocator_version){0, 0});
	if (!set || allocator_conf_parse(&conf, set, &reason) || !allocator_conf_has_fraction(&conf))
		return false;
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	double limit_bytes = conf.memory_fraction * (double)evidence->total_bytes;
	return (double)(evidence->live_bytes + evidence->idle_bytes + segment_bytes) * 1.02 >= limit_bytes;
}

static void judge_limit(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	struct allocator_conf conf;
	allocator_conf_init(&conf, (struct allocator_version){0, 0});
	verdict->evidence.segment_bytes = allocator_segment_bytes(&conf, verdict->evidence.asked_bytes);
	verdict->cause = VERDICT_LIMIT;
	verdict->is_certain = true;
	bool is_set = is_of_setting(at, verdict->evidence.segment_bytes);
	verdict_add_action(verdict, is_set ? ADVICE_RAISE_SETTING : ADVICE_RAISE_LIMIT, false, 0);
	verdict_add_not(verdict, NOT_EMPTY_CACHE);
}

/* The driver refused, and then said that more than that was free. By a margin: it gives out whole units. Of pages for a
 * segment that expands all are needed, and those that were had are given back first. */
static bool is_refused_though_free(const struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t asked = evidence->segment_bytes > evidence->asked_bytes ? evidence->segment_bytes : evidence->asked_bytes;
	if (!at->oom->driver_bytes || evidence->free_bytes == UINT64_MAX)
		return false;
	return evidence->free_bytes + at->oom->flushed_bytes >= asked + asked / 16 + SEGMENT_BYTES;
}

static void judge_refusal(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	verdict->cause = VERDICT_LIMIT;
	verdict->kind = VERDICT_KIND_DRIVER;
	verdict_add_action(verdict, ADVICE_FIND_LIMIT, false, 0);
	verdict_add_not(verdict, NOT_SMALLER_BATCH);
	verdict_add_not(verdict, NOT_EMPTY_CACHE);
}

/* In use by others; when nobody tells them apart, what is untracked beyond any context. */
static uint64_t others_of(const struct verdict_evidence *evidence)
{
	if (evidence->others_bytes != UINT64_MAX)
		return evidence->others_bytes;
	if (evidence->untracked_bytes == UINT64_MAX || evidence->untracked_bytes < CONTEXT_MOST_BYTES)
		return 0;
	return evidence->untracked_bytes;
}

static bool is_by_others(const struct verdict_evidence *evidence)
{
	uint64_t others = others_of(evidence);
	return others && others >= evidence->short_bytes && others * 8 >= evidence->total_bytes;
}

static void judge_others(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	verdict->cause = VERDICT_OTHER_PROCESS;
	verdict->is_certain = verdict->evidence.others_bytes != UINT64_MAX;
	verdict->evidence.bytes = others_of(&verdict->evidence);
	verdict_add_action(verdict, ADVICE_END_OTHERS, true, verdict->evidence.bytes);
	verdict_add_not(verdict, NOT_SETTINGS);
}

/* ---------- the order ---------- */

static bool knows_room(const struct verdict_evidence *evidence)
{
	return evidence->free_bytes != UINT64_MAX;
}

static bool is_fragmented(const struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	return at->oom->by_pytorch && knows_room(evidence) && !evidence->short_bytes &&
	       evidence->idle_bytes > at->oom->flushed_bytes;
}

/* What this process can have of the card. */
uint64_t verdict_usable_bytes(const struct verdict_evidence *evidence)
{
	uint64_t taken = evidence->outside_bytes + known_or_none(evidence->untracked_bytes) +
			 known_or_none(evidence->others_bytes);
	return bytes_less(evidence->total_bytes, taken);
}

static void judge_packed(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	if (!judge_duplicate(at))
		judge_size(at);
	verdict->is_certain = false;
	verdict->counter = VERDICT_FRAGMENTATION;
	verdict->counter_bytes = verdict->evidence.idle_bytes - at->oom->flushed_bytes;
}

/* Little is in pieces, and much has grown, or is there twice: the last piece is not what it is about. */
static bool is_more_than_pieces(const struct situation *at, uint64_t bytes)
{
	return bytes > 2 * (at->verdict->evidence.idle_bytes - at->oom->flushed_bytes);
}

/* Threads that each have a stream leave their idle memory there: it grows with them. */
static bool explains_pieces(const struct situation *at)
{
	const struct verdict *verdict = at->verdict;
	return is_more_than_pieces(at, verdict->evidence.growth_bytes) ||
	       (verdict->kind == VERDICT_KIND_PER_THREAD && are_holes_of_streams(at));
}

/* One more set of the weights is a copy, however it grew; sets that go on being made are a leak. */
static bool is_one_copy(struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	return judge_duplicate(at) && at->verdict->is_certain && evidence->bytes <= evidence->copied_bytes;
}

static bool judge_growth(struct situation *at, const struct verdict *before)
{
	if (!judge_leak(at))
		return false;
	struct verdict leak = *at->verdict;
	if (leak.evidence.growth_is_by_step)
		return true;
	*at->verdict = *before;
	if (!is_one_copy(at))
		*at->verdict = leak;
	return true;
}

/* What the step is still to make would not get into the pieces, however they lay. */
static bool comes_more(const struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	return state_bytes_to_come(at) > evidence->idle_bytes + evidence->free_bytes || next_step_bytes(at);
}

static void judge_rest(struct situation *at)
{
	struct verdict *verdict = at->verdict, before = *verdict;
	bool fragmented = is_fragmented(at);
	if (judge_growth(at, &before) && (!fragmented || explains_pieces(at)))
		return;
	*verdict = before;
	if (fragmented && judge_duplicate(at) && verdict->is_certain && is_more_than_pieces(at, verdict->evidence.bytes))
		return;
	*verdict = before;
	if (fragmented && judge_hoard(at) && is_more_than_pieces(at, verdict->evidence.bytes))
		return;
	*verdict = before;
	if (fragmented && (is_packed(at) || comes_more(at)))
		judge_packed(at);
	else if (fragmented)
		judge_fragmentation(at);
	else if (!judge_duplicate(at) && !judge_hoard(at))
		judge_size(at);
}

/* Of a program that has not trained, what a module makes may still be temporary; of one that has, temporary is what
 * the optimizer and the backward make. */
static void add_pass(struct situation *at)
{
	struct verdict_evidence *evidence = &at->verdict->evidence;
	const struct model_categories *categories = &evidence->categories;
	if (is_building(at))
		return;
	uint64_t other = categories->provisional_bytes[MODEL_OTHER], most = categories->bytes[MODEL_OTHER];
	evidence->pass_bytes = other < most ? other : most;
	if (!at->work->has_trained)
		evidence->pass_bytes += categories->provisional_bytes[MODEL_TEMPORARY];
}

static void judge(struct situation *at, size_t index)
{
	struct verdict_evidence *evidence = &at->verdict->evidence;
	if (at->oom->device == MEMTRACE_DEVICE_HOST)
		judge_host(at, index);
	else if (is_impossible(evidence))
		judge_impossible(at);
	else if (is_limited(at))
		judge_limit(at);
	else if (is_refused_though_free(at))
		judge_refusal(at);
	else if (judge_hoarded(at))
		return;
	else if (is_by_others(evidence))
		judge_others(at);
	else if (!evidence->has_pytorch)
		judge_without_pytorch(at);
	else if (!judge_outside(at))
		judge_rest(at);
	doubt_wanted_copy(at->verdict);
}

/* ---------- what speaks against it ---------- */

static void find_counter(struct verdict *verdict)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	if (verdict->cause == VERDICT_HOST_PINNED || verdict->cause == VERDICT_LIMIT) /* what a limit lacks is not known */
		return;
	const uint64_t candidates[][2] = {
		{VERDICT_OTHER_PROCESS, others_of(evidence)},
		{VERDICT_OUTSIDE_PYTORCH, evidence->has_pytorch ? evidence->outside_bytes : 0},
		{VERDICT_FRAGMENTATION, evidence->pinned_bytes},
	};
	for (unsigned i = 0; i < 3; i++) {
		if (candidates[i][0] == verdict->cause || candidates[i][1] < evidence->missing_bytes ||
		    candidates[i][1] <= verdict->counter_bytes)
			continue;
		verdict->counter = (enum verdict_cause)candidates[i][0];
		verdict->counter_bytes = candidates[i][1];
	}
}

/* As few as were lost, they are not what is blamed. */
static bool is_much(const struct model *m, const struct verdict *verdict)
{
	return m->lost_count <= verdict->evidence.count / 8;
}

/* May a few events that were lost speak for another cause? PyTorch's own total shows whether blocks are among them; what
 * others have in use the driver told; past PyTorch, and in pieces, each counts. */
static bool may_lost_matter(const struct model *m, const struct verdict *verdict)
{
	switch (verdict->cause) {
	case VERDICT_OTHER_PROCESS:
	case VERDICT_NEAR_LIMIT:
		return false;
	case VERDICT_LIMIT:
		return !had_room(&verdict->evidence);
	case VERDICT_LEAK:
	case VERDICT_DUPLICATE:
		return m->disagreement_count && !is_much(m, verdict);
	case VERDICT_SPIKE:
	case VERDICT_TOO_BIG:
	case VERDICT_AUTOCAST_COPIES:
		return m->disagreement_count;
	default:
		return true;
	}
}

/* What is missing may speak for another cause. An impossible request needs no more than its own event. */
void verdict_doubt(const struct model *m, struct verdict *verdict)
{
	if (verdict->cause == VERDICT_IMPOSSIBLE_REQUEST)
		return;
	if (m->has_gaps || (m->lost_count && may_lost_matter(m, verdict)))
		verdict->is_certain = false;
}

/* Nothing has come to its end since: this is another try. */
static const struct suspect *try_before(const struct model *m, size_t index)
{
	const struct suspect *now = m->ooms[index];
	while (index-- > 0) {
		const struct suspect *before = m->ooms[index];
		if (before->oom.device == now->oom.device)
			return before->work.steps == now->work.steps && before->work.backwards == now->work.backwards ? before : NULL;
	}
	return NULL;
}

bool model_verdict(const struct model *m, size_t index, struct verdict *verdict)
{
	*verdict = (struct verdict){.cause = VERDICT_UNKNOWN};
	if (index >= m->oom_count)
		return false;
	const struct suspect *suspect = m->ooms[index];
	struct situation at = {
		.m = m,
		.oom = &suspect->oom,
		.outside = &suspect->outside,
		.map = suspect->map,
		.trend = suspect->trend,
		.work = &suspect->work,
		.is_recording_told = verdict_is_recording_told(m),
		.end = suspect->oom.sequence,
		.before = try_before(m, index),
		.arena = arena_create(),
		.verdict = verdict,
	};
	if (!at.arena)
		return true;
	evidence_of_oom(&at);
	model_categories_at_oom(m, index, &verdict->evidence.categories);
	add_pass(&at);
	judge(&at, index);
	find_counter(verdict);
	verdict_doubt(m, verdict);
	arena_release(at.arena);
	return true;
}
