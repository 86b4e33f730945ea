/* `memtrace check`: is a trace whole, and if not, what is missing and why. Owns that answer. Does
 * not repair. */
#include "base/units.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/json.h"
#include "report/summary.h"
#include "base/version.h"

enum { OPTION_JSON };

static const struct option_row options[] = {
	[OPTION_JSON] = {"json", NULL, "one JSON object a trace"},
	{0},
};

static bool is_whole(const struct loaded *loaded)
{
	return facts_complete(&loaded->facts) && !model_failed(loaded->model);
}

static void print_text(struct text *out, const struct loaded *loaded)
{
	text_add_escaped(out, loaded->facts.trace_path);
	text_add(out, is_whole(loaded) ? ": whole, " : ": not whole, ");
	text_add_count(out, loaded->facts.events);
	text_add(out, " events in ");
	text_add_duration(out, loaded->facts.duration_ns);
	summary_add_ended(out, &loaded->facts);
	text_add_char(out, '\n');
	if (loaded->facts.given_up) {
		text_add(out, "  the first ");
		text_add_count(out, loaded->facts.given_up);
		text_add(out, " were given up to keep the file within ");
		text_add_size(out, loaded->facts.bound_bytes);
		text_add(out, " (MEMTRACE_MAX_TRACE): all figures are\n  of the whole run, memtrace dump "
			      "begins after them\n");
	}
	summary_add_gaps(out, loaded->model, trace_defs(loaded->trace), &loaded->facts);
}

static void print_json(struct text *out, const struct loaded *loaded)
{
	const struct defs *defs = trace_defs(loaded->trace);
	struct json json = {.out = out};
	json_open(&json, NULL, '{');
	json_string(&json, "memtrace", VERSION_TEXT);
	json_bool(&json, "whole", is_whole(loaded));
	json_add_program(&json, defs, &loaded->facts);
	json_add_trace(&json, loaded->model, &loaded->facts);
	json_add_blind(&json, loaded->model, defs, &loaded->facts);
	json_close(&json, '}');
	text_add_char(out, '\n');
}

static int check(const char *path, const void *context)
{
	const bool *json = context;
	struct loaded loaded;
	struct text out;
	int status = load_trace(&loaded, path);
	if (status)
		return status;
	text_init(&out);
	if (*json)
		print_json(&out, &loaded);
	else
		print_text(&out, &loaded);
	output_write(&out);
	text_release(&out);
	status = is_whole(&loaded) ? STATUS_YES : STATUS_NO;
	load_close(&loaded);
	return status;
}

static int run(const struct arguments *arguments)
{
	bool json = arguments->options[OPTION_JSON];
	return load_each(arguments, check, &json);
}

const struct verb verb_check = {
	.name = "check",
	.summary = "Tells whether a trace is whole, and what is missing",
	.usage = "[options] TRACE...",
	.details = "Exit status: 0 whole, 1 not whole, 3 it cannot be read.",
	.options = options,
	.operands_least = 1,
	.run = run,
};
