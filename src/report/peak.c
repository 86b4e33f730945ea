/* The peak in words. Owns the sentence, the bars and the formula. Must never show a category that is
 * empty, nor call certain what is provisional. No malloc, stdio or locale: see summary.c. */
#include "report/peak.h"

#include <string.h>

#include "base/units.h"
#include "report/category.h"
#include "report/devices.h"
#include "report/layout.h"
#include "report/sites.h"
#include "report/where.h"
#include "trace/marks.h"

#define BYTES_COLUMN   28
#define PERCENT_COLUMN 37
#define BAR_COLUMNS    20
#define CALLS_LOOKED_AT 4096 /* stacks; of more it takes too long */

/* ---------- when and where ---------- */

static bool is_call_of_backward(const struct defs *defs, uint32_t stack)
{
	struct stack_marks marks;
	marks_of_stack(defs, stack, &marks);
	return marks.flags & MARK_FLAG(MARK_BACKWARD_CALL);
}

/* The line that called backward(): autograd's threads do not know it. Only if the program has one such
 * line. */
static struct where find_call_of_backward(const struct defs *defs)
{
	struct where found = {0};
	uint32_t count = defs_stack_count(defs);
	for (uint32_t id = 1; id <= count && count <= CALLS_LOOKED_AT; id++) {
		if (!is_call_of_backward(defs, id))
			continue;
		struct where where = where_find(defs, id, 0);
		if (!where.line || where.is_library)
			continue;
		if (found.line && !where_is_same(&found, &where))
			return (struct where){0};
		found = where;
	}
	return found;
}

static void add_step(struct text *out, const struct model *model, const struct model_peak *peak)
{
	struct model_step_totals totals;
	model_step_totals(model, &totals);
	if (!peak->step)
		text_add(out, " before the first step");
	else if (peak->step > totals.steps)
		text_printf(out, " after step %'llu, the last", (unsigned long long)totals.steps);
	else
		text_printf(out, " in step %'llu of %'llu", (unsigned long long)peak->step,
			    (unsigned long long)totals.steps);
}

static void add_time(struct text *out, const struct model *model, const struct model_peak *peak)
{
	struct model_step_totals totals;
	model_step_totals(model, &totals);
	if (peak->is_phase_known && totals.steps) {
		add_step(out, model, peak);
	} else {
		text_add(out, " after ");
		text_add_duration(out, peak->time_ns);
	}
	bool has_phase = peak->is_phase_known && peak->phase != MODEL_PHASE_OTHER;
	text_add(out, ", ");
	text_add(out, has_phase ? model_phase_name(peak->phase) : "at ");
	text_add(out, has_phase ? ", " : "");
}

static void add_place(struct text *out, const struct defs *defs, const struct model_peak *peak, bool ascii)
{
	struct where where = where_find(defs, peak->stack, peak->thread);
	struct where call = {0};
	if (!where.line && peak->is_phase_known && peak->phase == MODEL_PHASE_BACKWARD)
		call = find_call_of_backward(defs);
	if (!call.line) {
		where_add(out, defs, &where, ascii);
		return;
	}
	where_add_line(out, defs, &call);
	if (where.native.frame) {
		char name[CXX_NAME_BYTES];
		native_name_speaker(name, &where.native);
		text_add(out, ascii ? " > " : " › ");
		text_add_escaped(out, name);
	}
}

void peak_print_heading(struct text *out, const struct model *model, const struct defs *defs,
			const struct model_device *device, bool ascii)
{
	char buffer[512];
	struct text place;
	text_add(out, "The peak");
	if (model_device(model, 1)) {
		text_add(out, " of ");
		devices_add_ordinal(out, device->ordinal);
	}
	text_add(out, ": ");
	text_add_size(out, device->peak.allocated_bytes);
	devices_add_outside(out, device);
	add_time(out, model, &device->peak);
	text_init_fixed(&place, buffer, sizeof buffer);
	add_place(&place, defs, &device->peak, ascii);
	layout_last(out, &place);
}

/* ---------- what it was made of ---------- */

/* The largest below `below` bytes, or of the same size with a higher number than `after`. */
static unsigned find_next(const uint64_t bytes[MODEL_CATEGORY_COUNT], uint64_t below, int after)
{
	unsigned next = MODEL_CATEGORY_COUNT;
	for (unsigned i = 0; i < MODEL_CATEGORY_COUNT; i++) {
		bool is_later = bytes[i] < below || (bytes[i] == below && (int)i > after);
		if (bytes[i] && is_later && (next == MODEL_CATEGORY_COUNT || bytes[i] > bytes[next]))
			next = i;
	}
	return next;
}

static void add_bar(struct text *out, uint64_t bytes, uint64_t largest)
{
	unsigned columns = (unsigned)((bytes * BAR_COLUMNS + largest / 2) / largest);
	if (columns)
		text_add(out, "  ");
	while (columns--)
		text_add(out, "█");
}

static void add_category(struct text *out, const struct model_categories *categories, unsigned category,
			 struct unit unit, uint64_t all)
{
	char buffer[32];
	struct text percent;
	text_add(out, "  ");
	text_add(out, category_title(category));
	layout_bytes(out, unit, categories->bytes[category], BYTES_COLUMN);
	text_init_fixed(&percent, buffer, sizeof buffer);
	layout_percent(&percent, categories->bytes[category], all);
	layout_word(out, text_string(&percent), PERCENT_COLUMN);
}

