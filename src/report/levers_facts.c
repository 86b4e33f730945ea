/* Facts for the levers. Owns which operators and symbols stand for what: losses, attention scores,
 * autocast's copies. Must never count a block for a lever that its category excludes. No malloc or
 * stdio: it runs inside the traced program. */
#include "report/levers_facts.h"

#include <string.h>

#include "base/bytes.h"
#include "model/verdict.h"
#include "report/by_name.h"
#include "report/elements.h"
#include "report/json.h"
#include "report/sites.h"
#include "trace/marks.h"

/* ---------- stacks ---------- */

static bool has_native(const struct defs *defs, const struct def_stack *stack, const char *part)
{
	for (uint32_t i = 0; i < stack->native_count; i++) {
		const struct def_native_frame *frame = defs_native_frame(defs, stack->native[i]);
		if (frame && frame->name && strstr(frame->name, part))
			return true;
	}
	return false;
}

static bool begins_with_any(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (!strncmp(text, *words, strlen(*words)))
			return true;
	return false;
}

/* As by_name_operator() calls them. */
static const char *const losses[] = {"aten::cross_entropy_loss", "aten::log_softmax", "aten::nll_loss",
				     "NllLoss", "LogSoftmax", "SliceBackward", NULL};
static const char *const logarithms[] = {"aten::cross_entropy_loss", "aten::log_softmax", "LogSoftmax", NULL};
static const char *const scores[] = {"aten::softmax", "aten::_softmax", "SoftmaxBackward", NULL};
static const char *const dropouts[] = {"aten::dropout", "aten::native_dropout", "NativeDropoutBackward", NULL};
static const char *const full_precision[] = {
	"aten::add", "aten::cross_entropy_loss", "aten::log_softmax", "aten::softmax", "aten::nll_loss",
	"aten::embedding", "aten::to_", "NllLoss", "LogSoftmax", "aten::mse_loss",
	"NativeLayerNorm", "aten::zeros", "aten::full", NULL};

/* Autocast makes these in full precision, of an input of the same size in full precision … */
static const char *const norms[] = {"aten::group_norm", NULL};
/* … and these keep what they are given, as it is. */
static const char *const gates[] = {"aten::silu", "aten::gelu", "aten::mish", "aten::hardswish", "aten::leaky_relu",
				    "aten::elu", NULL};

/* Of attention without a fused kernel; its other tensors are known by their native frames. */
static const char *const unfused[] = {"SafeSoftmaxBackward", NULL};

#define NAME_BYTES 128
#define SCORES_MAX 16
#define LOSS_LEAST_SHIFT 6 /* a block of a loss that is less than a 64th of the peak is no burden */

/* The functions of the program or a library that made scores, and how large these were. */
struct scores {
	struct {
		const struct def_python_frame *frame;
		uint64_t each_bytes;
	} made[SCORES_MAX];
	size_t count;
};

static uint64_t bytes_of_each(const struct model_share *share)
{
	return share->count ? share->bytes / share->count : 0;
}

static const struct def_python_frame *site_of(const struct defs *defs, const struct model_share *share)
{
	struct stack_marks marks;
	marks_of_stack(defs, share->stack, &marks);
	return marks.site ? defs_python_frame(defs, marks.site) : NULL;
}

static void note_scores(struct scores *scores, const struct defs *defs, const struct model_share *share)
{
	const struct def_python_frame *frame = site_of(defs, share);
	if (!frame || scores->count == SCORES_MAX)
		return;
	scores->made[scores->count].frame = frame;
	scores->made[scores->count++].each_bytes = bytes_of_each(share);
}

/* In a function that makes scores: as large as they are, or its mask of a byte a value. */
static bool is_dropout_of_scores(const struct scores *scores, const struct defs *defs,
				 const struct model_share *share)
{
	const struct def_python_frame *frame = site_of(defs, share);
	uint64_t each = bytes_of_each(share);
	for (size_t i = 0; frame && i < scores->count; i++) {
		uint64_t of_scores = scores->made[i].each_bytes;
		if ((each == of_scores || each == of_scores / 2 || each == of_scores / 4) &&
		    !strcmp(frame->function, scores->made[i].frame->function) &&
		    !strcmp(frame->file, scores->made[i].frame->file))
			return true;
	}
	return false;
}

