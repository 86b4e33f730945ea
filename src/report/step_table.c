/* The table of steps. Owns when two steps count as equal and how a row names them. Must never add up
 * steps whose figures differ by more than one sees, nor show a moment that a step did not have. It
 * runs inside the traced program: no malloc. */
#include "report/step_table.h"

#include "report/layout.h"

#define NAME_WIDTH	 22
#define FORWARD_COLUMN	 31
#define BACKWARD_COLUMN	 41
#define OPTIMIZER_COLUMN 52
#define PEAK_COLUMN	 60
#define PHASE_COLUMN	 63
#define CHANGE_COLUMN	 79
#define EQUAL_SHIFT	 8 /* steps that differ by less than a 256th of the peak are equal */

struct group { /* of steps that follow each other */
	struct model_step first;
	struct model_step highest; /* the first with the highest peak: its figures are shown */
	uint64_t last_step, count;
	uint64_t begin_bytes, end_bytes; /* allocated after the step before, and after the last one */
	bool has_begin, has_end;
};

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static bool is_equal(const struct model_step *a, const struct model_step *b)
{
	uint64_t tolerance = (a->peak_bytes > b->peak_bytes ? a->peak_bytes : b->peak_bytes) >> EQUAL_SHIFT;
	if (a->peak_phase != b->peak_phase || distance(a->peak_bytes, b->peak_bytes) > tolerance)
		return false;
	for (unsigned i = 0; i < MODEL_MOMENT_COUNT; i++)
		if (a->after[i].is_known != b->after[i].is_known ||
		    distance(a->after[i].allocated_bytes, b->after[i].allocated_bytes) > tolerance)
			return false;
	return true;
}

/* ---------- from steps to groups ---------- */

struct walk {
	const struct model *model;
	const struct step_table_style *style;
	unsigned loop;
	size_t index;
	bool has_before;
	uint64_t before_bytes; /* after the step that was taken last */
};

static bool take_step(struct walk *walk, struct model_step *step)
{
	while (model_step(walk->model, walk->index, step)) {
		walk->index++;
		if (!step->is_open && step->device == walk->style->device && step->loop == walk->loop)
			return true;
	}
	return false;
}

static void add_step(struct walk *walk, struct group *group, const struct model_step *step)
{
	const struct model_moment *end = &step->after[MODEL_AFTER_OPTIMIZER];
	group->last_step = step->step;
	group->count++;
	if (step->peak_bytes > group->highest.peak_bytes)
		group->highest = *step;
	group->has_end = end->is_known;
	group->end_bytes = end->allocated_bytes;
	walk->has_before = end->is_known;
	walk->before_bytes = end->allocated_bytes;
}

static bool take_group(struct walk *walk, struct group *group)
{
	struct model_step step;
	if (!take_step(walk, &step))
		return false;
	*group = (struct group){.first = step, .highest = step, .has_begin = walk->has_before, .begin_bytes = walk->before_bytes};
	add_step(walk, group, &step);
	for (size_t index = walk->index; !walk->style->one_each && take_step(walk, &step); index = walk->index) {
		if (!is_equal(&group->first, &step)) {
			walk->index = index;
			break;
		}
		add_step(walk, group, &step);
	}
	return true;
}

/* ---------- rows ---------- */

static void add_title(struct text *out, const struct group *group, bool is_last)
{
	char buffer[64];
	struct text title;
	text_init_fixed(&title, buffer, sizeof buffer);
	if (group->count == 1 && group->first.step == 1)
		text_add(&title, "first");
	else if (group->count == 1)
		text_printf(&title, "step %'llu", (unsigned long long)group->first.step);
	else if (is_last)
		text_printf(&title, "since step %'llu", (unsigned long long)group->first.step);
	else
		text_printf(&title, "steps %'llu to %'llu", (unsigned long long)group->first.step,
			    (unsigned long long)group->last_step);
	text_add(out, "  ");
	layout_cut(out, &title, NAME_WIDTH - 2);
}

static void add_moment(struct text *out, struct unit unit, const struct model_moment *moment, size_t column)
{
	if (moment->is_known)
		layout_number(out, unit_round(unit, moment->allocated_bytes), column);
	else
		layout_word(out, "-", column);
}

static void add_change(struct text *out, struct unit unit, const struct group *group)
{
	char buffer[32];
	struct text piece;
	if (!group->has_begin || !group->has_end)
		return;
	bool is_less = group->end_bytes < group->begin_bytes;
	uint64_t bytes = distance(group->begin_bytes, group->end_bytes);
	text_init_fixed(&piece, buffer, sizeof buffer);
	text_printf(&piece, "%s%llu", unit_round(unit, bytes) ? (is_less ? "-" : "+") : "",
		    (unsigned long long)unit_round(unit, bytes));
	layout_word(out, text_string(&piece), CHANGE_COLUMN);
}

