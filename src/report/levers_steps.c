/* Facts for the levers from the steps: what was there at the borders of their phases, and the highest in each. Owns what
 * counts as static: what any number of samples needs. No malloc or stdio: it runs inside the traced program. */
#include "report/levers_rules.h"

static uint64_t of_border(const struct model_step *step, enum model_moment_kind kind, enum model_category category)
{
	return step->after[kind].is_known ? step->after[kind].categories.bytes[category] : 0;
}

static uint64_t outside_optimizer(const struct model_step *step)
{
	uint64_t bytes = 0;
	bytes_raise(&bytes, step->phase_peak_bytes[MODEL_PHASE_FORWARD]);
	bytes_raise(&bytes, step->phase_peak_bytes[MODEL_PHASE_BACKWARD]);
	bytes_raise(&bytes, step->phase_peak_bytes[MODEL_PHASE_OTHER]);
	return bytes;
}

static void take_borders(struct lever_facts *facts, const struct model_step *step)
{
	for (unsigned i = 0; i < MODEL_MOMENT_COUNT; i++) {
		bytes_raise(&facts->parameter_bytes, of_border(step, i, MODEL_PARAMETERS));
		bytes_raise(&facts->gradient_bytes, of_border(step, i, MODEL_GRADIENTS));
		bytes_raise(&facts->state_bytes, of_border(step, i, MODEL_OPTIMIZER_STATE));
	}
	bytes_raise(&facts->kept_gradient_bytes, of_border(step, MODEL_AFTER_FORWARD, MODEL_GRADIENTS));
}

static void take_step(struct lever_facts *facts, const struct model_step *step)
{
	uint64_t outside = outside_optimizer(step);
	uint64_t in_optimizer = step->phase_peak_bytes[MODEL_PHASE_OPTIMIZER];
	const struct model_moment *backward = &step->after[MODEL_AFTER_BACKWARD];
	facts->steps++;
	facts->is_peak_in_steps |= step->peak_bytes >= facts->peak_bytes;
	bytes_raise(&facts->backwards_a_step, step->backwards);
	take_borders(facts, step);
	bytes_raise(&facts->outside_optimizer_bytes, outside);
	bytes_raise(&facts->optimizer_bytes, in_optimizer);
	bytes_raise(&facts->without_state_bytes,
	      bytes_less(outside, of_border(step, MODEL_AFTER_FORWARD, MODEL_OPTIMIZER_STATE)));
	bytes_raise(&facts->training_bytes, step->phase_peak_bytes[MODEL_PHASE_BACKWARD]);
	bytes_raise(&facts->training_bytes, in_optimizer);
	if (backward->is_known) {
		uint64_t kept = of_border(step, MODEL_AFTER_BACKWARD, MODEL_ACTIVATIONS) +
				of_border(step, MODEL_AFTER_BACKWARD, MODEL_INPUT);
		bytes_raise(&facts->backward_floor_bytes, bytes_less(backward->allocated_bytes, kept));
		bytes_raise(&facts->static_bytes, facts->backward_floor_bytes);
		bytes_raise(&facts->static_bytes, bytes_less(in_optimizer, kept));
	}
}

static bool is_near(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) <= (a > b ? a : b) / 50;
}

/* What is there in the forward pass beside gradients and the optimizer's state. */
static uint64_t others_in_forward(const struct model_step *step)
{
	return bytes_less(step->after[MODEL_AFTER_FORWARD].allocated_bytes,
			  of_border(step, MODEL_AFTER_FORWARD, MODEL_GRADIENTS) +
				  of_border(step, MODEL_AFTER_FORWARD, MODEL_OPTIMIZER_STATE));
}

static bool is_like(const struct model_step *first, const struct model_step *later)
{
	return first->step == 1 && !of_border(first, MODEL_AFTER_FORWARD, MODEL_GRADIENTS) &&
	       is_near(of_border(first, MODEL_AFTER_FORWARD, MODEL_ACTIVATIONS),
		       of_border(later, MODEL_AFTER_FORWARD, MODEL_ACTIVATIONS)) &&
	       is_near(others_in_forward(first), others_in_forward(later));
}

/* The first step as it would have been with the optimizer's state: no gradient was there yet. What was highest outside of
 * its phases may have been after the optimizer, with the state. */
static void take_first(struct lever_facts *facts, const struct model_step *first, const struct model_step *later)
{
	uint64_t state = bytes_less(facts->state_bytes, of_border(first, MODEL_AFTER_FORWARD, MODEL_OPTIMIZER_STATE));
	uint64_t passes = bytes_larger(first->phase_peak_bytes[MODEL_PHASE_FORWARD],
				       first->phase_peak_bytes[MODEL_PHASE_BACKWARD]);
	uint64_t other = first->phase_peak_bytes[MODEL_PHASE_OTHER];
	if (!is_like(first, later))
		return;
	bytes_raise(&passes, first->after[MODEL_AFTER_FORWARD].allocated_bytes);
	if (other > first->after[MODEL_AFTER_OPTIMIZER].allocated_bytes)
		bytes_raise(&passes, other);
	facts->fresh_peak_bytes = bytes_larger(passes + state, facts->optimizer_bytes);
	facts->fresh_most_bytes = bytes_larger(bytes_larger(passes, other) + state, facts->optimizer_bytes);
}

void lever_steps_find(struct lever_facts *facts, const struct model *model, unsigned ordinal)
{
	struct model_step step, first = {0};
	for (size_t i = 0; model_step(model, i, &step); i++) {
		if (step.device != ordinal || step.is_open)
			continue;
		if (!facts->steps)
			first = step;
		take_step(facts, &step);
		if (facts->steps == 2)
			take_first(facts, &first, &step);
	}
}