/* Logits before the loss takes them, and copies of them: as large as what it makes, or in half the precision. */
static bool is_like_loss(const struct lever_facts *facts, const struct model_share *share)
{
	uint64_t each = bytes_of_each(share), loss = facts->loss_each_bytes, slack = loss / 16;
	return share->count <= 2 && each >= facts->peak_bytes >> LOSS_LEAST_SHIFT &&
	       (each >= loss / 2 - slack / 2) && each <= loss + slack && (each >= loss - slack || each <= loss / 2 + slack / 2);
}

/* What may have elements of four bytes: those of one byte are masks, or room for anything, as cuDNN takes it. */
static uint64_t halvable_bytes(const struct model *model, const struct model_share *share)
{
	struct model_elements of = model_elements(model, share->stack, share->bytes);
	return of.bytes[ELEMENT_UNKNOWN] + of.bytes[ELEMENT_1_BYTE] + of.bytes[ELEMENT_4_BYTES];
}

/* What autocast would make of two bytes an element. */
static void take_castable(struct lever_facts *facts, const struct model *model, const char *name,
			  const struct model_share *share)
{
	struct model_elements of = model_elements(model, share->stack, share->bytes);
	uint64_t halvable = halvable_bytes(model, share);
	if (!begins_with_any(name, full_precision)) {
		facts->halvable_bytes += halvable;
		facts->single_bytes += of.bytes[ELEMENT_4_BYTES];
		facts->half_bytes += of.bytes[ELEMENT_2_BYTES];
		facts->unsized_bytes += of.bytes[ELEMENT_UNKNOWN];
	}
	if (begins_with_any(name, unfused))
		facts->unfused_bytes += halvable;
	if (begins_with_any(name, norms))
		facts->norm_bytes += halvable;
	if (begins_with_any(name, gates))
		facts->gate_bytes += halvable;
}

static void take_operator(struct lever_facts *facts, const struct scores *made, const struct defs *defs,
			  const char *name, const struct model_share *share)
{
	uint64_t each = bytes_of_each(share);
	bool is_loss = begins_with_any(name, losses) && each >= facts->peak_bytes >> LOSS_LEAST_SHIFT;
	if (is_loss || (facts->loss_each_bytes && is_like_loss(facts, share) && !begins_with_any(name, scores))) {
		facts->loss_bytes += share->bytes;
		facts->loss_count += share->count;
		if (each > facts->loss_largest_bytes)
			facts->loss_largest_bytes = each;
	}
	if (begins_with_any(name, scores) ||
	    (begins_with_any(name, dropouts) && is_dropout_of_scores(made, defs, share)))
		facts->score_bytes += share->bytes;
}

static bool grows_with_batch(const struct model_share *share)
{
	if (share->category == MODEL_TEMPORARY)
		return share->detail != MODEL_DETAIL_OPTIMIZER;
	return share->category == MODEL_ACTIVATIONS || share->category == MODEL_INPUT;
}

/* A copy in half the bytes of a parameter, that autocast made. */
static bool is_cast_weight(const struct model *model, const struct defs *defs, const struct def_stack *stack,
			   const struct model_share *share)
{
	return share->detail == MODEL_DETAIL_AUTOCAST_WEIGHT ||
	       (share->count && has_native(defs, stack, "cached_cast") &&
		model_parameters_of_size(model, 2 * (share->bytes / share->count)));
}

/* What a convolution works in is as large as cuDNN likes; and gradients of the copies that autocast made of weights are
 * as large as these. */
static bool is_of_kernel(const struct model *model, const struct defs *defs, const struct def_stack *stack,
			 const struct model_share *share)
{
	if (share->category != MODEL_TEMPORARY || share->detail != MODEL_DETAIL_BACKWARD)
		return false;
	return has_native(defs, stack, "run_conv_plan") || has_native(defs, stack, "raw_cudnn_convolution") ||
	       (share->count == 1 && model_parameters_of_size(model, 2 * share->bytes));
}

/* The same where what was left over of a segment may have stayed with either. */
static bool is_like_weight(const struct model *model, const struct defs *defs, const struct def_stack *stack,
			   const struct model_share *share)
{
	uint64_t bytes = 2 * bytes_of_each(share), slack = bytes > 1u << 20 ? 1u << 20 : 512;
	return share->count && has_native(defs, stack, "cached_cast") &&
	       model_has_parameter_of(model, bytes_less(bytes, 2 * slack), bytes + slack);
}

