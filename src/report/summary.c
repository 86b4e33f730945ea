/* The summary at the end of a run: what peaked, where from, what the figures leave out, what to
 * type next. Owns the order of its parts and its first and last lines; the tables are devices.c,
 * peak.c, sites.c, step_table.c and gaps.c. Must never print a part that is not known, nor use malloc, stdio or a locale:
 * it runs inside the traced program. */
#include "report/summary.h"

#include <string.h>

#include "base/units.h"
#include "report/category.h"
#include "report/devices.h"
#include "report/layout.h"
#include "report/levers.h"
#include "report/peak.h"
#include "report/signals.h"
#include "report/sites.h"
#include "report/step_table.h"
#include "report/timeline.h"
#include "report/untracked.h"
#include "report/verdict.h"
#include "report/witness.h"

#define LINES_MAX   40
#define SITES_SHOWN 8
#define SITES_WANTED 6 /* for these levers make room */
#define SITES_LEAST 3 /* before levers go for them */
#define LEVERS_SHOWN 5
#define LEVERS_LEAST 3
#define FINDINGS_SHOWN 3
#define JUMPS_SHOWN 3
#define STEP_ROWS   3

static bool is_script(const char *argument)
{
	size_t length = strlen(argument);
	return length > 3 && !strcmp(argument + length - 3, ".py");
}

static void add_arguments(struct text *line, const struct defs *defs, bool without_folders)
{
	const char *argument;
	for (unsigned i = 0; (argument = defs_info(defs, MEMTRACE_INFO_ARGUMENT, i)) && !line->failed; i++) {
		bool is_name = !i || (without_folders && is_script(argument));
		const char *slash = is_name ? strrchr(argument, '/') : NULL;
		if (i)
			text_add_char(line, ' ');
		text_add_escaped(line, slash ? slash + 1 : argument);
	}
}

void summary_add_program(struct text *out, const struct defs *defs, size_t columns)
{
	char buffer[512];
	struct text line;
	text_init_fixed(&line, buffer, sizeof buffer);
	if (!defs_info(defs, MEMTRACE_INFO_ARGUMENT, 0))
		text_add(&line, "a program");
	add_arguments(&line, defs, false);
	if (line.failed || layout_width(line.data, line.used_bytes) > columns) {
		text_init_fixed(&line, buffer, sizeof buffer);
		add_arguments(&line, defs, true);
	}
	layout_cut_words(out, &line, columns);
}

static void add_signal(struct text *out, int number)
{
	const char *name = signal_name(number);
	if (name)
		text_printf(out, ", killed by %s", name);
	else
		text_printf(out, ", killed by signal %d", number);
}

void summary_add_ended(struct text *out, const struct summary_facts *facts)
{
	if (facts->ended == SUMMARY_SIGNAL)
		add_signal(out, facts->status);
	else if (facts->ended == SUMMARY_RUNNING)
		text_add(out, ", still running");
	else if (facts->ended == SUMMARY_UNKNOWN)
		text_add(out, facts->may_run_elsewhere ? ", ended without notice or still running elsewhere"
						       : ", ended without notice");
	else if (facts->ended == SUMMARY_ABORT)
		text_add(out, ", aborted after its end");
	else if (facts->status > 0)
		text_printf(out, ", exit status %d", facts->status);
}

void summary_add_trace(struct text *out, const struct summary_facts *facts)
{
	if (!facts->trace_path)
		return;
	text_add(out, "Trace: ");
	text_add_escaped(out, facts->trace_path);
	text_add(out, " (");
	text_add_size(out, facts->file_bytes);
	text_add(out, facts->ended == SUMMARY_RUNNING ? " so far, " : ", ");
	text_add_count(out, facts->lost);
	text_add(out, " events lost)\n");
}

void summary_add_next(struct text *out, const char *verb, const struct summary_facts *facts)
{
	if (!facts->trace_path)
		return;
	text_add(out, "Next: memtrace ");
	text_add(out, verb);
	text_add_char(out, ' ');
	layout_shell_path(out, facts->trace_path);
	text_add_char(out, '\n');
}

