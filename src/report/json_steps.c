/* `memtrace report --json`: "steps". Owns their keys. Must never give a figure for a phase that a step
 * did not have: null. */
#include "report/json.h"
#include "report/step_table.h"

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

/* What stayed allocated after the step more than after the one before it. */
static void add_change(struct json *json, const struct model *model, size_t index, const struct model_step *step)
{
	const struct model_moment *end = &step->after[MODEL_AFTER_OPTIMIZER], *begin;
	struct model_step before;
	if (!end->is_known || !step_table_before(model, index, &before) ||
	    !(begin = &before.after[MODEL_AFTER_OPTIMIZER])->is_known)
		json_null(json, "change_bytes");
	else
		json_signed(json, "change_bytes", (int64_t)(end->allocated_bytes - begin->allocated_bytes));
}

static void add_phases(struct json *json, const struct model_step *step)
{
	json_open(json, "phase_peaks", '{');
	for (unsigned i = 0; i < MODEL_PHASE_COUNT; i++)
		json_known(json, model_phase_name(i), step->phase_peak_bytes[i], step->phase_peak_bytes[i]);
	json_close(json, '}');
}

static void add_step(struct json *json, const struct model *model, size_t index, const struct model_step *step)
{
	static const char *const names[MODEL_MOMENT_COUNT] = {"forward", "backward", "optimizer"};
	json_open(json, NULL, '{');
	json_unsigned(json, "step", step->step);
	json_unsigned(json, "loop", step->loop);
	json_known(json, "thread", step->thread, step->thread);
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
	add_phases(json, step);
	add_change(json, model, index, step);
	json_close(json, '}');
}

void json_add_steps(struct json *json, const struct model *model)
{
	struct model_step_totals totals;
	struct model_step step;
	model_step_totals(model, &totals);
	json_open(json, "steps", '[');
	for (size_t i = 0; totals.backwards && model_step(model, i, &step); i++)
		add_step(json, model, i, &step);
	json_close(json, ']');
	json_open(json, "step_totals", '{');
	json_unsigned(json, "steps", totals.steps);
	json_unsigned(json, "backwards", totals.backwards);
	json_unsigned(json, "forwards", totals.forwards);
	json_close(json, '}');
}