static void take_share(struct lever_facts *facts, const struct scores *made, const struct model *model,
		       const struct defs *defs, const struct model_share *share)
{
	const struct def_stack *stack = defs_stack(defs, share->stack);
	char buffer[NAME_BYTES];
	struct text name;
	struct stack_marks marks;
	if (!stack || !grows_with_batch(share) || lever_is_kept(facts, share))
		return;
	marks_of_stack(defs, share->stack, &marks);
	facts->has_checkpoints |= share->detail == MODEL_DETAIL_RECOMPUTED || marks.flags & MARK_CHECKPOINT;
	bool is_fused = !has_native(defs, stack, "attention_math");
	if (has_native(defs, stack, "scaled_dot_product") && is_fused)
		facts->has_fused_attention = true;
	if (!is_fused)
		facts->unfused_bytes += halvable_bytes(model, share);
	if (has_native(defs, stack, "autocast"))
		facts->has_autocast = true;
	if (share->detail == MODEL_DETAIL_AUTOCAST_HELD && is_like_weight(model, defs, stack, share))
		facts->cast_kept_bytes += share->bytes;
	if (share->detail == MODEL_DETAIL_DROPPED_GRAPH) {
		facts->dropped_bytes += share->bytes;
		bytes_raise(&facts->dropped_largest_bytes, bytes_of_each(share));
	}
	if (is_of_kernel(model, defs, stack, share)) {
		facts->kernel_bytes += share->bytes;
		return;
	}
	if (is_cast_weight(model, defs, stack, share))
		return;
	facts->batch_bytes += share->bytes;
	text_init_fixed(&name, buffer, sizeof buffer - 1);
	if (!by_name_operator(&name, defs, share->stack))
		return;
	take_operator(facts, made, defs, text_string(&name), share);
	take_castable(facts, model, text_string(&name), share);
}

static void note_loss(struct lever_facts *facts, const char *name, const struct model_share *share)
{
	if (share->count <= 2 && begins_with_any(name, logarithms))
		bytes_raise(&facts->loss_each_bytes, bytes_of_each(share));
}

static void find_scores(struct lever_facts *facts, struct scores *made, const struct defs *defs, const struct model_share *shares,
			size_t count)
{
	char buffer[NAME_BYTES];
	struct text name;
	for (size_t i = 0; i < count; i++) {
		text_init_fixed(&name, buffer, sizeof buffer - 1);
		if (!grows_with_batch(&shares[i]) || !by_name_operator(&name, defs, shares[i].stack))
			continue;
		note_loss(facts, text_string(&name), &shares[i]);
		if (begins_with_any(text_string(&name), scores))
			note_scores(made, defs, &shares[i]);
	}
}

/* Attention scores are no burden where the library's own kernel makes none. */
static void take_shares(struct lever_facts *facts, const struct model *model, const struct defs *defs,
			const struct model_device *device)
{
	struct arena *arena = arena_create();
	size_t count = 0;
	const struct composition of = {COMPOSITION_PEAK, device->ordinal};
	const struct model_share *shares = arena ? composition_shares(arena, model, of, &count) : NULL;
	struct scores made = {.count = 0};
	if (shares)
		lever_kept_find(facts, defs, shares, count, device->peak.stack);
	if (shares)
		find_scores(facts, &made, defs, shares, count);
	for (size_t i = 0; shares && i < count; i++)
		take_share(facts, &made, model, defs, &shares[i]);
	if (shares)
		lever_block_find(facts, arena, defs, shares, count);
	if (arena)
		arena_release(arena);
}

static bool is_of_file(const struct def_python_frame *frame, const char *end)
{
	size_t length = strlen(frame->file), end_length = strlen(end);
	return length >= end_length && !strcmp(frame->file + length - end_length, end);
}

/* Tokens that attend to each other, or a recurrent network; what shards. */
static void take_frames(struct lever_facts *facts, const struct defs *defs)
{
	bool has_attention = facts->has_fused_attention || facts->score_bytes;
	const struct def_python_frame *frame;
	for (uint32_t id = 1; (frame = defs_python_frame(defs, id)); id++) {
		facts->has_shards |= strstr(frame->file, "/torch/distributed/fsdp/") ||
				     strstr(frame->file, "/deepspeed/runtime/zero/") ||
				     is_of_file(frame, "/zero_redundancy_optimizer.py");
		facts->has_sequence |= is_of_file(frame, "/torch/nn/modules/rnn.py") ||
				       (has_attention && !strcmp(frame->function, "embedding") &&
					is_of_file(frame, "/torch/nn/functional.py"));
	}
}

