/* What would lower the peak by what passes make: activations, losses, a graph that nobody uses. Owns these rules. */
#include <string.h>

#include "base/units.h"
#include "report/layout.h"
#include "report/levers_rules.h"

static bool has_unused_graph(const struct lever_facts *facts)
{
	bool is_training_peak = facts->is_backward_peak || facts->is_optimizer_peak;
	return facts->unused_graph_bytes || (!is_training_peak && lever_is_worth(facts, facts->dropped_bytes));
}

/* A row that comes before all others. */
static void add_mend(struct levers *levers, const char *name, const char *words, uint64_t saves, bool up_to,
		     const char *reason)
{
	lever_add(levers, name, words, saves, up_to, reason);
	levers->rows[levers->count - 1].mends_fault = true;
}

static void add_no_grad(struct levers *levers, uint64_t saves, bool up_to, const char *reason)
{
	add_mend(levers, "no_grad", "torch.no_grad() around the evaluation", saves, up_to, reason);
}

/* Without a graph an evaluation still holds the inputs and results of one operator at a time: perhaps four tensors. */
static void find_no_grad(struct levers *levers, const struct lever_facts *facts)
{
	static const char reason[] = "at the peak there is a graph that no backward pass used";
	uint64_t rest = bytes_less(facts->peak_bytes, facts->dropped_bytes);
	uint64_t left = facts->unused_graph_bytes ? bytes_less(facts->peak_bytes, facts->unused_graph_bytes) :
						    bytes_larger(rest, facts->training_bytes);
	uint64_t others = facts->is_optimizer_peak ? facts->category[MODEL_TEMPORARY] : 0; /* not there in an evaluation */
	if (has_unused_graph(facts))
		add_no_grad(levers, bytes_less(facts->peak_bytes, left),
			    bytes_less(rest, others) + 4 * facts->dropped_largest_bytes > left, reason);
	else if (lever_is_worth(facts, facts->no_grad_bytes))
		add_no_grad(levers, facts->no_grad_bytes, true, "memory ran out in a pass that no backward follows");
}

/* What was told as a fault, beside that: what mending it would save. */
static void find_mends(struct levers *levers, const struct lever_facts *facts)
{
	if (lever_is_worth(facts, facts->kept_graph_bytes))
		add_mend(levers, "kept_graph", "del what holds the graph of the step before", facts->kept_graph_bytes, false,
			 "its backward pass has run");
	if (lever_is_worth(facts, facts->leak_bytes))
		add_mend(levers, "leak", "not keeping what grows", facts->leak_bytes, true,
			 "live memory grows from step to step");
	if (lever_is_worth(facts, facts->copy_bytes))
		add_mend(levers, "copy", "not keeping twice what was found twice", facts->copy_bytes, true,
			 "the same data is twice in memory");
}

static void add_name(struct text *text, const struct def_python_frame *frame)
{
	const char *slash = strrchr(frame->file, '/');
	text_add(text, " (");
	text_add_escaped(text, slash ? slash + 1 : frame->file);
	text_printf(text, ":%d)", frame->line);
}

/* Results of all batches of an evaluation that stay on the GPU: what is left is what one batch has, perhaps four tensors
 * as large as its result, and what training has. */
static void find_kept(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t each = facts->kept.each_bytes, rest = bytes_less(facts->peak_bytes, facts->kept.bytes);
	uint64_t left = bytes_larger(rest + each, bytes_larger(facts->training_bytes, facts->static_bytes));
	if (facts->has_leak || !lever_is_worth(facts, bytes_less(facts->peak_bytes, left)))
		return;
	struct text text = lever_begin(levers, "kept_outputs");
	text_add(&text, facts->kept.is_of_trainer ? "eval_accumulation_steps=1" : "evaluation's results to the CPU");
	if (facts->kept.line)
		add_name(&text, facts->kept.line);
	lever_end(levers, bytes_less(facts->peak_bytes, left), !each || rest + 4 * each > left,
		  facts->kept.is_of_trainer ?
			  "Trainer keeps what all batches of an evaluation gave on the GPU until its end; that moves it to the CPU" :
			  "what all batches of an evaluation gave is on the GPU: move each to the CPU, or keep what the metric needs");
}