static void add_provisional(struct text *out, const struct model_categories *categories, unsigned category,
			    struct unit unit)
{
	uint64_t bytes = categories->provisional_bytes[category];
	if (unit_round(unit, bytes))
		text_printf(out, "  %llu not decided yet", (unsigned long long)unit_round(unit, bytes));
}

/* What is less than half a unit is left out. */
void peak_print_categories(struct text *out, const struct model *model, const struct model_device *device,
			   bool ascii)
{
	struct model_categories categories;
	uint64_t all = device->peak.allocated_bytes;
	if (!model_categories_at_peak(model, device->ordinal, &categories) ||
	    !category_is_any_known(model, device->ordinal))
		return;
	struct unit unit = unit_for(all);
	unsigned category = find_next(categories.bytes, UINT64_MAX, -1);
	uint64_t largest = category < MODEL_CATEGORY_COUNT ? categories.bytes[category] : 0;
	while (category < MODEL_CATEGORY_COUNT && unit_round(unit, categories.bytes[category])) {
		add_category(out, &categories, category, unit, all);
		if (!ascii)
			add_bar(out, categories.bytes[category], largest);
		add_provisional(out, &categories, category, unit);
		text_add_char(out, '\n');
		category = find_next(categories.bytes, categories.bytes[category], (int)category);
	}
}

/* ---------- the formula ---------- */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void take_step(struct peak_formula *formula, const struct model_step *step)
{
	const struct model_moment *after = step->after;
	const struct model_moment *end = &after[MODEL_AFTER_OPTIMIZER];
	if (end->is_known) {
		formula->state_bytes =
			larger(formula->state_bytes, end->categories.bytes[MODEL_OPTIMIZER_STATE]);
		formula->parameter_bytes =
			larger(formula->parameter_bytes, end->categories.bytes[MODEL_PARAMETERS]);
	}
	if (after[MODEL_AFTER_BACKWARD].is_known)
		formula->gradient_bytes = larger(
			formula->gradient_bytes,
			after[MODEL_AFTER_BACKWARD].categories.bytes[MODEL_GRADIENTS]);
	if (after[MODEL_AFTER_FORWARD].is_known)
		formula->activation_bytes = larger(
			formula->activation_bytes,
			after[MODEL_AFTER_FORWARD].categories.bytes[MODEL_ACTIVATIONS]);
}

static bool is_near(double ratio, double wanted)
{
	return ratio > wanted * 0.93 && ratio < wanted * 1.07;
}

/* State of four bytes a moment beside parameters of two tells their width; without such a hint they
 * are taken as fp32. */
static void guess_width(struct peak_formula *formula)
{
	double state = (double)formula->state_bytes / (double)formula->parameter_bytes;
	formula->parameter_width = 4;
	formula->is_width_sure = true;
	if (is_near(state, 4))
		formula->parameter_width = 2;
	else if (is_near(state, 8.0 / 6))
		formula->parameter_width = 6;
	else
		formula->is_width_sure = false;
}

bool peak_formula_find(const struct model *model, unsigned ordinal, struct peak_formula *formula)
{
	struct model_step step;
	*formula = (struct peak_formula){0};
	for (size_t i = 0; model_step(model, i, &step); i++)
		if (step.device == ordinal && !step.is_open)
			take_step(formula, &step);
	if (!formula->parameter_bytes || !formula->gradient_bytes)
		return false;
	guess_width(formula);
	formula->expected_bytes = formula->parameter_bytes + formula->gradient_bytes + formula->state_bytes +
				  formula->activation_bytes;
	return true;
}

static void add_part(struct text *out, struct unit unit, uint64_t bytes, const char *name)
{
	if (unit_round(unit, bytes))
		text_printf(out, " + %s %llu", name, (unsigned long long)unit_round(unit, bytes));
}

static void add_width(struct text *out, const struct peak_formula *formula)
{
	double bytes = (double)formula->parameter_width *
		       (double)(formula->expected_bytes - formula->activation_bytes) /
		       (double)formula->parameter_bytes;
	text_add_decimal(out, bytes, bytes < 10);
	text_add(out, formula->is_width_sure ? " bytes a parameter\n" : " bytes a parameter, if it is fp32\n");
}

void peak_print_formula(struct text *out, const struct model *model, const struct model_device *device)
{
	struct peak_formula formula;
	if (!peak_formula_find(model, device->ordinal, &formula))
		return;
	struct unit unit = unit_for(formula.expected_bytes);
	text_printf(out, "  parameters %llu", (unsigned long long)unit_round(unit, formula.parameter_bytes));
	add_part(out, unit, formula.gradient_bytes, "gradients");
	add_part(out, unit, formula.state_bytes, "state");
	add_part(out, unit, formula.activation_bytes, "activations");
	text_printf(out, " = %llu,\n  by the usual formula: ",
		    (unsigned long long)unit_round(unit, formula.expected_bytes));
	add_width(out, &formula);
}
