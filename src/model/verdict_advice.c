/* What makes too much less: the actions of the verdicts that are about size, with what each gains of this moment, and
 * what would not help. Must never name what the program does already, nor what gains nearly nothing. */
#include <string.h>

#include "base/bytes.h"
#include "model/verdict_private.h"

static const char *const foreach_words[] = {"_multi_tensor", NULL};

uint64_t verdict_graph_bytes(const struct verdict_evidence *evidence)
{
	return evidence->categories.bytes[MODEL_ACTIVATIONS] + evidence->pass_bytes;
}

/* What neither gets past this point nor is a twentieth of what is live is left out. */
static bool add(struct verdict *verdict, enum verdict_advice advice, uint64_t saves_bytes)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	if (saves_bytes < evidence->missing_bytes && saves_bytes * 20 < evidence->live_bytes)
		return false;
	return verdict_add_action(verdict, advice, true, saves_bytes);
}

/* ---------- the pass ---------- */

struct recomputed { /* by torch.utils.checkpoint, in the backward pass */
	bool is_checkpointed;
	uint64_t count, bytes;
};

static struct recomputed find_recomputed(const struct situation *at)
{
	struct recomputed found = {.is_checkpointed = marks_at(at, at->oom->stack).flags & MARK_CHECKPOINT};
	for (size_t i = 0; at->map && i < at->map->block_count; i++) {
		const struct segment_block *block = &at->map->blocks[i];
		bool is_again = model_label_detail(at->m, block->label) == MODEL_DETAIL_RECOMPUTED;
		found.is_checkpointed |= is_again || marks_at(at, block->stack).flags & MARK_CHECKPOINT;
		found.count += is_again;
		found.bytes += is_again ? block->bytes : 0;
	}
	return found;
}

/* Two of a layer may be the outputs of one module. */
static void advise_graph(struct situation *at, enum verdict_kind phase)
{
	struct verdict *verdict = at->verdict;
	struct recomputed found = find_recomputed(at);
	if (!found.is_checkpointed && phase != VERDICT_KIND_OPTIMIZER)
		add(verdict, ADVICE_CHECKPOINT, verdict_graph_bytes(&verdict->evidence) * 2 / 3);
	if (phase == VERDICT_KIND_BACKWARD && found.count >= 4)
		add(verdict, ADVICE_SHORTER_SEGMENTS, found.bytes / 2);
	add(verdict, ADVICE_SMALLER_BATCH, verdict->evidence.batch_bytes / 2);
}

/* The gradient of an embedding is as large as its table, whatever was looked up. */
static bool is_of_embedding(const struct situation *at)
{
	const struct def_stack *stack = defs_stack(at->m->defs, at->oom->stack);
	for (uint32_t i = 0; stack && i < stack->native_count; i++) {
		const struct def_native_frame *frame = defs_native_frame(at->m->defs, stack->native[i]);
		if (frame && frame->symbol && strstr(frame->symbol, "embedding_dense_backward"))
			return true;
	}
	return false;
}

/* ---------- evaluation ---------- */

/* Of what makes no gradients, half the batch halves what is asked for too. Without training, what this call does not
 * use may be elsewhere: which that is, nobody can tell. */
static void advise_evaluation(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	const struct verdict_evidence *evidence = &verdict->evidence;
	uint64_t open_bytes = evidence->categories.provisional_bytes[MODEL_ACTIVATIONS] + evidence->pass_bytes;
	bool is_open = open_bytes * 2 > verdict_graph_bytes(evidence);
	if (!at->work->is_without_grad && !verdict_is_unrecorded(at, at->oom->stack))
		add(verdict, is_open ? ADVICE_NO_GRAD_IF : ADVICE_NO_GRAD, verdict_graph_bytes(evidence));
	add(verdict, ADVICE_SMALLER_EVAL, (evidence->batch_bytes + evidence->asked_bytes) / 2);
	if (!at->work->has_trained && evidence->categories.bytes[MODEL_PARAMETERS] * 4 > evidence->live_bytes)
		verdict_add_action(verdict, ADVICE_SMALLER_MODEL, false, 0);
}

/* Of the weights, what is known to have elements of two bytes or less. */
static uint64_t narrow_weight_bytes(const struct situation *at)
{
	uint64_t bytes = 0;
	for (size_t i = 0; at->map && i < at->map->block_count; i++) {
		const struct segment_block *block = &at->map->blocks[i];
		struct model_elements of = model_elements(at->m, block->stack, block->bytes);
		if (model_label_category(at->m, block->label) == MODEL_PARAMETERS)
			bytes += of.bytes[ELEMENT_1_BYTE] + of.bytes[ELEMENT_2_BYTES];
	}
	return bytes;
}

