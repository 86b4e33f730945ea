/* Nothing leaks and nothing is in pieces: it is too much. Owns whether that is a moment (spike) or the whole
 * (too_big), and what would make it less. */
#include "model/verdict_private.h"

static const char *const evaluation_words[] = {"eval", "valid", "test_", "predict", "generate", "infer", "sample", NULL};
static const char *const load_words[] = {"load", "state_dict", "from_pretrained", "save", NULL};
static const char *const adam_words[] = {"adam", "lamb", "lion", NULL};

static uint64_t static_bytes(const struct verdict_evidence *evidence)
{
	const uint64_t *bytes = evidence->categories.bytes;
	return bytes[MODEL_PARAMETERS] + bytes[MODEL_GRADIENTS] + bytes[MODEL_OPTIMIZER_STATE];
}

/* When the first step of an optimizer is going on: what its state will be. */
static uint64_t expected_state(const struct situation *at)
{
	uint64_t parameters = at->verdict->evidence.categories.bytes[MODEL_PARAMETERS];
	uint64_t state = at->verdict->evidence.categories.bytes[MODEL_OPTIMIZER_STATE];
	uint64_t copies = stack_has_word(at, at->oom->stack, adam_words) ? 2 : 1;
	return copies * parameters > state ? copies * parameters : state;
}

static uint64_t graph_bytes(const struct verdict_evidence *evidence)
{
	return evidence->categories.bytes[MODEL_ACTIVATIONS] + evidence->pass_bytes;
}

/* What is made anew for each batch: the graph, and what is temporary and not counted with it. */
static uint64_t batch_bytes(const struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t temporary = evidence->categories.bytes[MODEL_TEMPORARY];
	uint64_t counted = at->work->has_trained ? 0 : evidence->categories.provisional_bytes[MODEL_TEMPORARY];
	return graph_bytes(evidence) + (temporary > counted ? temporary - counted : 0);
}

static bool is_engine(const struct situation *at)
{
	const struct def_thread *thread = defs_thread(at->m->defs, at->oom->thread);
	return thread && !__builtin_strncmp(thread->name, "pt_autograd", 11);
}

static enum verdict_kind phase_of_oom(const struct situation *at)
{
	struct stack_marks marks = marks_at(at, at->oom->stack);
	if (marks.flags & MARK_FLAG(MARK_OPTIMIZER))
		return VERDICT_KIND_OPTIMIZER;
	if (is_engine(at) || marks.native & MARK_ENGINE || marks.flags & MARK_FLAG(MARK_BACKWARD))
		return VERDICT_KIND_BACKWARD;
	if (marks.context == MARK_LOAD || marks.context == MARK_OPTIMIZER_LOAD ||
	    stack_has_word(at, at->oom->stack, load_words))
		return VERDICT_KIND_LOAD;
	if (stack_has_word(at, at->oom->stack, evaluation_words))
		return VERDICT_KIND_EVALUATION;
	return VERDICT_KIND_NONE;
}

/* ---------- actions ---------- */

static void advise_state(struct verdict *verdict, uint64_t state)
{
	verdict_add_action(verdict, ADVICE_SMALLER_STATE, true, state * 3 / 4);
	verdict_add_action(verdict, ADVICE_SHARD_STATE, true, state / 2);
}

static bool is_checkpointed(const struct situation *at)
{
	for (size_t i = 0; at->map && i < at->map->block_count; i++)
		if (marks_at(at, at->map->blocks[i].stack).flags & MARK_CHECKPOINT)
			return true;
	return (marks_at(at, at->oom->stack).flags & MARK_CHECKPOINT) != 0;
}

static void advise_activations(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	if (!is_checkpointed(at))
		verdict_add_action(verdict, ADVICE_CHECKPOINT, true, graph_bytes(&verdict->evidence) * 2 / 3);
	verdict_add_action(verdict, ADVICE_SMALLER_BATCH, true, verdict->evidence.batch_bytes / 2);
}

static void advise(struct situation *at, uint64_t state)
{
	struct verdict *verdict = at->verdict;
	const struct verdict_evidence *evidence = &verdict->evidence;
	if (verdict->kind == VERDICT_KIND_OPTIMIZER)
		verdict_add_action(verdict, ADVICE_NO_FOREACH, false, 0);
	if (verdict->kind == VERDICT_KIND_EVALUATION) {
		verdict_add_action(verdict, ADVICE_NO_GRAD, true, graph_bytes(evidence));
		verdict_add_action(verdict, ADVICE_SMALLER_EVAL, false, 0);
	} else if (verdict->kind == VERDICT_KIND_LOAD) {
		verdict_add_action(verdict, ADVICE_LOAD_CPU, false, 0);
	} else {
		advise_activations(at);
	}
	advise_state(verdict, state);
	if (!verdict->action_count)
		verdict_add_action(verdict, ADVICE_SMALLER_MODEL, false, 0);
	if (evidence->batch_bytes * 20 < evidence->live_bytes)
		verdict_add_not(verdict, NOT_SMALLER_BATCH);
	if (evidence->idle_bytes < evidence->missing_bytes)
		verdict_add_not(verdict, NOT_SETTINGS);
	if (evidence->releasable_bytes < evidence->missing_bytes)
		verdict_add_not(verdict, NOT_EMPTY_CACHE);
}

/* ---------- the judgement ---------- */

void judge_size(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	struct verdict_evidence *evidence = &verdict->evidence;
	enum verdict_kind phase = phase_of_oom(at);
	evidence->batch_bytes = batch_bytes(at);
	if (judge_trial(at)) {
		advise(at, evidence->categories.bytes[MODEL_OPTIMIZER_STATE]);
		return;
	}
	uint64_t state = evidence->categories.bytes[MODEL_OPTIMIZER_STATE], needed = static_bytes(evidence);
	if (phase == VERDICT_KIND_OPTIMIZER && !evidence->steps) {
		needed += expected_state(at) - state;
		state = expected_state(at);
	}
	bool is_static = needed > verdict_usable_bytes(evidence);
	bool went_round = evidence->steps || at->work->backwards; /* a step of SGD allocates nothing */
	bool is_moment = phase != VERDICT_KIND_NONE && (went_round || phase == VERDICT_KIND_OPTIMIZER ||
							phase == VERDICT_KIND_LOAD || phase == VERDICT_KIND_EVALUATION);
	if (is_moment && !is_static) {
		verdict->cause = VERDICT_SPIKE;
		verdict->kind = phase;
	} else {
		verdict->cause = VERDICT_TOO_BIG;
		evidence->bytes = needed;
	}
	verdict->is_certain = is_static || evidence->idle_bytes < evidence->missing_bytes;
	advise(at, state);
}
