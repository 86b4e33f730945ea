/* Nothing leaks and nothing is in pieces: it is too much. Owns whether that is a moment (spike) or the whole
 * (too_big). What would make it less is said in verdict_advice.c. */
#include "base/bytes.h"
#include "model/verdict_private.h"

#define STEPS_USUAL 8 /* of so many it can be said what steps usually take */

static const char *const evaluation_words[] = {"eval", "valid", "test_", "predict", "generate", "infer", "sample", NULL};
static const char *const load_words[] = {"load", "state_dict", "from_pretrained", "save", NULL};
static const char *const single_words[] = {"_single_tensor", "_fused", NULL};
static const char *const adam_words[] = {"adam", "lamb", "lion", NULL};

static uint64_t static_bytes(const struct verdict_evidence *evidence)
{
	const uint64_t *bytes = evidence->categories.bytes;
	return bytes[MODEL_PARAMETERS] + bytes[MODEL_GRADIENTS] + bytes[MODEL_OPTIMIZER_STATE];
}

/* Parameters that the optimizer steps: they have gradients, of their size. */
static uint64_t stepped_bytes(const struct situation *at)
{
	const uint64_t *bytes = at->verdict->evidence.categories.bytes;
	bool are_fewer = bytes[MODEL_GRADIENTS] && bytes[MODEL_GRADIENTS] < bytes[MODEL_PARAMETERS];
	return bytes[are_fewer ? MODEL_GRADIENTS : MODEL_PARAMETERS];
}

/* When the first step of an optimizer is going on: what its state will be. */
static uint64_t expected_state(const struct situation *at)
{
	uint64_t parameters = stepped_bytes(at);
	uint64_t state = at->verdict->evidence.categories.bytes[MODEL_OPTIMIZER_STATE];
	uint64_t copies = stack_has_word(at, at->oom->stack, adam_words) ? 2 : 1;
	return copies * parameters > state ? copies * parameters : state;
}

static bool is_first_of_optimizer(const struct situation *at)
{
	return at->oom && !at->verdict->evidence.steps &&
	       marks_at(at, at->oom->stack).flags & MARK_FLAG(MARK_OPTIMIZER);
}

uint64_t state_bytes_to_come(const struct situation *at)
{
	uint64_t state = at->verdict->evidence.categories.bytes[MODEL_OPTIMIZER_STATE];
	return is_first_of_optimizer(at) ? expected_state(at) - state : 0;
}

/* Adam takes all parameters at once where it can, and then needs as much again as they have. */
uint64_t step_bytes_to_come(const struct situation *at)
{
	uint64_t state = state_bytes_to_come(at);
	if (!state)
		return 0;
	bool is_one_by_one = stack_has_word(at, at->oom->stack, single_words);
	uint64_t all = is_one_by_one || !stack_has_word(at, at->oom->stack, adam_words) ? 0 : stepped_bytes(at);
	return state + all;
}

static uint64_t state_in(const struct situation *at, const struct step_moment *moment)
{
	uint64_t bytes = 0;
	for (uint8_t label = 0; label < LABEL_COUNT; label++)
		if (model_label_category(at->m, label) == MODEL_OPTIMIZER_STATE)
			bytes += moment->bytes[label];
	return bytes;
}

static uint64_t state_made_in(const struct situation *at, const struct step_record *step)
{
	const struct step_moment *backward = &step->after[MODEL_AFTER_BACKWARD], *all = &step->after[MODEL_AFTER_OPTIMIZER];
	return backward->is_known && all->is_known ? bytes_less(state_in(at, all), state_in(at, backward)) : 0;
}

uint64_t next_step_bytes(const struct situation *at)
{
	bool is_first = is_first_of_optimizer(at);
	const struct step_record *first = is_first ? step_at(at->m, at->oom->device, at->oom->sequence) :
						     last_step_before(at->m, at->oom->device, at->oom->sequence);
	if (!first)
		return 0;
	uint64_t state_bytes = is_first ? expected_state(at) : state_made_in(at, first);
	uint64_t peak_bytes = bytes_larger(first->phase_peak_bytes[MODEL_PHASE_FORWARD],
					   first->phase_peak_bytes[MODEL_PHASE_BACKWARD]);
	uint64_t outside = bytes_less(at->oom->allocated_bytes, at->oom->pytorch_allocated_bytes);
	uint64_t next_bytes = state_bytes ? bytes_less(peak_bytes, outside) + state_bytes : 0;
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t room = evidence->live_bytes + evidence->idle_bytes + known_or_none(evidence->free_bytes);
	return next_bytes > room ? next_bytes : 0;
}

