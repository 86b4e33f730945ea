/* `memtrace oom`: why memory ran out, in each case that the trace has, and what is wrong with a run that did not run
 * out. Owns the choice of the printer. */
#include "report/oom.h"

#include "base/version.h"
#include "cli/load.h"
#include "cli/names.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/json.h"
#include "report/verdict.h"

enum { OPTION_JSON, OPTION_LINES, OPTION_DEBUGINFOD };

static const struct option_row options[] = {
	[OPTION_JSON] = {"json", NULL, "one JSON object a trace"},
	[OPTION_LINES] = OPTION_ROW_LINES,
	[OPTION_DEBUGINFOD] = OPTION_ROW_DEBUGINFOD,
	{0},
};

struct choice {
	bool json, lines, debuginfod;
};

static void print_json(struct text *out, const struct loaded *loaded)
{
	const struct defs *defs = trace_defs(loaded->trace);
	struct json json = {.out = out};
	json_open(&json, NULL, '{');
	json_string(&json, "memtrace", VERSION_TEXT);
	json_string(&json, "path", loaded->facts.trace_path);
	json_add_ooms(&json, loaded->model, defs);
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
	if (!count)
		text_add(out, "No problem found.\n");
}

static void print_text(struct text *out, const struct loaded *loaded)
{
	size_t count = model_oom_count(loaded->model);
	for (size_t i = 0; i < count; i++) {
		oom_print(out, loaded->model, trace_defs(loaded->trace), &loaded->facts, i);
		if (i + 1 < count)
			text_add_char(out, '\n');
	}
	if (count)
		return;
	text_add_escaped(out, loaded->facts.trace_path);
	text_add(out, ": memory did not run out\n");
	print_findings(out, loaded);
}

static int oom(const char *path, const void *context)
{
	const struct choice *choice = context;
	struct loaded loaded;
	struct text out;
	int status = load_trace(&loaded, path);
	if (status)
		return status;
	names_find(&loaded);
	if (choice->lines)
		names_find_lines(&loaded, choice->debuginfod);
	text_init(&out);
	if (choice->json)
		print_json(&out, &loaded);
	else
		print_text(&out, &loaded);
	if (choice->json)
		output_write(&out);
	else
		output_write_report(&out);
	text_release(&out);
	status = model_oom_count(loaded.model) ? STATUS_NO : STATUS_YES;
	load_close(&loaded);
	return status;
}

static int run(const struct arguments *arguments)
{
	struct choice choice = {
		.json = arguments->options[OPTION_JSON],
		.lines = arguments->options[OPTION_LINES],
		.debuginfod = arguments->options[OPTION_DEBUGINFOD],
	};
	return load_each(arguments, oom, &choice);
}

const struct verb verb_oom = {
	.name = "oom",
	.summary = "Tells why memory ran out, what would help and what would not",
	.usage = "[options] TRACE...",
	.details = "Of a run that did not run out: what is wrong with it, if anything. Exit status: 0 memory did not\n"
		   "run out, 1 it did, 3 the trace cannot be read.",
	.options = options,
	.operands_least = 1,
	.run = run,
};
