/* What would lower the peak. Owns the rule of each lever: when it applies, what it saves, and when
 * that is only a bound. Must never promise more than what is live at the peak, nor find fault with a
 * run: levers are offers. No malloc, stdio or locale: see summary.c. */
#include "report/levers.h"

#include <string.h>

#include "base/units.h"
#include "report/layout.h"
#include "report/levers_facts.h"

#define WORTH_SHIFT 5 /* a lever that saves less than a 32nd of the peak is not worth a word */

static uint64_t less(uint64_t bytes, uint64_t part)
{
	return bytes > part ? bytes - part : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool is_worth(const struct lever_facts *facts, uint64_t bytes)
{
	return bytes > facts->peak_bytes >> WORTH_SHIFT;
}

/* ---------- rows ---------- */

static struct text begin(struct levers *levers, const char *name)
{
	struct lever *lever = &levers->rows[levers->count];
	struct text text;
	*lever = (struct lever){.name = name, .reason = ""};
	text_init_fixed(&text, lever->text, sizeof lever->text - 1);
	return text;
}

static void end(struct levers *levers, uint64_t saves_bytes, bool up_to, const char *reason)
{
	struct lever *lever = &levers->rows[levers->count];
	lever->text[LEVER_TEXT_BYTES - 1] = 0;
	lever->saves_bytes = saves_bytes;
	lever->up_to = up_to;
	lever->applies = true;
	lever->reason = reason;
	levers->count += levers->count + 1 < LEVERS_MAX;
}

static void add(struct levers *levers, const char *name, const char *words, uint64_t saves_bytes, bool up_to,
		const char *reason)
{
	struct text text = begin(levers, name);
	text_add(&text, words);
	end(levers, saves_bytes, up_to, reason);
}

static void add_useless(struct levers *levers, const char *name, const char *words, const char *reason)
{
	size_t index = levers->count;
	add(levers, name, words, 0, false, reason);
	levers->rows[index].applies = false;
}

/* What is left of a saving when another moment, of `floor` bytes, becomes the peak. */
static uint64_t above(const struct lever_facts *facts, uint64_t saves, uint64_t floor)
{
	return smaller(saves, less(facts->peak_bytes, floor));
}

/* ---------- the optimizer ---------- */

/* Of state that is there through the whole step, `part` of 256 goes, and what a step makes for a moment. */
static uint64_t saved_of_state(const struct lever_facts *facts, uint64_t part)
{
	uint64_t goes = facts->state_bytes * part / 256;
	uint64_t moment = facts->is_optimizer_peak ? facts->category[MODEL_TEMPORARY] : 0;
	return smaller(less(facts->peak_bytes, facts->without_state_bytes + facts->state_bytes - goes),
		       facts->category[MODEL_OPTIMIZER_STATE] * part / 256 + moment);
}

static void find_optimizer(struct levers *levers, const struct lever_facts *facts)
{
	bool is_width_sure = facts->has_autocast; /* then parameters are fp32 */
	bool is_adam = facts->state_bytes > facts->parameter_bytes * 5 / 4;
	if (!facts->state_bytes) {
		add_useless(levers, "optimizer", "another optimizer", "this one has no state");
		return;
	}
	if (is_worth(facts, saved_of_state(facts, 256)))
		add(levers, "sgd", "an optimizer without state (SGD)", saved_of_state(facts, 256), false,
		    "the state is gone, and what a step makes for a moment");
	/* A byte a value and a 4-byte scale for each 256 of them, instead of four bytes. */
	if (is_adam && is_worth(facts, saved_of_state(facts, 191)))
		add(levers, "adam_8bit", "8-bit Adam (bitsandbytes)", saved_of_state(facts, 191), !is_width_sure,
		    is_width_sure ? "2 bytes of state a parameter instead of 8"
				  : "2 bytes of state a parameter instead of 8, if it is fp32 now");
	if (facts->is_optimizer_peak &&
	    is_worth(facts, less(facts->peak_bytes, facts->outside_optimizer_bytes)))
		add(levers, "fused_optimizer", "optimizer with fused=True",
		    less(facts->peak_bytes, facts->outside_optimizer_bytes), false,
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
		add_useless(levers, "zero3", "sharding", "it is in use");
		return;
	}
	for (unsigned i = 0; i < 3; i++) {
		bytes += parts[i];
		uint64_t saves = bytes / ranks * (ranks - 1);
		if (!is_worth(facts, saves) || !parts[i])
			continue;
		struct text text = begin(levers, stages[i].name);
		text_add(&text, stages[i].words);
		text_printf(&text, " on %llu GPUs", (unsigned long long)ranks);
		end(levers, saves, true, "each rank keeps its part of what is live at the peak");
		levers->rows[levers->count - 1].applies = facts->world_size > 1;
		if (facts->world_size == 1)
			levers->rows[levers->count - 1].reason = "needs more GPUs; this run has one process";
	}
}

/* ---------- gradients ---------- */

static void find_set_to_none(struct levers *levers, const struct lever_facts *facts)
{
	if (facts->kept_gradient_bytes * 2 < facts->parameter_bytes || facts->steps < 2)
		return;
	if (facts->backwards_a_step > 1) {
		add_useless(levers, "set_to_none", "zero_grad(set_to_none=True)",
			    "gradients are accumulated over several passes by design");
		return;
	}
	uint64_t saves = smaller(facts->kept_gradient_bytes, facts->category[MODEL_GRADIENTS]);
	bool is_sure = facts->fresh_peak_bytes != 0;
	if (is_sure)
		saves = less(facts->peak_bytes, facts->fresh_peak_bytes);
	if (is_worth(facts, saves))
		add(levers, "set_to_none", "zero_grad(set_to_none=True) before the forward", saves, !is_sure,
		    "gradients of the step before are there during the forward pass");
}

/* ---------- activations ---------- */

/* Without a graph an evaluation still holds the inputs and results of one operator at a time: perhaps four tensors. */
static void find_no_grad(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t rest = less(facts->peak_bytes, facts->dropped_bytes);
	if (facts->is_backward_peak || facts->is_optimizer_peak || !is_worth(facts, facts->dropped_bytes))
		return;
	add(levers, "no_grad", "torch.no_grad() around the evaluation",
	    less(facts->peak_bytes, larger(rest, facts->training_bytes)),
	    rest + 4 * facts->dropped_largest_bytes > facts->training_bytes,
	    "at the peak there is a graph that no backward pass used");
}

/* What a backward pass has at its highest is convex in the batch: half of it saves no more than half of
 * what grows with it, and no less than half of the way to what needs no batch at all. While the second half
 * is run, the gradients of the first are there. */
static void find_batch(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t kept = facts->backwards_a_step > 1
				? 0
				: less(facts->gradient_bytes, facts->category[MODEL_GRADIENTS]);
	uint64_t half = less(facts->batch_bytes / 2, kept);
	uint64_t most = above(facts, half, facts->static_bytes);
	uint64_t least = smaller(less(facts->peak_bytes, facts->optimizer_bytes),
				 less(less(facts->peak_bytes, facts->backward_floor_bytes) / 2, kept));
	if (facts->has_leak) {
		add_useless(levers, "half_batch", "a smaller batch", "a leak grows");
		return;
	}
	if (facts->batch_bytes < facts->peak_bytes / 10) {
		add_useless(levers, "half_batch", "a smaller batch", "little of the peak grows with it");
		return;
	}
	if (!is_worth(facts, most))
		return;
	struct text text = begin(levers, "half_batch");
	text_printf(&text, "half the batch, accumulated (%llu %% grows with it)",
		    (unsigned long long)(100 * facts->batch_bytes / facts->peak_bytes));
	end(levers, most, least < half - half / 10,
	    "activations, input and temporaries grow with the batch; gradients stay meanwhile");
}

/* The same, but there is one pass; and of scores of every token with every other a quarter is left. */
static void find_length(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t part = facts->batch_bytes / 2 + facts->score_bytes / 4;
	uint64_t most = above(facts, part, facts->static_bytes);
	uint64_t least = smaller(less(facts->peak_bytes, facts->optimizer_bytes),
				 less(facts->peak_bytes, facts->backward_floor_bytes) / 2);
	if (facts->has_sequence && facts->batch_bytes >= facts->peak_bytes / 10 && is_worth(facts, most))
		add(levers, "half_length", "half the length of the sequences", most, least < part - part / 10,
		    "what grows with the batch grows with the length too; attention scores with its square");
}

static void add_class(struct text *text, const char *function)
{
	const char *dot = strrchr(function, '.'), *start = function;
	for (const char *at = function; at < dot; at++)
		if (*at == '.')
			start = at + 1;
	text_add_escaped_bytes(text, start, dot ? (size_t)(dot - start) : strlen(start));
}

/* Inputs of the blocks stay, and one block at a time is made again. */
static void find_checkpointing(struct levers *levers, const struct lever_facts *facts)
{
	static const char name[] = "checkpointing", words[] = "activation checkpointing";
	uint64_t each = facts->block.count ? facts->block.bytes / facts->block.count : 0;
	uint64_t saves = less(facts->block.bytes, facts->block.boundary_bytes);
	if (facts->has_checkpoints) {
		add_useless(levers, name, words, "it is in use");
		return;
	}
	if (facts->category[MODEL_ACTIVATIONS] < facts->peak_bytes / 10) {
		add_useless(levers, name, words, "activations are little of the peak");
		return;
	}
	saves = above(facts, less(saves, less(each, facts->category[MODEL_TEMPORARY])), facts->static_bytes);
	if (facts->block.count < 2 || !is_worth(facts, saves))
		return;
	struct text text = begin(levers, name);
	text_printf(&text, "checkpointing the %llu ", (unsigned long long)facts->block.count);
	add_class(&text, facts->block.frame->function);
	text_add(&text, "s");
	end(levers, saves, true, "their activations are made again in the backward pass");
}

/* Weights get a copy of two bytes: where that is more than activations shrink, it is not worth it. What a group norm
 * is given stays as it is, and what it makes too where an activation function keeps that; a fused kernel that there is
 * for two bytes alone keeps no scores. */
static void find_precision(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t full = facts->norm_bytes + smaller(facts->norm_bytes, facts->gate_bytes);
	uint64_t saves = above(facts, (less(facts->halvable_bytes, full) + facts->unfused_bytes) / 2, facts->static_bytes);
	if (facts->has_autocast)
		add_useless(levers, "mixed_precision", "mixed precision", "it is in use");
	else if (is_worth(facts, saves) && saves > facts->parameter_bytes / 2)
		add(levers, "mixed_precision", "mixed precision (autocast to bfloat16)", saves, true,
		    "activations of two bytes, if they are fp32 now; weights get a copy");
}

/* They live until autocast ends. Without it, those of layers whose backward pass is over are gone: as large a
 * part as gradients are there, if these began at nothing. */
static void find_casts(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t saves = facts->cast_kept_bytes;
	if (facts->is_backward_peak && !facts->kept_gradient_bytes && facts->gradient_bytes)
		saves = (uint64_t)((double)saves * (double)smaller(facts->category[MODEL_GRADIENTS], facts->gradient_bytes) /
				   (double)facts->gradient_bytes);
	if ((facts->is_backward_peak || facts->is_optimizer_peak) && is_worth(facts, saves))
		add(levers, "autocast_copies", "backward and step outside of autocast", saves, true,
		    "autocast keeps its copies of the weights until it ends");
}

static void find_loss(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t saves = above(facts, less(facts->loss_bytes, facts->loss_largest_bytes / 8), facts->static_bytes);
	if (facts->loss_count < 2 || !is_worth(facts, saves))
		return;
	struct text text = begin(levers, "chunked_loss");
	text_printf(&text, "chunked cross-entropy (%llu tensors of up to ",
		    (unsigned long long)facts->loss_count);
	text_add_size(&text, facts->loss_largest_bytes);
	text_add(&text, ")");
	end(levers, saves, true, "logits, their logarithms and gradients, a part of the tokens at a time");
}

static void find_attention(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t saves = above(facts, facts->score_bytes, facts->static_bytes);
	if (facts->has_fused_attention || !is_worth(facts, saves))
		return;
	add(levers, "fused_attention", "scaled_dot_product_attention", saves, true,
	    "it keeps no scores of every token with every other");
}

/* ---------- the allocator ---------- */

static void find_allocator(struct levers *levers, const struct lever_facts *facts)
{
	static const char name[] = "allocator_settings";
	if (facts->unused_bytes > facts->reserved_bytes / 10)
		add(levers, name, "allocator settings, of what is reserved", facts->unused_bytes, true,
		    "it was reserved and not allocated; memtrace whatif tells which setting helps");
	else if (facts->reserved_bytes)
		add_useless(levers, name, "allocator settings", "nearly all that is reserved is allocated");
}

/* ---------- all ---------- */

static bool is_before(const struct lever *a, const struct lever *b)
{
	return a->applies != b->applies ? a->applies : a->saves_bytes > b->saves_bytes;
}

static void sort(struct levers *levers)
{
	for (size_t i = 1; i < levers->count; i++) {
		struct lever lever = levers->rows[i];
		size_t at = i;
		for (; at && is_before(&lever, &levers->rows[at - 1]); at--)
			levers->rows[at] = levers->rows[at - 1];
		levers->rows[at] = lever;
	}
}

void levers_find(struct levers *levers, const struct model *model, const struct defs *defs,
		 const struct model_device *device)
{
	struct lever_facts facts;
	*levers = (struct levers){.peak_bytes = device->peak.allocated_bytes};
	lever_facts_find(&facts, model, defs, device);
	if (!facts.steps || (!facts.gradient_bytes && !facts.backwards_a_step))
		return;
	find_batch(levers, &facts);
	find_length(levers, &facts);
	find_checkpointing(levers, &facts);
	find_precision(levers, &facts);
	find_casts(levers, &facts);
	find_loss(levers, &facts);
	find_attention(levers, &facts);
	find_optimizer(levers, &facts);
	find_set_to_none(levers, &facts);
	find_no_grad(levers, &facts);
	find_sharding(levers, &facts);
	find_allocator(levers, &facts);
	for (size_t i = 0; i < levers->count; i++)
		levers->rows[i].up_to |= levers->rows[i].saves_bytes && !facts.is_peak_in_steps;
	sort(levers);
}
