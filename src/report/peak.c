/* The peak in words. Owns the sentence, the bars and the formula. Must never show a category that is
 * empty, nor call certain what is provisional. No malloc, stdio or locale: see summary.c. */
#include "report/peak.h"

#include <string.h>

#include "base/bytes.h"
#include "base/units.h"
#include "report/backward.h"
#include "report/category.h"
#include "report/devices.h"
#include "report/elements.h"
#include "report/layout.h"
#include "report/where.h"

#define BYTES_COLUMN   28
#define PERCENT_COLUMN 37
#define BAR_COLUMNS    20

/* ---------- when and where ---------- */

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

static void add_place(struct text *out, const struct model *model, const struct defs *defs,
		      const struct model_device *device, bool ascii)
{
	const struct model_peak *peak = &device->peak;
	struct where where = where_find(defs, peak->stack, peak->thread);
	bool is_backward = peak->is_phase_known && peak->phase == MODEL_PHASE_BACKWARD;
	const struct composition of = {COMPOSITION_PEAK, device->ordinal};
	if (is_backward)
		backward_add_place(out, model, defs, &where, of, ascii);
	else
		where_add(out, defs, &where, ascii);
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
	add_place(&place, model, defs, device, ascii);
	layout_last(out, &place);
}

/* ---------- what it was made of ---------- */

struct row {
	const char *title, *hint;
	uint64_t bytes, provisional_bytes; /* of these, not decided yet; 0 where the title says so */
};

bool peak_is_of_pass(const struct model_device *device)
{
	enum model_phase phase = device->peak.phase;
	return device->peak.is_phase_known && (phase == MODEL_PHASE_FORWARD || phase == MODEL_PHASE_BACKWARD);
}

/* What a pass that has not ended made, and what nobody can tell apart yet. */
static uint64_t pass_bytes(const struct model_categories *categories, const struct model_device *device)
{
	const uint64_t *provisional = categories->provisional_bytes;
	return peak_is_of_pass(device) ? provisional[MODEL_OTHER] + provisional[MODEL_TEMPORARY] : 0;
}

static struct row row_of(const struct model_categories *categories, enum model_category category, bool has_pass)
{
	struct row row = {.title = category_title(category),
			  .bytes = categories->bytes[category],
			  .provisional_bytes = categories->provisional_bytes[category]};
	if (has_pass && (category == MODEL_OTHER || category == MODEL_TEMPORARY)) {
		row.bytes -= row.provisional_bytes;
		row.provisional_bytes = 0;
	}
	return row;
}

/* Behind what is larger or as large. */
static void insert_row(struct row *rows, unsigned count, struct row row)
{
	for (; count && rows[count - 1].bytes < row.bytes; count--)
		rows[count] = rows[count - 1];
	rows[count] = row;
}

/* Largest first, of MODEL_CATEGORY_COUNT + 1. */
static void collect_rows(struct row *rows, const struct model_categories *categories,
			 const struct model_device *device)
{
	bool is_forward = device->peak.phase == MODEL_PHASE_FORWARD;
	struct row pass = {.title = CATEGORY_OF_PASS,
			   .hint = is_forward ? "likely activations" : "not decided yet",
			   .bytes = pass_bytes(categories, device)};
	unsigned count = 0;
	for (; count < MODEL_CATEGORY_COUNT; count++)
		insert_row(rows, count, row_of(categories, (enum model_category)count, pass.bytes > 0));
	insert_row(rows, count, pass);
}

static void add_bar(struct text *out, uint64_t bytes, uint64_t largest)
{
	unsigned columns = (unsigned)((bytes * BAR_COLUMNS + largest / 2) / largest);
	if (columns)
		text_add(out, "  ");
	while (columns--)
		text_add(out, "█");
}

static void add_figures(struct text *out, const struct row *row, struct unit unit, uint64_t all)
{
	char buffer[32];
	struct text percent;
	text_add(out, "  ");
	text_add(out, row->title);
	layout_bytes(out, unit, row->bytes, BYTES_COLUMN);
	text_init_fixed(&percent, buffer, sizeof buffer);
	layout_percent(&percent, row->bytes, all);
	layout_word(out, text_string(&percent), PERCENT_COLUMN);
}

static void add_doubt(struct text *out, const struct row *row, struct unit unit)
{
	uint64_t units = unit_round(unit, row->provisional_bytes);
	if (row->hint)
		text_printf(out, "  %s", row->hint);
	else if (units)
		text_printf(out, "  %llu not decided yet", (unsigned long long)units);
}

/* What is less than half a unit is left out. */
void peak_print_categories(struct text *out, const struct model *model, const struct model_device *device,
			   bool ascii)
{
	struct model_categories categories;
	struct row rows[MODEL_CATEGORY_COUNT + 1];
	uint64_t all = device->peak.allocated_bytes;
	if (!model_categories_at_peak(model, device->ordinal, &categories) ||
	    !category_is_any_known(model, device->ordinal))
		return;
	struct unit unit = unit_for(all);
	collect_rows(rows, &categories, device);
	for (unsigned i = 0; i <= MODEL_CATEGORY_COUNT && unit_round(unit, rows[i].bytes); i++) {
		add_figures(out, &rows[i], unit, all);
		if (!ascii)
			add_bar(out, rows[i].bytes, rows[0].bytes);
		add_doubt(out, &rows[i], unit);
		text_add_char(out, '\n');
	}
}