static void add_row(struct text *out, struct unit unit, const struct group *group, bool is_last,
		    const struct step_table_style *style)
{
	const struct model_step *step = &group->highest;
	add_title(out, group, is_last);
	add_moment(out, unit, &step->after[MODEL_AFTER_FORWARD], FORWARD_COLUMN);
	add_moment(out, unit, &step->after[MODEL_AFTER_BACKWARD], BACKWARD_COLUMN);
	add_moment(out, unit, &step->after[MODEL_AFTER_OPTIMIZER], OPTIMIZER_COLUMN);
	layout_number(out, unit_round(unit, step->peak_bytes), PEAK_COLUMN);
	text_pad_to(out, PHASE_COLUMN);
	text_add(out, model_phase_name(step->peak_phase));
	if (style->has_change)
		add_change(out, unit, group);
	text_add_char(out, '\n');
}

/* `thread` 0: there is one loop. */
static void add_heading(struct text *out, struct unit unit, uint32_t thread, const struct step_table_style *style)
{
	text_add(out, thread ? "Steps of thread " : "Step by step ");
	if (thread)
		text_printf(out, "%u ", thread);
	text_printf(out, "(%s)", unit.name);
	layout_word(out, "forward", FORWARD_COLUMN);
	layout_word(out, "backward", BACKWARD_COLUMN);
	layout_word(out, "optimizer", OPTIMIZER_COLUMN);
	layout_word(out, "peak", PEAK_COLUMN);
	text_pad_to(out, PHASE_COLUMN);
	text_add(out, "phase");
	if (style->has_change)
		layout_word(out, "change", CHANGE_COLUMN);
	text_add_char(out, '\n');
}

static size_t count_groups(struct walk walk, uint64_t *largest_bytes, size_t *largest)
{
	struct group group;
	size_t count = 0;
	for (; take_group(&walk, &group); count++) {
		if (group.highest.peak_bytes <= *largest_bytes)
			continue;
		*largest_bytes = group.highest.peak_bytes;
		*largest = count;
	}
	return count;
}

static uint32_t thread_of(struct walk walk)
{
	struct model_step step;
	return take_step(&walk, &step) ? step.thread : 0;
}

/* Of too many rows the first and the last are shown, what a run begins and ends like; that of the peak in any case. */
static size_t print_loop(struct text *out, struct walk walk, bool is_only)
{
	const struct step_table_style *style = walk.style;
	struct group group;
	uint64_t largest_bytes = 0;
	uint32_t thread = thread_of(walk);
	size_t largest = 0, count = count_groups(walk, &largest_bytes, &largest), limit = style->limit;
	size_t left_out = limit && count > limit ? count - (limit - 1) : 0;
	size_t head = left_out ? (limit - 1) / 2 : count;
	bool is_hidden = largest >= head && largest < head + left_out;
	struct unit unit = unit_for(largest_bytes);
	if (count)
		add_heading(out, unit, is_only ? 0 : thread, style);
	for (size_t i = 0; take_group(&walk, &group); i++) {
		bool is_shown = i < head || (is_hidden ? i == largest : i >= head + left_out);
		if (is_shown)
			add_row(out, unit, &group, i + 1 == count, style);
		if (left_out && i + 1 == (is_hidden ? count : head + left_out))
			text_printf(out, "  %zu rows more, see: memtrace steps\n", is_hidden ? count - head - 1 : left_out);
	}
	return count;
}

bool step_table_print(struct text *out, const struct model *model, const struct step_table_style *style)
{
	struct model_step step;
	unsigned loops = 0, used = 0;
	size_t rows = 0;
	for (size_t i = 0; model_step(model, i, &step); i++)
		loops = step.loop >= loops ? step.loop + 1 : loops;
	for (unsigned loop = 0; loop < loops; loop++)
		used += take_step(&(struct walk){.model = model, .style = style, .loop = loop}, &step);
	for (unsigned loop = 0; loop < loops; loop++)
		rows += print_loop(out, (struct walk){.model = model, .style = style, .loop = loop}, used == 1);
	return rows;
}

bool step_table_before(const struct model *model, size_t index, struct model_step *before)
{
	struct model_step step;
	if (!model_step(model, index, &step))
		return false;
	while (index-- > 0)
		if (model_step(model, index, before) && before->loop == step.loop && before->device == step.device)
			return true;
	return false;
}
