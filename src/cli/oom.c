/* `memtrace oom`: why memory ran out, in each case that the trace has, and what is wrong with a run that did not run
 * out. Owns the choice of the printer. */
#include "report/oom.h"

#include "base/version.h"
#include "cli/cure.h"
#include "cli/load.h"
#include "cli/names.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/snapshot.h"
#include "report/json.h"
#include "report/summary.h"
#include "report/verdict.h"

enum { OPTION_JSON, OPTION_PICKLE, OPTION_OOM, OPTION_LINES, OPTION_DEBUGINFOD };

static const struct option_row options[] = {
	[OPTION_JSON] = {"json", NULL, "one JSON object a trace"},
	[OPTION_PICKLE] = {"pickle", "FILE", "writes PyTorch's segments then, and the events before, for its memory_viz"},
	[OPTION_OOM] = {"oom", "N", "with --pickle: the N-th OOM's; else the first's"},
	[OPTION_LINES] = OPTION_ROW_LINES,
	[OPTION_DEBUGINFOD] = OPTION_ROW_DEBUGINFOD,
	{0},
};

struct choice {
	bool json, lines, debuginfod;
	const char *pickle;
	uint64_t number; /* from 1 */
};

/* May the trace lack an OOM? */
static const char *no_oom(const struct loaded *loaded)
{
	return load_may_lack(loaded) ? "no OOM is in what there is of the trace" : "memory did not run out";
}

static void print_json(struct text *out, const struct loaded *loaded, const struct verdict_cure *cures)
{
	const struct defs *defs = trace_defs(loaded->trace);
	struct json json = {.out = out};
	json_open(&json, NULL, '{');
	json_string(&json, "memtrace", VERSION_TEXT);
	json_string(&json, "path", loaded->facts.trace_path);
	json_bool(&json, "complete", !load_may_lack(loaded));
	json_add_ooms(&json, loaded->model, defs, cures);
	json_add_findings(&json, loaded->model, defs);
	json_close(&json, '}');
	text_add_char(out, '\n');
}

static void print_findings(struct text *out, const struct loaded *loaded)
{
	struct verdict found[FINDINGS_MAX];
	const struct verdict_words words = {
		.defs = trace_defs(loaded->trace), .facts = &loaded->facts, .is_finding = true};
	size_t count = model_findings(loaded->model, found, FINDINGS_MAX);
	for (size_t i = 0; i < count; i++) {
		verdict_print(out, &found[i], &words);
		text_add_char(out, '\n');
	}
	if (!count && !load_may_lack(loaded))
		text_printf(out, "%s\n", facts_no_problem(&loaded->facts));
}

static void print_text(struct text *out, const struct loaded *loaded, const struct verdict_cure *cures)
{
	size_t count = model_oom_count(loaded->model);
	for (size_t i = 0; i < count; i++) {
		oom_print(out, loaded->model, trace_defs(loaded->trace), &loaded->facts, i, &cures[i]);
		if (i + 1 < count)
			text_add_char(out, '\n');
	}
	if (count)
		return;
	text_add_escaped(out, loaded->facts.trace_path);
	text_printf(out, ": %s\n", no_oom(loaded));
	print_findings(out, loaded);
	if (load_may_lack(loaded))
		summary_add_gaps(out, loaded->model, trace_defs(loaded->trace), &loaded->facts);
}

static int write_pickle(const struct loaded *loaded, const struct choice *choice)
{
	const char *path = loaded->facts.trace_path;
	size_t count = model_oom_count(loaded->model);
	if (choice->number > count) {
		if (count)
			tell("%s: the last OOM that is kept is number %zu: %s is not written", path, count, choice->pickle);
		else
			tell("%s: %s: %s is not written", path, no_oom(loaded), choice->pickle);
		return load_may_lack(loaded) ? STATUS_UNREADABLE : STATUS_NO;
	}
	int status = snapshot_save(loaded, (size_t)choice->number - 1, choice->pickle);
	if (!status)
		tell("wrote %s (opens in PyTorch's memory_viz)", choice->pickle);
	return status;
}

static int answer_of(const struct loaded *loaded)
{
	if (model_oom_count(loaded->model))
		return STATUS_NO;
	return load_may_lack(loaded) ? STATUS_UNREADABLE : STATUS_YES;
}

static int oom(const char *path, const void *context)
{
	const struct choice *choice = context;
	struct verdict_cure cures[MODEL_OOMS_MAX];
	struct loaded loaded;
	struct text out;
	int status = load_trace(&loaded, path);
	if (status)
		return status;
	names_find_asked(&loaded, choice->lines, choice->debuginfod);
	cures_find(&loaded, cures);
	text_init(&out);
	if (choice->json)
		print_json(&out, &loaded, cures);
	else
		print_text(&out, &loaded, cures);
	output_write_report(&out, choice->json);
	text_release(&out);
	status = choice->pickle ? write_pickle(&loaded, choice) : answer_of(&loaded);
	load_close(&loaded);
	return status;
}

static int run(const struct arguments *arguments)
{
	struct choice choice = {
		.json = arguments->options[OPTION_JSON],
		.lines = arguments->options[OPTION_LINES],
		.debuginfod = arguments->options[OPTION_DEBUGINFOD],
		.pickle = arguments->options[OPTION_PICKLE],
		.number = 1,
	};
	const char *number = arguments->options[OPTION_OOM];
	if (number && (!options_number(number, &choice.number) || !choice.number))
		return options_wrong(&verb_oom, "--oom is the number of an OOM, from 1, not %s", number);
	if (number && !choice.pickle)
		return options_wrong(&verb_oom, "--oom goes with --pickle");
	if (choice.pickle && arguments->operand_count > 1)
		return options_wrong(&verb_oom, "--pickle is for one trace");
	return load_each(&verb_oom, arguments, oom, &choice);
}

const struct verb verb_oom = {
	.name = "oom",
	.summary = "Tells why memory ran out, what would help and what would not",
	.usage = "[options] [TRACE...]",
	.details = "Of a run that did not run out: what is wrong with it, if anything. Exit status: 0 memory did not\n"
		   "run out, 1 it did, 3 the trace cannot be read, or lacks events and has none. With --pickle: 0 the\n"
		   "file was written, 1 there is no such OOM.\n" LOAD_NEWEST,
	.options = options,
	.run = run,
};