/* Where weights that may be of four bytes are nearly all, as where a model is only used. */
static void advise_weights(struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t parameters = bytes_less(evidence->categories.bytes[MODEL_PARAMETERS], narrow_weight_bytes(at));
	if (parameters * 4 >= evidence->live_bytes * 3)
		verdict_add_action(at->verdict, ADVICE_HALF_WEIGHTS, true, parameters / 2);
}

/* ---------- all ---------- */

/* What the program's own optimizer has made in the step that goes on, and holds: no state. */
static uint64_t held_in_step_bytes(const struct situation *at)
{
	uint64_t bytes = 0;
	for (size_t i = 0; at->map && i < at->map->block_count; i++) {
		const struct segment_block *block = &at->map->blocks[i];
		enum model_category category = model_label_category(at->m, block->label);
		bool may_go = category == MODEL_OTHER || category == MODEL_TEMPORARY || category == MODEL_ACTIVATIONS;
		bytes += may_go && marks_at(at, block->stack).flags & MARK_FLAG(MARK_OPTIMIZER) ? block->bytes : 0;
	}
	return bytes;
}

static uint64_t state_in_map(const struct situation *at)
{
	uint64_t bytes = at->map ? 0 : UINT64_MAX;
	for (size_t i = 0; at->map && i < at->map->block_count; i++)
		if (model_label_category(at->m, at->map->blocks[i].label) == MODEL_OPTIMIZER_STATE)
			bytes += at->map->blocks[i].bytes;
	return bytes;
}

static void advise_step(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	if (stack_has_word(at, at->oom->stack, foreach_words))
		add(verdict, ADVICE_NO_FOREACH, verdict->evidence.categories.bytes[MODEL_TEMPORARY]);
	else
		add(verdict, ADVICE_STEP_PIECES, held_in_step_bytes(at));
}

static void advise_phase(struct situation *at, enum verdict_kind phase)
{
	struct verdict *verdict = at->verdict;
	if (verdict->kind == VERDICT_KIND_EVALUATION)
		advise_evaluation(at);
	else if (verdict->kind == VERDICT_KIND_LOAD)
		verdict_add_action(verdict, ADVICE_LOAD_CPU, false, 0);
	else
		advise_graph(at, phase);
	if (verdict->evidence.step_most_bytes)
		add(verdict, ADVICE_CUT_BATCH,
		    verdict->evidence.live_bytes + verdict->evidence.asked_bytes - verdict->evidence.step_most_bytes);
	if (phase == VERDICT_KIND_OPTIMIZER)
		advise_step(at);
	if (is_of_embedding(at))
		add(verdict, ADVICE_SPARSE_EMBEDDING, verdict->evidence.asked_bytes);
}

static bool advises_smaller_batch(const struct verdict *verdict)
{
	for (size_t i = 0; i < verdict->action_count; i++)
		if (verdict->actions[i].advice == ADVICE_SMALLER_BATCH || verdict->actions[i].advice == ADVICE_SMALLER_EVAL)
			return true;
	return false;
}

static void rule_out(struct verdict *verdict)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	if (evidence->batch_bytes * 20 < evidence->live_bytes && !evidence->next_bytes && !advises_smaller_batch(verdict))
		verdict_add_not(verdict, NOT_SMALLER_BATCH);
	if (evidence->idle_bytes < evidence->missing_bytes)
		verdict_add_not(verdict, NOT_SETTINGS);
	if (evidence->releasable_bytes < evidence->missing_bytes)
		verdict_add_not(verdict, NOT_EMPTY_CACHE);
}

void advise_size(struct situation *at, enum verdict_kind phase, uint64_t state_bytes)
{
	struct verdict *verdict = at->verdict;
	advise_phase(at, phase);
	advise_weights(at);
	/* What a step holds that an exception has ended counts as state after it. */
	if (phase == VERDICT_KIND_OPTIMIZER && verdict->evidence.steps)
		state_bytes = bytes_smaller(state_bytes, state_in_map(at));
	add(verdict, ADVICE_DROP_COPY, at->spare_bytes);
	if (phase == VERDICT_KIND_OPTIMIZER && verdict->evidence.next_bytes)
		add(verdict, ADVICE_SMALLER_BATCH, bytes_less(verdict->evidence.next_bytes, verdict->evidence.bytes) / 2);
	add(verdict, ADVICE_SMALLER_STATE, state_bytes * 3 / 4);
	add(verdict, ADVICE_SHARD_STATE, state_bytes / 2);
	if (!verdict->action_count)
		verdict_add_action(verdict, ADVICE_SMALLER_MODEL, false, 0);
	rule_out(verdict);
}
