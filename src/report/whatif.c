/* What other allocator settings would have done, for people. Owns the words of the error bar and the
 * table. Must never print more digits than the replay of the run itself earned. */
#include "report/whatif.h"

#include "base/units.h"
#include "report/devices.h"
#include "report/layout.h"

#define MIB	      (1ull << 20)
#define DOUBT_ERROR   0.1 /* with private pools, whose classes are inferred */

/* ---------- figures ---------- */

static double error_of_replay(const struct whatif *whatif)
{
	double error = whatif_error(whatif);
	return whatif->doubts.has_private_pools && error < DOUBT_ERROR ? DOUBT_ERROR : error;
}

/* The unit to which a figure is rounded: its last digit is the one that its error reaches, none is printed below. */
static uint64_t unit_of(double error, uint64_t mib)
{
	uint64_t unit = 1;
	while ((double)(10 * unit) <= error * (double)mib)
		unit *= 10;
	return unit;
}

static void add_number(struct text *out, uint64_t number, int width)
{
	char buffer[32];
	struct text digits;
	text_init_fixed(&digits, buffer, sizeof buffer);
	text_printf(&digits, "%llu", (unsigned long long)number);
	for (size_t i = digits.used_bytes; i < (size_t)width; i++)
		text_add_char(out, ' ');
	text_add_bytes(out, digits.data, digits.used_bytes);
}

static void add_mib(struct text *out, double error, uint64_t bytes, int width)
{
	uint64_t mib = (bytes + MIB / 2) / MIB, unit = unit_of(error, mib);
	add_number(out, (mib + unit / 2) / unit * unit, width);
}

/* ---------- the error bar ---------- */

static void add_identity(struct text *out, const struct whatif *whatif)
{
	const struct allocator_counters *model = &whatif->identity.counters;
	const struct sequence_counts *recorded = &whatif->sequence->counts;
	text_printf(out,
		    "The replay of the run itself: peak reserved %llu MiB of %llu recorded, "
		    "%llu driver allocations of %llu",
		    (unsigned long long)(model->peak_reserved_bytes / MIB),
		    (unsigned long long)(recorded->peak_reserved_bytes / MIB),
		    (unsigned long long)model->device_allocs,
		    (unsigned long long)recorded->device_allocs);
	if (whatif_error(whatif) > 0) {
		text_add(out, ": all figures are good to ");
		text_add_decimal(out, 100 * whatif_error(whatif), 1);
		text_add(out, " % at best");
	}
	text_add(out, ".\n");
}

static void add_doubts(struct text *out, const struct whatif *whatif)
{
	const struct whatif_doubts *doubts = &whatif->doubts;
	if (doubts->has_private_pools)
		text_add(out, "Private pools (CUDA graphs, MemPool) are inferred from the layout: "
			      "figures are good to 20 %.\n");
	if (doubts->contradictions)
		text_printf(out, "%llu placements are not explained by the pools inferred.\n",
			    (unsigned long long)doubts->contradictions);
	if (doubts->ambiguous)
		text_printf(out,
			    "Of %llu large blocks it is known only up to 1 MiB what was asked for.\n",
			    (unsigned long long)doubts->ambiguous);
	if (doubts->adapts)
		text_add(out, "The program asked how much memory is free: if it acts on that, another "
			      "setting changes what it does.\n");
	if (whatif->sequence->counts.limit_below_bytes)
		text_printf(out,
			    "The program limits what PyTorch may reserve, to a size from %llu to %llu MiB (inferred "
			    "from its OOM): the settings below are replayed without that limit.\n",
			    (unsigned long long)(whatif->sequence->counts.limit_least_bytes / MIB),
			    (unsigned long long)(whatif->sequence->counts.limit_below_bytes / MIB));
	if (!whatif->version.major)
		text_add(out, "The trace does not tell which PyTorch it was: it is taken for the newest.\n");
	if (doubts->conf_unknown)
		text_add(out, "The settings of the run have a word that is not known: it is left out.\n");
	if (doubts->is_partial)
		text_add(out, "The trace is not whole: what is missing is not replayed.\n");
	if (whatif->sequence->counts.ooms)
		text_add(out, "The run ended in an OOM, or caught one: what gets past that may run out later, as what "
			      "comes then is not known.\n");
}