static uint64_t find_world_size(const struct defs *defs)
{
	const char *text = defs_info(defs, MEMTRACE_INFO_WORLD_SIZE, 0);
	uint64_t size = 0;
	while (text && *text >= '0' && *text <= '9' && size < 1000000)
		size = size * 10 + (uint64_t)(*text++ - '0');
	return size && !*text ? size : 1;
}

static uint64_t first_saving(const struct lever_facts *facts, const struct verdict *found)
{
	uint64_t saves = found->action_count && found->actions[0].is_known ? found->actions[0].saves_bytes : 0;
	return saves < facts->peak_bytes ? saves : facts->peak_bytes;
}

static void take_finding(struct lever_facts *facts, const struct verdict *found)
{
	if (found->cause == VERDICT_KEPT_GRAPH)
		facts->kept_graph_bytes = bytes_less(facts->peak_bytes, found->evidence.left_bytes);
	if (found->cause == VERDICT_UNUSED_GRAPH)
		facts->unused_graph_bytes = bytes_less(facts->peak_bytes, found->evidence.left_bytes);
	if (found->cause == VERDICT_DUPLICATE)
		facts->copy_bytes = found->evidence.peak_bytes;
	if (found->cause != VERDICT_LEAK)
		return;
	facts->has_leak = true;
	facts->leak_bytes = found->evidence.bytes < facts->peak_bytes ? found->evidence.bytes : facts->peak_bytes;
}

/* What was told as memory ran out, if that was the peak: what is wrong is wrong of that too. */
static void take_oom(struct lever_facts *facts, const struct verdict *told)
{
	facts->has_leak |= told->cause == VERDICT_LEAK;
	if (told->evidence.live_bytes < facts->peak_bytes / 8 * 7)
		return;
	uint64_t saves = first_saving(facts, told);
	if (told->cause == VERDICT_LEAK && !facts->leak_bytes)
		facts->leak_bytes = saves;
	else if (told->cause == VERDICT_DUPLICATE)
		facts->copy_bytes = saves;
	else if (saves && told->actions[0].advice == ADVICE_NO_GRAD)
		facts->no_grad_bytes = saves;
}

static void take_findings(struct lever_facts *facts, const struct model *model, unsigned ordinal)
{
	struct verdict found[FINDINGS_MAX];
	size_t count = model_findings(model, found, FINDINGS_MAX);
	for (size_t i = 0; i < count; i++)
		if (found[i].device == ordinal)
			take_finding(facts, &found[i]);
	for (size_t i = 0; model_verdict(model, i, found); i++)
		if (found[0].device == ordinal)
			take_oom(facts, &found[0]);
}

void lever_facts_find(struct lever_facts *facts, const struct model *model, const struct defs *defs,
		      const struct model_device *device)
{
	struct model_categories categories;
	*facts = (struct lever_facts){.peak_bytes = device->peak.allocated_bytes,
				      .world_size = find_world_size(defs)};
	model_categories_at_peak(model, device->ordinal, &categories);
	memcpy(facts->category, categories.bytes, sizeof facts->category);
	if (device->pytorch_reserved_known && !device->has_async) {
		facts->reserved_bytes = device->pytorch_reserved.peak_bytes;
		facts->unused_bytes = bytes_less(facts->reserved_bytes, device->pytorch_allocated.peak_bytes);
	}
	facts->internal_bytes = device->peak.internal_bytes;
	facts->is_backward_peak = device->peak.phase == MODEL_PHASE_BACKWARD;
	facts->is_optimizer_peak = device->peak.phase == MODEL_PHASE_OPTIMIZER;
	lever_steps_find(facts, model, device->ordinal);
	facts->parameter_element_bytes = elements_main_at_peak(model, device->ordinal, MODEL_PARAMETERS);
	facts->state_element_bytes = elements_main_at_peak(model, device->ordinal, MODEL_OPTIMIZER_STATE);
	if (facts->steps)
		take_shares(facts, model, defs, device);
	take_frames(facts, defs);
	if (facts->steps)
		take_findings(facts, model, device->ordinal);
}
