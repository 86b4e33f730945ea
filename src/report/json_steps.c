/* `memtrace report --json`: "steps". Owns their keys. Must never give a figure for a phase that a step
 * did not have: null. */
#include "report/json.h"

static void add_moment(struct json *json, const char *key, const struct model_moment *moment)
{
	json_known(json, key, moment->is_known, moment->allocated_bytes);
}

static void add_moment_categories(struct json *json, const char *key, const struct model_moment *moment)
{
	if (moment->is_known)
		json_add_categories(json, key, moment->categories.bytes);
	else
		json_null(json, key);
}

static void add_step(struct json *json, const struct model_step *step)
{
	static const char *const names[MODEL_MOMENT_COUNT] = {"forward", "backward", "optimizer"};
	json_open(json, NULL, '{');
	json_unsigned(json, "step", step->step);
	json_unsigned(json, "loop", step->loop);
	json_known(json, "device", step->device != MEMTRACE_DEVICE_UNKNOWN, step->device);
	json_bool(json, "open", step->is_open);
	json_unsigned(json, "begin_ns", step->begin_ns);
	json_unsigned(json, "end_ns", step->end_ns);
	json_unsigned(json, "backwards", step->backwards);
	json_open(json, "after", '{');
	for (unsigned i = 0; i < MODEL_MOMENT_COUNT; i++)
		add_moment(json, names[i], &step->after[i]);
	json_close(json, '}');
	json_open(json, "categories", '{');
	for (unsigned i = 0; i < MODEL_MOMENT_COUNT; i++)
		add_moment_categories(json, names[i], &step->after[i]);
	json_close(json, '}');
	json_unsigned(json, "peak_bytes", step->peak_bytes);
	json_string(json, "peak_phase", model_phase_name(step->peak_phase));
	json_close(json, '}');
}

void json_add_steps(struct json *json, const struct model *model)
{
	struct model_step_totals totals;
	struct model_step step;
	model_step_totals(model, &totals);
	json_open(json, "steps", '[');
	for (size_t i = 0; totals.backwards && model_step(model, i, &step); i++)
		add_step(json, &step);
	json_close(json, ']');
	json_open(json, "step_totals", '{');
	json_unsigned(json, "steps", totals.steps);
	json_unsigned(json, "backwards", totals.backwards);
	json_unsigned(json, "forwards", totals.forwards);
	json_close(json, '}');
}
