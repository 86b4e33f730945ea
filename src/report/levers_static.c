/* What would lower the peak by what is there through the whole step, the optimizer's state, gradients and parameters, or
 * by another use of the allocator. Owns these rules. */
#include "report/levers_rules.h"

/* ---------- the optimizer ---------- */

/* Of state that is there through the whole step, `part` of 256 goes, and what a step makes for a moment. */
static uint64_t saved_of_state(const struct lever_facts *facts, uint64_t part)
{
	uint64_t goes = facts->state_bytes * part / 256;
	uint64_t moment = facts->is_optimizer_peak ? facts->category[MODEL_TEMPORARY] : 0;
	return bytes_smaller(bytes_less(facts->peak_bytes, facts->without_state_bytes + facts->state_bytes - goes),
		       facts->category[MODEL_OPTIMIZER_STATE] * part / 256 + moment);
}

/* A byte a value and a 4-byte scale for each 256 of them. */
static void find_adam_8bit(struct levers *levers, const struct lever_facts *facts)
{
	bool is_narrow = facts->state_element_bytes == 2;
	bool is_sure = is_narrow || facts->state_element_bytes == 4 || facts->has_autocast; /* then parameters are fp32 */
	uint64_t saves = saved_of_state(facts, is_narrow ? 126 : 191);
	if (lever_is_worth(facts, saves))
		lever_add(levers, "adam_8bit", "8-bit Adam (bitsandbytes)", saves, !is_sure,
			  is_narrow ? "2 bytes of state a parameter instead of 4"
			  : is_sure ? "2 bytes of state a parameter instead of 8"
				    : "2 bytes of state a parameter instead of 8, if it is fp32 now");
}

static void find_optimizer(struct levers *levers, const struct lever_facts *facts)
{
	bool is_adam = facts->state_bytes > facts->parameter_bytes * 5 / 4;
	if (!facts->state_bytes) {
		lever_add_useless(levers, "optimizer", "another optimizer", "this one has no state");
		return;
	}
	if (lever_is_worth(facts, saved_of_state(facts, 256)))
		lever_add(levers, "sgd", "an optimizer without state (SGD)", saved_of_state(facts, 256), false,
		    "the state is gone, and what a step makes for a moment");
	if (is_adam)
		find_adam_8bit(levers, facts);
	if (facts->is_optimizer_peak &&
	    lever_is_worth(facts, bytes_less(facts->peak_bytes, facts->outside_optimizer_bytes)))
		lever_add(levers, "fused_optimizer", "optimizer with fused=True",
		    bytes_less(facts->peak_bytes, facts->outside_optimizer_bytes), false,
		    "the peak is what a step of the optimizer makes for a moment");
}

static void find_sharding(struct levers *levers, const struct lever_facts *facts)
{
	static const struct {
		const char *name, *words;
	} stages[] = {{"zero1", "sharding the optimizer's state (ZeRO-1)"},
		      {"zero2", "sharding gradients too (ZeRO-2)"},
		      {"zero3", "sharding parameters too (ZeRO-3, FSDP)"}};
	uint64_t ranks = facts->world_size > 1 ? facts->world_size : 2, bytes = 0;
	/* DistributedDataParallel's buckets are gradients, or copies of them that sharding does without. */
	const uint64_t parts[] = {facts->category[MODEL_OPTIMIZER_STATE],
				  facts->category[MODEL_GRADIENTS] + facts->category[MODEL_COMMUNICATION],
				  facts->category[MODEL_PARAMETERS]};
	if (facts->has_shards) {
		lever_add_useless(levers, "zero3", "sharding", "it is in use");
		return;
	}
	for (unsigned i = 0; i < 3; i++) {
		bytes += parts[i];
		uint64_t saves = bytes / ranks * (ranks - 1);
		if (!lever_is_worth(facts, saves) || !parts[i])
			continue;
		struct text text = lever_begin(levers, stages[i].name);
		text_add(&text, stages[i].words);
		text_printf(&text, " on %llu GPUs", (unsigned long long)ranks);
		lever_end(levers, saves, true, "each rank keeps its part of what is live at the peak");
		levers->rows[levers->count - 1].applies = facts->world_size > 1;
		if (facts->world_size == 1)
			levers->rows[levers->count - 1].reason = "needs more GPUs; this run has one process";
	}
}

/* ---------- gradients ---------- */

static void find_set_to_none(struct levers *levers, const struct lever_facts *facts)
{
	/* Those of several passes are added up by design. */
	if (facts->kept_gradient_bytes * 2 < facts->parameter_bytes || facts->steps < 2 || facts->backwards_a_step > 1)
		return;
	uint64_t saves = bytes_smaller(facts->kept_gradient_bytes, facts->category[MODEL_GRADIENTS]);
	saves = lever_above(facts, saves, bytes_larger(facts->fresh_peak_bytes, facts->static_bytes));
	bool is_sure = facts->fresh_peak_bytes && facts->fresh_most_bytes - facts->fresh_peak_bytes <= saves / 10;
	if (lever_is_worth(facts, saves))
		lever_add(levers, "set_to_none", "zero_grad(set_to_none=True) before the forward", saves, !is_sure,
		    "gradients of the step before are there during the forward pass");
}

/* ---------- the allocator ---------- */

static void find_allocator(struct levers *levers, const struct lever_facts *facts)
{
	static const char name[] = LEVER_OF_ALLOCATOR;
	if (facts->unused_bytes > facts->reserved_bytes / 10)
		lever_add(levers, name, "allocator settings, of what is reserved", facts->unused_bytes, true,
		    "it was reserved and not allocated; memtrace whatif tells which setting helps");
	else if (facts->reserved_bytes)
		lever_add_useless(levers, name, "allocator settings", "nearly all that is reserved is allocated");
}

void levers_find_static(struct levers *levers, const struct lever_facts *facts)
{
	find_optimizer(levers, facts);
	find_set_to_none(levers, facts);
	find_sharding(levers, facts);
	find_allocator(levers, facts);
}