static void add_steps_done(struct text *out, const struct model *model)
{
	struct model_step_totals totals;
	model_step_totals(model, &totals);
	if (totals.steps)
		text_printf(out, "%'llu step%s in ", (unsigned long long)totals.steps,
			    totals.steps == 1 ? "" : "s");
}

static void add_first_line(struct text *out, const struct model *model, const struct defs *defs,
			   const struct summary_facts *facts)
{
	char buffer[256];
	struct text tail;
	const struct model_totals *totals = model_totals(model);
	const char *rank = defs_info(defs, MEMTRACE_INFO_RANK, 0);
	text_init_fixed(&tail, buffer, sizeof buffer);
	if (rank) {
		text_add(&tail, ", rank ");
		text_printf(&tail, "%.8s", rank);
	}
	text_add(&tail, ", ");
	add_steps_done(&tail, model);
	text_add_duration(&tail, facts->duration_ns);
	text_add(&tail, ", ");
	text_add_count(&tail, totals->block_events ? totals->block_events : totals->events);
	text_add(&tail, totals->block_events ? " block events" : " events");
	summary_add_ended(&tail, facts);
	size_t used = strlen("memtrace: ") + layout_width(tail.data, tail.used_bytes);
	text_add(out, "memtrace: ");
	summary_add_program(out, defs, used + 20 < LAYOUT_COLUMNS ? LAYOUT_COLUMNS - used : 20);
	text_add_escaped_bytes(out, tail.data, tail.used_bytes);
	text_add(out, "\n\n");
}

/* The device whose peak is explained: that of the highest one. */
static const struct model_device *highest_device(const struct model *model)
{
	const struct model_device *highest = NULL, *device;
	for (unsigned i = 0; (device = model_device(model, i)); i++)
		if (!highest || device->allocated.peak_bytes > highest->allocated.peak_bytes)
			highest = device;
	return highest;
}

/* What PyTorch had reserved at that moment and nobody used: the part that fragmentation and its
 * cache took. */
static void add_fragmentation(struct text *out, const struct model_device *device)
{
	const struct model_peak *peak = &device->peak;
	uint64_t reserved = peak->pytorch_reserved_bytes;
	if (!devices_knows_fragmentation(device) || reserved < peak->pytorch_allocated_bytes)
		return;
	struct unit unit = unit_for(reserved);
	uint64_t unused = reserved - peak->pytorch_allocated_bytes;
	text_add(out, "  reserved but not allocated then: ");
	text_printf(out, "%llu %s, ", (unsigned long long)unit_round(unit, unused), unit.name);
	layout_percent(out, unused, reserved);
	text_printf(out, " of %llu\n", (unsigned long long)unit_round(unit, reserved));
}

static void add_peak(struct text *out, const struct model *model, const struct defs *defs,
		     const struct model_device *device, bool ascii)
{
	peak_print_heading(out, model, defs, device, ascii);
	peak_print_categories(out, model, device, ascii);
	add_fragmentation(out, device);
	text_add_char(out, '\n');
}

static void add_sites(struct text *out, const struct model *model, const struct defs *defs,
		      const struct model_device *device, const struct sites *sites, bool ascii, size_t limit)
{
	struct sites_style style = {.limit = limit,
				    .ascii = ascii,
				    .has_categories = category_is_any_known(model, device->ordinal),
				    .names_pass = peak_is_of_pass(device),
				    .heading = "Where it was allocated"};
	sites_print(out, defs, sites, &style);
	text_add_char(out, '\n');
}

static void add_steps(struct text *out, const struct model *model, const struct model_device *device)
{
	const struct step_table_style style = {.device = device->ordinal, .limit = STEP_ROWS};
	if (step_table_print(out, model, &style)) {
		peak_print_formula(out, model, device);
		text_add_char(out, '\n');
	}
}