/* ---------- the table ---------- */

static void add_setting_name(struct text *out, const struct whatif_setting *setting)
{
	text_add_escaped(out, *setting->conf ? setting->conf : "(defaults)");
	if (setting->empties_each_step)
		text_add(out, " + empty_cache() each step");
	if (setting->is_recorded)
		text_add(out, "  <- this run");
}

/* Within the error of private pools the memory may be enough or not. The run itself is known. */
static bool is_doubtful(const struct whatif_view *view, const struct whatif_setting *setting)
{
	uint64_t others = view->whatif->other_bytes;
	uint64_t usable = view->memory_bytes > others ? view->memory_bytes - others : 0;
	if (!view->whatif->doubts.has_private_pools || setting->is_recorded)
		return false;
	return setting->result.ooms ? setting->need_bytes / 5 * 4 <= usable :
				      setting->need_bytes > usable / 5 * 4;
}

enum whatif_outcome whatif_outcome_of(const struct whatif_view *view, const struct whatif_setting *setting)
{
	bool doubtful = is_doubtful(view, setting);
	if (setting->result.ooms)
		return doubtful ? WHATIF_MAY_RUN_OUT : WHATIF_RUNS_OUT;
	if (view->whatif->sequence->counts.ooms)
		return doubtful ? WHATIF_MAY_GET_PAST : WHATIF_GETS_PAST;
	return doubtful ? WHATIF_MAY_FIT : WHATIF_FITS;
}

static bool is_beyond(const struct whatif_view *view, uint64_t bytes)
{
	return !view->memory_bytes && view->card_bytes && bytes > view->card_bytes;
}

static void add_outcome(struct text *out, const struct whatif_view *view,
			const struct whatif_setting *setting)
{
	static const char *const words[] = {
		[WHATIF_FITS] = "  fits          ",
		[WHATIF_MAY_FIT] = "  may fit       ",
		[WHATIF_GETS_PAST] = "  gets past OOM ",
		[WHATIF_MAY_GET_PAST] = "  may pass OOM  ",
		[WHATIF_MAY_RUN_OUT] = "  may run out   ",
	};
	enum whatif_outcome outcome = whatif_outcome_of(view, setting);
	add_number(out, setting->result.counters.retries, 9);
	if (outcome == WHATIF_RUNS_OUT)
		text_printf(out, "  OOM, step %-4llu",
			    (unsigned long long)setting->result.oom_step + 1);
	else
		text_add(out, words[outcome]);
}

/* In brackets what no such GPU has. */
static void add_reserved(struct text *out, const struct whatif_view *view, double error, uint64_t bytes)
{
	char buffer[32];
	struct text piece;
	text_init_fixed(&piece, buffer, sizeof buffer);
	text_add_char(&piece, '(');
	add_mib(&piece, error, bytes, 0);
	text_add_char(&piece, ')');
	if (is_beyond(view, bytes))
		text_printf(out, "%*s", 15, text_string(&piece));
	else
		add_mib(out, error, bytes, 15);
}

/* In a line of its own where the line has no room. */
static void add_setting(struct text *out, const struct whatif_setting *setting, size_t column)
{
	char buffer[WHATIF_NAME_BYTES + 64];
	struct text name;
	text_init_fixed(&name, buffer, sizeof buffer - 1);
	add_setting_name(&name, setting);
	bool fits = column + 2 + layout_width(name.data, name.used_bytes) <= layout_columns();
	while (!fits && out->used_bytes && out->data[out->used_bytes - 1] == ' ')
		out->used_bytes--;
	text_add(out, fits ? "  " : "\n        ");
	text_add_bytes(out, name.data, name.used_bytes);
	text_add_char(out, '\n');
}

static void add_row(struct text *out, const struct whatif_view *view,
		    const struct whatif_setting *setting)
{
	const struct allocator_counters *counters = &setting->result.counters;
	double error = error_of_replay(view->whatif);
	size_t start = out->used_bytes;
	add_mib(out, error, setting->need_bytes, 12);
	if (setting->is_recorded)
		error = whatif_error(view->whatif); /* its own figures are known */
	add_reserved(out, view, error, counters->peak_reserved_bytes);
	add_mib(out, error, counters->reserved_bytes, 11);
	add_number(out, counters->device_allocs, 14);
	if (view->memory_bytes)
		add_outcome(out, view, setting);
	add_setting(out, setting, out->used_bytes - start);
}