/* Smaller passes in training do not lower a peak of an evaluation; and most that would lower that goes without a graph. */
static void find_no_other(struct levers *levers)
{
	static const char reason[] = "most of the peak is of an evaluation";
	lever_add_useless(levers, "checkpointing", "activation checkpointing", reason);
	lever_add_useless(levers, "half_batch", "a smaller batch in training", reason);
}

/* What a backward pass has at its highest is convex in the batch: half of it saves no more than half of
 * what grows with it, and no less than half of the way to what needs no batch at all. While the second half
 * is run, the gradients of the first are there. */
static void find_batch(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t kept = facts->backwards_a_step > 1
				? 0
				: bytes_less(facts->gradient_bytes, facts->category[MODEL_GRADIENTS]);
	uint64_t half = bytes_less(facts->batch_bytes / 2, kept);
	uint64_t most = lever_above(facts, half, facts->static_bytes);
	uint64_t least = bytes_smaller(bytes_less(facts->peak_bytes, facts->optimizer_bytes),
				 bytes_less(bytes_less(facts->peak_bytes, facts->backward_floor_bytes) / 2, kept));
	if (facts->has_leak) {
		lever_add_useless(levers, "half_batch", "a smaller batch", "a leak grows");
		return;
	}
	if (facts->batch_bytes < facts->peak_bytes / 10) {
		lever_add_useless(levers, "half_batch", "a smaller batch", "little of the peak grows with it");
		return;
	}
	if (!lever_is_worth(facts, most))
		return;
	struct text text = lever_begin(levers, "half_batch");
	text_printf(&text, "half the batch, accumulated (%llu %% grows with it)",
		    (unsigned long long)(100 * facts->batch_bytes / facts->peak_bytes));
	lever_end(levers, most, least < half - half / 10,
	    "activations, input and temporaries grow with the batch; gradients stay meanwhile");
}