/* In an optimizer's step no pass goes on: what was made after the last one is no graph. */
static void end_pass(struct verdict_evidence *evidence)
{
	struct model_categories *categories = &evidence->categories;
	uint64_t undecided = categories->provisional_bytes[MODEL_ACTIVATIONS];
	categories->bytes[MODEL_ACTIVATIONS] -= undecided;
	categories->provisional_bytes[MODEL_ACTIVATIONS] = 0;
	categories->bytes[MODEL_OTHER] += undecided;
	evidence->pass_bytes = 0;
}

/* What is made anew for each batch: the graph, and what is temporary and not counted with it; in an optimizer's step
 * that is the optimizer's. */
static uint64_t batch_bytes(const struct situation *at, enum verdict_kind phase)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t temporary = evidence->categories.bytes[MODEL_TEMPORARY];
	uint64_t counted = at->work->has_trained ? 0 : evidence->categories.provisional_bytes[MODEL_TEMPORARY];
	if (is_building(at))
		return 0;
	if (phase == VERDICT_KIND_OPTIMIZER)
		return evidence->categories.bytes[MODEL_ACTIVATIONS];
	return verdict_graph_bytes(evidence) + (temporary > counted ? temporary - counted : 0);
}

/* Of the graph of a try that ran out: an exception that is being handled holds the frames that it came through. */
static uint64_t held_bytes(const struct situation *at)
{
	uint64_t bytes = 0;
	for (size_t i = 0; at->before && at->map && i < at->map->block_count; i++) {
		const struct segment_block *block = &at->map->blocks[i];
		struct label_meaning meaning = label_meaning(block->label, at->work->has_trained);
		bool is_of_pass = meaning.category == MODEL_ACTIVATIONS || meaning.is_provisional;
		bytes += is_of_pass && block->born < at->before->oom.sequence ? block->bytes : 0;
	}
	return bytes;
}

static void find_held(struct situation *at)
{
	struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t bytes = held_bytes(at);
	if (bytes * 5 < evidence->live_bytes || bytes < evidence->missing_bytes)
		return;
	evidence->held_bytes = bytes;
	verdict_add_action(at->verdict, ADVICE_LEAVE_EXCEPT, true, bytes);
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

/* Of parameters alone, gradients and two moments of Adam, which have their size: whatever the batch, that is the least. */
static uint64_t training_bytes(const struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	const uint64_t *bytes = evidence->categories.bytes;
	bool has_begun = evidence->steps || bytes[MODEL_GRADIENTS] || bytes[MODEL_OPTIMIZER_STATE];
	uint64_t least = 4 * bytes[MODEL_PARAMETERS];
	return !has_begun && least > verdict_usable_bytes(evidence) ? least : 0;
}

/* ---------- the judgement ---------- */

/* Several steps made do with less than half of what this one has and asks for, and the batch makes the difference. */
static bool is_far_above(const struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t now = evidence->live_bytes + evidence->asked_bytes, before = at->work->step_most_bytes;
	return evidence->steps >= STEPS_USUAL && before && now / 2 >= before &&
	       evidence->batch_bytes + evidence->asked_bytes >= (now - before) / 2;
}

void judge_size(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	struct verdict_evidence *evidence = &verdict->evidence;
	enum verdict_kind phase = phase_of_oom(at);
	if (phase == VERDICT_KIND_OPTIMIZER)
		end_pass(evidence);
	evidence->batch_bytes = batch_bytes(at, phase);
	if (judge_trial(at)) {
		advise_size(at, phase, evidence->categories.bytes[MODEL_OPTIMIZER_STATE]);
		return;
	}
	uint64_t state = evidence->categories.bytes[MODEL_OPTIMIZER_STATE], needed = static_bytes(evidence);
	if (phase == VERDICT_KIND_OPTIMIZER && !evidence->steps) {
		needed += expected_state(at) - state;
		state = expected_state(at);
	}
	evidence->next_bytes = next_step_bytes(at);
	bool is_static = needed > verdict_usable_bytes(evidence), is_whole = is_static || evidence->next_bytes;
	bool went_round = evidence->steps || at->work->backwards; /* a step of SGD allocates nothing */
	bool is_moment = phase != VERDICT_KIND_NONE && (went_round || phase == VERDICT_KIND_OPTIMIZER ||
							phase == VERDICT_KIND_LOAD || phase == VERDICT_KIND_EVALUATION);
	bool is_of_batch = phase == VERDICT_KIND_NONE || phase == VERDICT_KIND_BACKWARD;
	if (is_of_batch && !is_whole && is_far_above(at))
		evidence->step_most_bytes = at->work->step_most_bytes;
	if ((is_moment || evidence->step_most_bytes) && !is_whole) {
		verdict->cause = VERDICT_SPIKE;
		verdict->kind = phase;
	} else {
		verdict->cause = VERDICT_TOO_BIG;
		evidence->bytes = needed;
		evidence->training_bytes = training_bytes(at);
	}
	verdict->is_certain = is_static || evidence->idle_bytes < evidence->missing_bytes;
	find_held(at);
	advise_size(at, phase, state);
}