static const char *origin_of_steps(const struct sequence_counts *counts)
{
	if (counts->steps_are_marked)
		return "as the program marked them";
	if (counts->steps_are_trained)
		return "of its optimizer";
	return "taken to end where allocated memory is at a low that recurs";
}

static void add_notes(struct text *out, const struct whatif_view *view)
{
	const struct whatif *whatif = view->whatif;
	bool any_beyond = false;
	for (size_t i = 0; i < whatif->setting_count; i++)
		any_beyond |= is_beyond(view, whatif->settings[i].result.counters.peak_reserved_bytes);
	if (any_beyond) {
		text_add(out, "In brackets is more than the GPU had, ");
		text_add_size(out, view->card_bytes);
		text_add(out, ": what it would reserve on a larger one. There it empties its cache and asks again.\n");
	}
	text_add(out, "needs: about the least device memory in which the run gets ");
	text_add(out, whatif->sequence->counts.ooms ? "past its OOM" : "through");
	text_add(out, ", if need be by retries (PyTorch empties its cache and asks again); beside the CUDA context");
	if (whatif->other_bytes) {
		text_add(out, " and other processes (");
		text_add_size(out, whatif->other_bytes);
		text_add(out, " in this run)");
	}
	text_add(out, ".\n");
	for (size_t i = 0; i < whatif->setting_count; i++)
		if (whatif->settings[i].empties_each_step && !whatif->sequence->counts.steps) {
			text_add(out, "No step was seen after which to call empty_cache().\n");
			return;
		} else if (whatif->settings[i].empties_each_step) {
			text_printf(out, "Steps: %llu, %s.\n",
				    (unsigned long long)whatif->sequence->counts.steps,
				    origin_of_steps(&whatif->sequence->counts));
			return;
		}
}

/* Its lines, none wider than the terminal. */
static void add_lines(struct text *out, const struct text *words)
{
	for (size_t at = 0, end; at < words->used_bytes; at = end + 1) {
		for (end = at; end < words->used_bytes && words->data[end] != '\n';)
			end++;
		layout_wrapped(out, &(struct text){.data = words->data + at, .used_bytes = end - at}, "");
	}
	out->failed |= words->failed;
}

static void add_table(struct text *out, const struct whatif_view *view)
{
	static const char columns[] = "\n   needs MiB  peak reserved     at end driver allocs", outcome[] = "  retries  outcome",
			  pad[] = "        ",
			  name[] = "  PYTORCH_ALLOC_CONF";
	size_t width = sizeof columns - 2 + (view->memory_bytes ? sizeof outcome + sizeof pad - 2 : 0) + sizeof name - 1;
	bool fits = width <= layout_columns();
	if (view->memory_bytes) {
		text_add(out, "\nOn a GPU of ");
		text_add_size(out, view->memory_bytes);
		text_add(out, ":\n");
	}
	text_add(out, columns);
	text_add(out, view->memory_bytes ? outcome : "");
	text_add(out, fits && view->memory_bytes ? pad : "");
	text_add(out, fits ? name : "\n      PYTORCH_ALLOC_CONF");
	text_add_char(out, '\n');
	for (size_t i = 0; i < view->whatif->setting_count; i++)
		add_row(out, view, &view->whatif->settings[i]);
}

void whatif_print(struct text *out, const struct whatif_view *view)
{
	const struct whatif *whatif = view->whatif;
	struct text words;
	text_init(&words);
	text_add_escaped(out, view->facts->trace_path);
	text_add(out, ", ");
	devices_add_ordinal(out, view->device);
	text_add(out, ", ");
	text_add_count(out, whatif->sequence->counts.blocks);
	text_add(out, " blocks\n");
	add_identity(&words, whatif);
	add_doubts(&words, whatif);
	add_lines(out, &words);
	add_table(out, view);
	words.used_bytes = 0;
	add_notes(&words, view);
	text_add_char(out, '\n');
	add_lines(out, &words);
	text_release(&words);
}