static void add_levers(struct text *out, const struct levers *levers, size_t limit)
{
	size_t before = out->used_bytes;
	levers_print(out, levers, limit);
	if (out->used_bytes > before)
		text_add_char(out, '\n');
}

static void add_oom(struct text *out, const struct defs *defs, const struct model_oom *oom,
		    bool ascii)
{
	char buffer[512];
	struct text place;
	struct where where = where_find(defs, oom->stack, oom->thread);
	text_add(out, "Out of memory on ");
	devices_add_ordinal(out, oom->device);
	text_add(out, " after ");
	text_add_duration(out, oom->time_ns);
	text_add(out, ", asked ");
	text_add_size(out, oom->requested_bytes);
	text_add(out, ", ");
	text_init_fixed(&place, buffer, sizeof buffer);
	where_add(&place, defs, &where, ascii);
	layout_last(out, &place);
}

static void add_troubles(struct text *out, const struct model *model, const struct defs *defs,
			 bool ascii)
{
	const struct model_device *device;
	uint64_t retries = 0, ooms = 0;
	for (unsigned i = 0; (device = model_device(model, i)); i++) {
		retries += device->retries;
		ooms += device->ooms;
	}
	if (retries)
		text_printf(out, "PyTorch emptied its cache and tried again: %'llu\n",
			    (unsigned long long)retries);
	for (size_t i = 0; i < model_oom_count(model); i++)
		add_oom(out, defs, model_oom(model, i), ascii);
	if (ooms > model_oom_count(model))
		text_printf(out, "Out of memory, in all: %'llu\n", (unsigned long long)ooms);
}

/* True: there is none, and the question could be asked, of PyTorch's blocks, and all of them. */
static bool add_findings(struct text *out, const struct model *model, const struct defs *defs,
			 const struct summary_facts *facts)
{
	struct verdict found[FINDINGS_SHOWN];
	const struct verdict_words words = {.defs = defs, .facts = facts, .is_finding = true};
	size_t count = model_findings(model, found, FINDINGS_SHOWN);
	for (size_t i = 0; i < count; i++)
		verdict_print_short(out, &found[i], &words);
	return !count && !model_oom_count(model) && model_totals(model)->block_events && facts_complete(facts);
}

static size_t count_lines(const struct text *text)
{
	size_t lines = 0;
	for (size_t i = 0; i < text->used_bytes; i++)
		lines += text->data[i] == '\n';
	return lines;
}

/* The rows that hold two thirds of the bytes, or the first SITES_WANTED of them. */
static size_t least_sites(const struct sites *sites)
{
	uint64_t bytes = 0;
	size_t rows = 0;
	while (rows < sites->count && rows < SITES_WANTED && bytes < sites->bytes - sites->bytes / 3)
		bytes += sites->rows[rows++].bytes;
	return rows;
}

/* Rows of the table of lines, so that the whole has LINES_MAX: fewer when much else is to be said, but
 * never so few that most of the peak is hidden. */
static size_t fit_sites(const struct sites *sites, size_t lines)
{
	size_t others = lines + 5; /* the table's own, a blank one, and the last two */
	size_t room = others < LINES_MAX ? LINES_MAX - others : 0, least = least_sites(sites);
	if (sites->count == room + 1) /* then no row sums up the rest */
		room++;
	if (room > SITES_SHOWN)
		room = SITES_SHOWN;
	return room > least ? room : least;
}

/* Beside much that was found not even these fit: `least` at least. */
static size_t fit_at_last(size_t rows, size_t lines, size_t least)
{
	size_t room = lines + 5 + least < LINES_MAX ? LINES_MAX - 5 - lines : least;
	return rows > room ? room : rows;
}

/* The levers, as many as leave room for SITES_WANTED rows of lines, none where a few rows do not fit beside them; the
 * number of these rows. */
