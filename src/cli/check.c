/* `memtrace check`: is a trace whole, and if not, what is missing and why. Owns that answer. With
 * --repair it is about a new trace, made of what can be read; the old one is never changed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/output_name.h"
#include "base/units.h"
#include "cli/load.h"
#include "cli/new_file.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/json.h"
#include "report/summary.h"
#include "base/version.h"
#include "trace/repair.h"

#define PATH_BYTES 4352

enum { OPTION_JSON, OPTION_REPAIR, OPTION_OUTPUT };

static const struct option_row options[] = {
	[OPTION_JSON] = {"json", NULL, "one JSON object a trace"},
	[OPTION_REPAIR] = {"repair", NULL, "write what can be read to a new trace, and check that"},
	[OPTION_OUTPUT] = {"output", "FILE", "its name, with --repair; else NAME.repaired.mtrace"},
	{0},
};

static bool is_repaired(const struct loaded *loaded)
{
	return trace_facts(loaded->trace)->repaired;
}

struct choice {
	bool json;
	bool lost_parts; /* it was repaired just now, without them */
};

/* Not one event of those that there were. */
static bool is_ruin(const struct loaded *loaded, const struct choice *choice)
{
	return !loaded->facts.events && (loaded->facts.lost || choice->lost_parts);
}

/* Of a repaired trace: all can be read. What it lacks was lost before, and is still counted. */
static bool is_whole(const struct loaded *loaded, const struct choice *choice)
{
	bool is_complete = is_repaired(loaded) ? !loaded->facts.torn_reason && !is_ruin(loaded, choice)
					       : facts_complete(&loaded->facts);
	return is_complete && !model_failed(loaded->model);
}

static void print_text(struct text *out, const struct loaded *loaded, const struct choice *choice)
{
	text_add_escaped(out, loaded->facts.trace_path);
	text_add(out, is_whole(loaded, choice) ? ": whole, " : ": not whole, ");
	text_add(out, is_repaired(loaded) ? "repaired, " : "");
	text_add_count(out, loaded->facts.events);
	text_add(out, " events in ");
	text_add_duration(out, loaded->facts.duration_ns);
	summary_add_ended(out, &loaded->facts);
	text_add_char(out, '\n');
	if (is_ruin(loaded, choice))
		text_add(out, "  no event can be read\n");
	if (loaded->facts.given_up) {
		text_add(out, "  the first ");
		text_add_count(out, loaded->facts.given_up);
		text_add(out, " were given up to keep the file within ");
		text_add_size(out, loaded->facts.bound_bytes);
		text_add(out, " (MEMTRACE_MAX_TRACE): ");
		text_add(out, loaded->has_lost_state ? "figures are\n  of what comes after them\n"
						     : "all figures are\n  of the whole run, memtrace dump "
						       "begins after them\n");
	}
	if (loaded->facts.bound_bytes && loaded->facts.file_bytes > loaded->facts.bound_bytes) {
		text_add(out, "  it takes ");
		text_add_size(out, loaded->facts.file_bytes);
		text_add(out, ", more than the bound: what is live and the stacks are never given up\n");
	}
	summary_add_gaps(out, loaded->model, trace_defs(loaded->trace), &loaded->facts);
}

static void print_json(struct text *out, const struct loaded *loaded, const struct choice *choice)
{
	const struct defs *defs = trace_defs(loaded->trace);
	struct json json = {.out = out};
	json_open(&json, NULL, '{');
	json_string(&json, "memtrace", VERSION_TEXT);
	json_bool(&json, "whole", is_whole(loaded, choice));
	json_bool(&json, "repaired", is_repaired(loaded));
	json_add_program(&json, defs, &loaded->facts);
	json_add_trace(&json, loaded->model, &loaded->facts);
	json_add_blind(&json, loaded->model, defs, &loaded->facts);
	json_close(&json, '}');
	text_add_char(out, '\n');
}

static int check(const char *path, const void *context)
{
	const struct choice *choice = context;
	struct loaded loaded;
	struct text out;
	int status = load_open(&loaded, path);
	if (!status)
		status = load_replay(&loaded);
	if (status)
		return status;
	text_init(&out);
	if (choice->json)
		print_json(&out, &loaded, choice);
	else
		print_text(&out, &loaded, choice);
	output_write(&out);
	text_release(&out);
	status = is_whole(&loaded, choice) ? STATUS_YES : STATUS_NO;
	load_close(&loaded);
	return status;
}

/* run.mtrace → run.repaired.mtrace */
static void make_name(char name[PATH_BYTES], const char *path)
{
	snprintf(name, PATH_BYTES, "%.*s.repaired" OUTPUT_SUFFIX, (int)output_stem_bytes(path), path);
}

static void tell_repair(const char *path, const struct repair *repair)
{
	if (repair->parts)
		tell("%s: damaged parts left out: %llu, %llu bytes in all", path,
		     (unsigned long long)repair->parts,
		     (unsigned long long)repair->dropped_bytes);
}

static int tell_no_file(const char *name, int error)
{
	const char *advice = error == -EEXIST ? "; nothing is replaced: give another name with --output" : "";
	tell("%s: %s%s", name, strerror(-error), advice);
	return STATUS_UNREADABLE;
}

/* The new trace has its name once it is whole: half of one would pass as one of a run with few events. */
static int write_repaired(const char *path, const char *name, struct repair *found)
{
	struct new_file file;
	char error[1024];
	int failed = new_file_begin(&file, name);
	if (failed)
		return tell_no_file(name, failed);
	if (trace_repair(path, file.part, name, found, error, sizeof error)) {
		new_file_drop(&file);
		tell("%s", error);
		return STATUS_UNREADABLE;
	}
	failed = new_file_finish(&file);
	return failed ? tell_no_file(name, failed) : STATUS_YES;
}

static int repair(const char *path, const void *context)
{
	const struct arguments *arguments = context;
	const char *output = arguments->options[OPTION_OUTPUT];
	char name[PATH_BYTES];
	struct repair found;
	make_name(name, path);
	int status = write_repaired(path, output ? output : name, &found);
	if (status)
		return status;
	tell_repair(path, &found);
	const struct choice choice = {.json = arguments->options[OPTION_JSON], .lost_parts = found.parts};
	return check(output ? output : name, &choice);
}

static int run(const struct arguments *arguments)
{
	const struct choice choice = {.json = arguments->options[OPTION_JSON]};
	const char *output = arguments->options[OPTION_OUTPUT];
	if (output && !arguments->options[OPTION_REPAIR])
		return options_wrong(&verb_check, "--output goes with --repair");
	if (output && arguments->operand_count > 1)
		return options_wrong(&verb_check, "--output is the name of one trace, repair one");
	if (arguments->options[OPTION_REPAIR])
		return load_each(&verb_check, arguments, repair, arguments);
	return load_each(&verb_check, arguments, check, &choice);
}

const struct verb verb_check = {
	.name = "check",
	.summary = "Tells whether a trace is whole, and what is missing; repairs it",
	.usage = "[options] TRACE...",
	.details = "Exit status: 0 whole, 1 not whole, 3 it cannot be read.",
	.options = options,
	.letter = 'o',
	.letter_row = OPTION_OUTPUT,
	.operands_least = 1,
	.run = run,
};
