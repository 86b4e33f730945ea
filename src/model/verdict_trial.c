/* Memory of the first step alone: what is tried out then (variants of a kernel, a warm-up) and never again. Owns by
 * which names of functions it is known. cuDNN's trial is not among it: PyTorch offers it only what is free. */
#include "model/verdict_private.h"

static const char *const trial_words[] = {"autotun", "do_bench", "benchmark", "warmup", "warm_up", NULL};

static bool is_of_trial(const struct situation *at, uint32_t stack)
{
	return stack_has_word(at, stack, trial_words);
}

static void add_live(struct situation *at)
{
	struct verdict_evidence *evidence = &at->verdict->evidence;
	uint32_t last = 0;
	bool is_last = false;
	for (size_t i = 0; at->map && i < at->map->block_count; i++) {
		const struct segment_block *block = &at->map->blocks[i];
		if (block->stack != last)
			is_last = is_of_trial(at, block->stack);
		last = block->stack;
		evidence->bytes += is_last ? block->bytes : 0;
		evidence->count += is_last;
		if (is_last && !evidence->stack)
			evidence->stack = block->stack;
	}
}

bool judge_trial(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	struct verdict_evidence *evidence = &verdict->evidence;
	struct verdict_evidence before = *evidence;
	bool is_asked = is_of_trial(at, at->oom->stack);
	add_live(at);
	evidence->bytes += is_asked ? evidence->asked_bytes : 0;
	evidence->count += is_asked;
	evidence->stack = is_asked ? at->oom->stack : evidence->stack;
	if (evidence->steps || !evidence->bytes || evidence->bytes < evidence->short_bytes ||
	    (!is_asked && evidence->bytes * 10 < evidence->live_bytes)) {
		*evidence = before;
		return false;
	}
	uint64_t live = evidence->bytes - (is_asked ? evidence->asked_bytes : 0);
	evidence->batch_bytes -= live < evidence->batch_bytes ? live : evidence->batch_bytes;
	verdict->cause = VERDICT_SPIKE;
	verdict->kind = VERDICT_KIND_FIRST_STEP;
	verdict_add_action(verdict, ADVICE_NO_TRIAL, true, evidence->bytes);
	return true;
}