static size_t fit_levers(struct text *out, const struct levers *levers, const struct sites *sites, size_t lines)
{
	size_t before = out->used_bytes, rows = 0;
	size_t wanted = sites->count < SITES_WANTED ? sites->count : SITES_WANTED;
	for (size_t shown = LEVERS_SHOWN;; shown--) {
		out->used_bytes = before;
		add_levers(out, levers, shown);
		size_t used = lines + count_lines(out);
		rows = fit_sites(sites, used);
		bool fits = used + rows + 5 <= LINES_MAX;
		if (!shown)
			return fit_at_last(rows, used, 1);
		if (shown == 1)
			rows = fit_at_last(rows, used, SITES_LEAST);
		fits |= used + rows + 5 <= LINES_MAX;
		if (shown == LEVERS_LEAST ? fits : rows >= wanted || (shown < LEVERS_LEAST && fits))
			return rows;
	}
}

/* Under a limit of rows, 0: none. */
static size_t count_levers(size_t limit, bool is_full)
{
	size_t most = is_full ? LEVERS_MAX : LEVERS_SHOWN;
	return limit && limit < most ? limit : most;
}

/* All about the highest peak; the table of lines takes what room is left. Returns the verb that comes next. */
static const char *add_device(struct text *out, const struct model *model, const struct defs *defs,
		       const struct summary_facts *facts, size_t tail_lines, const size_t *limit, bool is_full)
{
	const struct model_device *device = highest_device(model);
	struct text steps;
	struct levers levers;
	if (!device || !device->peak.allocated_bytes)
		return levers_next(NULL, true);
	struct sites sites = sites_collect(model, defs, (struct composition){COMPOSITION_PEAK, device->ordinal});
	levers_find(&levers, model, defs, device);
	text_init(&steps);
	add_steps(&steps, model, device);
	add_peak(out, model, defs, device, facts->ascii);
	size_t others = count_lines(out) + tail_lines + (tail_lines > 0), steps_bytes = steps.used_bytes;
	if (limit)
		add_levers(&steps, &levers, count_levers(*limit, is_full));
	size_t rows = limit ? *limit : fit_levers(&steps, &levers, &sites, others);
	add_sites(out, model, defs, device, &sites, facts->ascii, rows);
	text_add_bytes(out, steps.data, steps.used_bytes);
	out->failed |= steps.failed;
	const char *next = levers_next(&levers, steps.used_bytes > steps_bytes);
	sites_release(&sites);
	text_release(&steps);
	return next;
}

static void print(struct text *out, const struct model *model, const struct defs *defs,
		  const struct summary_facts *facts, const size_t *limit, bool is_full)
{
	struct text tail;
	text_init(&tail);
	add_first_line(out, model, defs, facts);
	devices_print(out, model, defs, facts);
	add_troubles(&tail, model, defs, facts->ascii);
	witness_add_line(&tail, model);
	bool is_well = add_findings(&tail, model, defs, facts);
	summary_add_gaps(&tail, model, defs, facts);
	untracked_add_jumps(&tail, model, defs, limit ? *limit : JUMPS_SHOWN, is_full, facts->ascii);
	if (is_full)
		timeline_print(&tail, model, facts->ascii);
	const char *next = add_device(out, model, defs, facts, count_lines(&tail), limit, is_full);
	text_add_bytes(out, tail.data, tail.used_bytes);
	if (tail.used_bytes)
		text_add_char(out, '\n');
	out->failed |= tail.failed;
	text_release(&tail);
	if (is_well)
		text_printf(out, "%s%c", facts_no_problem(facts), facts->trace_path ? ' ' : '\n');
	summary_add_trace(out, facts);
	summary_add_next(out, model_oom_count(model) ? "oom" : next, facts);
}

void summary_print_limit(struct text *out, const struct model *model, const struct defs *defs,
			 const struct summary_facts *facts, size_t limit)
{
	print(out, model, defs, facts, &limit, false);
}

void summary_print_full(struct text *out, const struct model *model, const struct defs *defs,
			const struct summary_facts *facts, size_t limit)
{
	print(out, model, defs, facts, &limit, true);
}

void summary_print(struct text *out, const struct model *model, const struct defs *defs,
		   const struct summary_facts *facts)
{
	print(out, model, defs, facts, NULL, false);
}