/* The same, but there is one pass; and of scores of every token with every other a quarter is left. */
static void find_length(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t part = facts->batch_bytes / 2 + facts->score_bytes / 4;
	uint64_t most = lever_above(facts, part, facts->static_bytes);
	uint64_t least = bytes_smaller(bytes_less(facts->peak_bytes, facts->optimizer_bytes),
				 bytes_less(facts->peak_bytes, facts->backward_floor_bytes) / 2);
	if (facts->has_sequence && facts->batch_bytes >= facts->peak_bytes / 10 && lever_is_worth(facts, most))
		lever_add(levers, "half_length", "half the length of the sequences", most, least < part - part / 10,
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

/* Inputs of the blocks stay, and one block at a time is made again: the largest at last beside all gradients, the one
 * that comes in and the one that it makes. */
static void find_checkpointing(struct levers *levers, const struct lever_facts *facts)
{
	static const char name[] = "checkpointing", words[] = "activation checkpointing";
	uint64_t each = facts->block.call_bytes;
	uint64_t passed = facts->block.count ? facts->block.boundary_bytes / facts->block.count : 0;
	uint64_t work = each + passed + 2 * facts->block.largest_bytes + facts->kernel_bytes;
	uint64_t floor = bytes_larger(facts->static_bytes, facts->backward_floor_bytes + work);
	uint64_t saves = bytes_less(facts->block.bytes, facts->block.boundary_bytes);
	if (facts->has_checkpoints) {
		lever_add_useless(levers, name, words, "it is in use");
		return;
	}
	if (facts->category[MODEL_ACTIVATIONS] < facts->peak_bytes / 10) {
		lever_add_useless(levers, name, words, "activations are little of the peak");
		return;
	}
	saves = lever_most_above(facts, bytes_less(saves, bytes_less(each, facts->category[MODEL_TEMPORARY])), floor);
	if (facts->block.count < 2 || !lever_is_worth(facts, saves))
		return;
	struct text text = lever_begin(levers, name);
	text_add(&text, "checkpointing ");
	add_class(&text, facts->block.frame->function);
	if (facts->block.is_counted)
		text_printf(&text, " (%llu calls)", (unsigned long long)facts->block.count);
	lever_end(levers, saves, true, "their activations are made again in the backward pass");
}

/* Weights get a copy of two bytes: where that is more than activations shrink, it is not worth it. What a group norm
 * is given stays as it is, and what it makes too where an activation function keeps that; a fused kernel that there is
 * for two bytes alone keeps no scores. */
static void find_precision(struct levers *levers, const struct lever_facts *facts)
{
	static const char name[] = "mixed_precision";
	bool is_half = facts->half_bytes > 9 * (facts->single_bytes + facts->unsized_bytes);
	bool is_single = facts->single_bytes > 9 * facts->unsized_bytes;
	uint64_t full = facts->norm_bytes + bytes_smaller(facts->norm_bytes, facts->gate_bytes);
	uint64_t saves = lever_most_above(facts, (bytes_less(facts->halvable_bytes, full) + facts->unfused_bytes) / 2, facts->static_bytes);
	if (facts->has_autocast)
		lever_add_useless(levers, name, "mixed precision", "it is in use");
	else if (facts->parameter_element_bytes == 2)
		lever_add_useless(levers, name, "mixed precision", "weights are of two bytes already");
	else if (is_half)
		lever_add_useless(levers, name, "mixed precision", "activations are of two bytes already");
	else if (lever_is_worth(facts, saves) && saves > facts->parameter_bytes / 2)
		lever_add(levers, name, "mixed precision (autocast to bfloat16)", saves, true,
			  is_single ? "activations of two bytes; weights get a copy"
				    : "activations of two bytes, if they are fp32 now; weights get a copy");
}

/* They live until autocast ends. Without it, those of layers whose backward pass is over are gone: as large a
 * part as gradients are there, if these began at nothing. */
static void find_casts(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t saves = facts->cast_kept_bytes;
	if (facts->is_backward_peak && !facts->kept_gradient_bytes && facts->gradient_bytes)
		saves = (uint64_t)((double)saves * (double)bytes_smaller(facts->category[MODEL_GRADIENTS], facts->gradient_bytes) /
				   (double)facts->gradient_bytes);
	if ((facts->is_backward_peak || facts->is_optimizer_peak) && lever_is_worth(facts, saves))
		lever_add(levers, "autocast_copies", "backward and step outside of autocast", saves, true,
		    "autocast keeps its copies of the weights until it ends");
}

/* In eight parts, one of which is there at a time. */
static void find_loss(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t saves = lever_most_above(facts, facts->loss_bytes / 8 * 7, facts->static_bytes);
	if (facts->loss_count < 2 || !lever_is_worth(facts, saves))
		return;
	struct text text = lever_begin(levers, "chunked_loss");
	text_printf(&text, "chunked cross-entropy (%llu tensors of up to ",
		    (unsigned long long)facts->loss_count);
	text_add_size(&text, facts->loss_largest_bytes);
	text_add(&text, ")");
	lever_end(levers, saves, true, "logits, their logarithms and gradients, a part of the tokens at a time");
}

static void find_attention(struct levers *levers, const struct lever_facts *facts)
{
	uint64_t saves = lever_most_above(facts, facts->score_bytes, facts->static_bytes);
	if (facts->has_fused_attention || !lever_is_worth(facts, saves))
		return;
	lever_add(levers, "fused_attention", "scaled_dot_product_attention", saves, true,
	    "it keeps no scores of every token with every other");
}

void levers_find_activations(struct levers *levers, const struct lever_facts *facts)
{
	find_no_grad(levers, facts);
	find_mends(levers, facts);
	find_kept(levers, facts);
	if (has_unused_graph(facts) && facts->dropped_bytes > facts->category[MODEL_ACTIVATIONS] / 2) {
		find_no_other(levers);
		return;
	}
	find_batch(levers, facts);
	find_length(levers, facts);
	find_checkpointing(levers, facts);
	find_precision(levers, facts);
	find_casts(levers, facts);
	find_loss(levers, facts);
	find_attention(levers, facts);
}
