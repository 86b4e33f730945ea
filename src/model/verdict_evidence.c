/* The numbers of a moment, gathered once for all questions. Owns how each is computed; UINT64_MAX is unknown. */
#include <string.h>

#include "base/bytes.h"
#include "model/verdict_private.h"

struct stack_marks marks_at(const struct situation *at, uint32_t stack)
{
	const struct attribution *a = at->m->attribution;
	struct stack_marks marks = {0};
	if (stack < a->marks_capacity && a->marks[stack].is_known)
		return a->marks[stack].marks;
	if (stack && stack <= defs_stack_count(at->m->defs))
		marks_of_stack(at->m->defs, stack, &marks);
	return marks;
}

bool has_native_frames(const struct situation *at, uint32_t id)
{
	const struct def_stack *stack = defs_stack(at->m->defs, id);
	return stack && stack->native_count;
}

bool is_building(const struct situation *at)
{
	struct stack_marks marks = marks_at(at, at->oom ? at->oom->stack : 0);
	bool is_made = marks.context == MARK_PARAMETER || marks.context == MARK_INIT;
	return is_made && !(marks.flags & MARK_FLAG(MARK_FORWARD)) && !at->work->has_trained;
}

static char small(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Without regard to case; words are in small letters. */
static bool has_word(const char *text, const char *word)
{
	for (; *text; text++) {
		size_t i = 0;
		while (word[i] && small(text[i]) == word[i])
			i++;
		if (!word[i])
			return true;
	}
	return false;
}

static bool has_any(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (has_word(text, *words))
			return true;
	return false;
}

bool stack_has_word(const struct situation *at, uint32_t id, const char *const *words)
{
	const struct def_stack *stack = defs_stack(at->m->defs, id);
	for (uint32_t i = 0; stack && i < stack->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(at->m->defs, stack->python[i]);
		if (frame && has_any(frame->function, words))
			return true;
	}
	return false;
}

bool verdict_is_recording_told(const struct model *m)
{
	const struct situation at = {.m = m};
	for (uint32_t stack = 1; stack <= defs_stack_count(m->defs); stack++)
		if (marks_at(&at, stack).native & MARK_RECORDED)
			return true;
	return false;
}

/* A compiled graph asks autograd once, for all of it. */
bool verdict_is_unrecorded(const struct situation *at, uint32_t stack)
{
	struct stack_marks marks = marks_at(at, stack);
	bool may_tell = has_native_frames(at, stack) && !(marks.flags & MARK_COMPILED);
	return may_tell && !(marks.native & (MARK_RECORDED | MARK_FACTORY)) && at->is_recording_told;
}

/* ---------- actions ---------- */

static bool is_before(const struct verdict_action *a, const struct verdict_action *b)
{
	return a->is_known && (!b->is_known || a->saves_bytes > b->saves_bytes);
}

bool verdict_add_action(struct verdict *verdict, enum verdict_advice advice, bool is_known, uint64_t saves_bytes)
{
	const struct verdict_action action = {advice, is_known, saves_bytes};
	size_t at = verdict->action_count;
	if (is_known && !saves_bytes)
		return false;
	if (at == VERDICT_ACTIONS_MAX) {
		if (!is_before(&action, &verdict->actions[--at]))
			return false;
	} else {
		verdict->action_count++;
	}
	for (; at && is_before(&action, &verdict->actions[at - 1]); at--)
		verdict->actions[at] = verdict->actions[at - 1];
	verdict->actions[at] = action;
	return true;
}

void verdict_add_not(struct verdict *verdict, enum verdict_not_advised what)
{
	bool is_of_pytorch = what == NOT_SETTINGS || what == NOT_EMPTY_CACHE;
	if (is_of_pytorch && !verdict->evidence.has_pytorch)
		return;
	if (verdict->not_advised_count < VERDICT_NOT_MAX)
		verdict->not_advised[verdict->not_advised_count++] = what;
}

/* ---------- numbers ---------- */

static void add_map(struct verdict_evidence *evidence, const struct segment_map *map)
{
	struct segment_metrics metrics = map ? segment_metrics_of(map) : (struct segment_metrics){0};
	evidence->pinned_bytes = metrics.pinned_bytes;
	evidence->largest_hole_bytes = metrics.largest_hole_bytes;
}

static void add_shortage(struct verdict_evidence *evidence, const struct model_oom *oom)
{
	uint64_t free_after = evidence->free_bytes == UINT64_MAX ? 0 : evidence->free_bytes + oom->flushed_bytes;
	evidence->missing_bytes = bytes_less(evidence->segment_bytes, free_after);
	evidence->short_bytes = bytes_less(evidence->asked_bytes, free_after + evidence->idle_bytes - oom->flushed_bytes);
}

static void add_use(struct verdict_evidence *evidence, const struct model_oom *oom)
{
	uint64_t used = bytes_less(oom->total_bytes, oom->free_bytes);
	evidence->untracked_bytes = UINT64_MAX;
	evidence->others_bytes = UINT64_MAX;
	if (oom->free_bytes != UINT64_MAX && oom->total_bytes)
		evidence->untracked_bytes = bytes_less(used, oom->reserved_bytes);
	if (evidence->untracked_bytes == UINT64_MAX || !oom->untracked_known)
		return;
	evidence->others_bytes = bytes_less(evidence->untracked_bytes, oom->untracked_bytes);
	evidence->untracked_bytes -= evidence->others_bytes;
}

static bool has_pytorch(const struct situation *at)
{
	const char *framework = defs_info(at->m->defs, MEMTRACE_INFO_FRAMEWORK, 0);
	return at->oom->by_pytorch || at->m->totals.block_events || (framework && !strncmp(framework, "torch", 5));
}

void evidence_of_oom(struct situation *at)
{
	const struct model_oom *oom = at->oom;
	struct verdict_evidence *evidence = &at->verdict->evidence;
	at->verdict->device = oom->device;
	*evidence = (struct verdict_evidence){
		.asked_bytes = oom->requested_bytes,
		.segment_bytes = oom->driver_bytes ? oom->driver_bytes : oom->requested_bytes,
		.total_bytes = oom->total_bytes,
		.free_bytes = oom->free_bytes,
		.has_pytorch = has_pytorch(at),
		.outside_bytes = bytes_less(oom->reserved_bytes, oom->pytorch_reserved_bytes),
		.live_bytes = oom->pytorch_allocated_bytes,
		.idle_bytes = bytes_less(oom->pytorch_reserved_bytes, oom->pytorch_allocated_bytes),
		.releasable_bytes = oom->releasable_bytes + oom->flushed_bytes,
		.steps = at->work->steps,
		.retries = oom->retries,
		.periods_left = UINT64_MAX,
	};
	add_use(evidence, oom);
	add_shortage(evidence, oom);
	add_map(evidence, at->map);
}

void evidence_of_end(struct situation *at, const struct device *d)
{
	const struct device_figures *told = at->m->is_frozen ? &d->frozen : &d->now;
	struct verdict_evidence *evidence = &at->verdict->evidence;
	at->verdict->device = d->slot;
	*evidence = (struct verdict_evidence){
		.has_pytorch = true,
		.total_bytes = device_capacity_bytes(at->m, d),
		.free_bytes = d->free_known ? d->free_bytes : UINT64_MAX,
		.others_bytes = UINT64_MAX,
		.untracked_bytes = d->free_known ? d->untracked.bytes : UINT64_MAX,
		.outside_bytes = bytes_less(told->reserved.live_bytes, told->pytorch_reserved.live_bytes),
		.live_bytes = told->pytorch_allocated.live_bytes,
		.idle_bytes = bytes_less(told->pytorch_reserved.live_bytes, told->pytorch_allocated.live_bytes),
		.releasable_bytes = told->spread.releasable_bytes,
		.steps = at->work->steps,
		.retries = d->retries,
		.waits = d->waits,
		.periods_left = UINT64_MAX,
	};
	add_map(evidence, at->map);
	model_categories_now(at->m, slot_ordinal(d->slot), &evidence->categories);
}

void evidence_before_let_go(struct situation *at, const struct device *d)
{
	const struct let_go *gone = &d->let_go;
	struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t from_driver = bytes_less(gone->bytes, evidence->idle_bytes);
	evidence->was_let_go = true;
	evidence->live_bytes += gone->bytes;
	evidence->idle_bytes = bytes_less(evidence->idle_bytes, gone->bytes);
	evidence->releasable_bytes = bytes_less(evidence->releasable_bytes, gone->bytes);
	if (evidence->free_bytes != UINT64_MAX)
		evidence->free_bytes = bytes_less(evidence->free_bytes, from_driver);
	for (uint32_t i = 0; i < gone->count; i++)
		categories_add(at->m, &evidence->categories, gone->blocks[i].label, gone->blocks[i].bytes);
}

void evidence_of_stage_end(struct situation *at, const struct model_oom *figures)
{
	struct verdict_evidence *evidence = &at->verdict->evidence;
	at->oom = figures;
	evidence_of_oom(at);
	at->oom = NULL;
	evidence->was_let_go = evidence->went_on = true;
	for (size_t i = 0; i < at->map->block_count; i++)
		categories_add(at->m, &evidence->categories, at->map->blocks[i].label, at->map->blocks[i].bytes);
}