/* ---------- the formula ---------- */

static void take_step(struct peak_formula *formula, const struct model_step *step)
{
	const struct model_moment *after = step->after;
	const struct model_moment *end = &after[MODEL_AFTER_OPTIMIZER];
	if (end->is_known) {
		formula->state_bytes =
			bytes_larger(formula->state_bytes, end->categories.bytes[MODEL_OPTIMIZER_STATE]);
		formula->parameter_bytes =
			bytes_larger(formula->parameter_bytes, end->categories.bytes[MODEL_PARAMETERS]);
	}
	if (after[MODEL_AFTER_BACKWARD].is_known)
		formula->gradient_bytes = bytes_larger(
			formula->gradient_bytes,
			after[MODEL_AFTER_BACKWARD].categories.bytes[MODEL_GRADIENTS]);
	if (after[MODEL_AFTER_FORWARD].is_known)
		formula->activation_bytes = bytes_larger(
			formula->activation_bytes,
			after[MODEL_AFTER_FORWARD].categories.bytes[MODEL_ACTIVATIONS]);
}

static bool is_within(double ratio, double wanted, double part)
{
	return ratio > wanted * (1 - part) && ratio < wanted * (1 + part);
}

#define MASTERED_WIDTH 6 /* of a parameter of two bytes, with its fp32 master */

static double state_ratio(const struct peak_formula *formula)
{
	return (double)formula->state_bytes / (double)formula->parameter_bytes;
}

/* Two moments of four bytes; closer than others: an average or frozen weights come near. */
static bool has_state_of_masters(const struct peak_formula *formula)
{
	return is_within(state_ratio(formula), 8.0 / MASTERED_WIDTH, 0.03);
}

/* State of four bytes a moment beside parameters of two tells their width; without such a hint they
 * are taken as fp32. */
static void guess_width(struct peak_formula *formula)
{
	formula->parameter_width = 4;
	formula->is_width_sure = true;
	if (is_within(state_ratio(formula), 4, 0.07))
		formula->parameter_width = 2;
	else if (has_state_of_masters(formula))
		formula->parameter_width = MASTERED_WIDTH;
	else
		formula->is_width_sure = false;
}

/* As many elements of two bytes as of four are a model and its masters, or two parts of one: the state tells, or nothing. */
static double mixed_width(const struct peak_formula *formula, const struct model_elements *of)
{
	double bytes = 0, count = 0;
	for (unsigned i = 1; i < ELEMENT_COUNT; i++) {
		bytes += (double)of->bytes[i];
		count += (double)of->bytes[i] / element_bytes(i);
	}
	if (!is_within((double)of->bytes[ELEMENT_4_BYTES], 2 * (double)of->bytes[ELEMENT_2_BYTES], 0.1))
		return bytes / count;
	return has_state_of_masters(formula) ? MASTERED_WIDTH : 0;
}

static void find_width(struct peak_formula *formula, const struct model *model, unsigned ordinal)
{
	struct model_elements of = elements_at_peak(model, ordinal, MODEL_PARAMETERS);
	if (!elements_are_known(&of)) {
		guess_width(formula);
		return;
	}
	unsigned main = elements_main_bytes(&of);
	formula->parameter_width = main ? main : mixed_width(formula, &of);
	formula->is_width_sure = formula->parameter_width > 0;
}

/* Where parameters are frozen, or an average of them is kept, no number of bytes for each is right. */
static bool has_factor(const struct peak_formula *formula)
{
	double gradients = (double)formula->gradient_bytes / (double)formula->parameter_bytes;
	bool is_equal = gradients > 0.9 && gradients < 1.15, is_twice = gradients > 1.8 && gradients < 2.3;
	bool is_mastered = formula->is_width_sure && has_state_of_masters(formula) &&
			   is_within(formula->parameter_width, MASTERED_WIDTH, 0.001);
	return formula->parameter_width > 0 && (is_equal || is_twice || is_mastered);
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
	find_width(formula, model, ordinal);
	formula->has_factor = has_factor(formula);
	formula->expected_bytes = formula->parameter_bytes + formula->gradient_bytes + formula->state_bytes +
				  formula->activation_bytes;
	return true;
}

static void add_part(struct text *out, struct unit unit, uint64_t bytes, const char *name)
{
	if (unit_round(unit, bytes))
		text_printf(out, " + %s %llu", name, (unsigned long long)unit_round(unit, bytes));
}

double peak_bytes_a_parameter(const struct peak_formula *formula)
{
	return formula->parameter_width * (double)(formula->expected_bytes - formula->activation_bytes) /
	       (double)formula->parameter_bytes;
}

static void add_width(struct text *out, const struct peak_formula *formula)
{
	double bytes = peak_bytes_a_parameter(formula);
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
	text_printf(out, " = %llu", (unsigned long long)unit_round(unit, formula.expected_bytes));
	text_add(out, formula.has_factor ? ",\n  by the usual formula: " : "\n");
	if (formula.has_factor)
		add_width(out, &formula);
}
