/* `memtrace report`: what peaked, and where it was allocated. Owns the choice of the printer and of
 * the trace when none is named. Does not judge: `peak` does. */
#include <string.h>

#include "cli/load.h"
#include "cli/names.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/by.h"
#include "report/json.h"
#include "report/oom.h"
#include "report/summary.h"

enum { OPTION_JSON, OPTION_BY, OPTION_FULL, OPTION_LIMIT, OPTION_LINES, OPTION_DEBUGINFOD };

static const struct option_row options[] = {
	[OPTION_JSON] = {"json", NULL, "one JSON object a trace"},
	[OPTION_BY] = {"by", "WHAT", "the peak by line, stack, op, module, category or owner"},
	[OPTION_FULL] = {"full", NULL, "all rows, all frames of a stack, and all about every OOM"},
	[OPTION_LIMIT] = {"limit", "N", "at most N rows of a table (of --by: 20; else what fits 40 lines)"},
	[OPTION_LINES] = OPTION_ROW_LINES,
	[OPTION_DEBUGINFOD] = OPTION_ROW_DEBUGINFOD,
	{0},
};

#define ROWS_BY_DEFAULT 20

struct choice {
	bool json, full, has_by, has_limit, lines, debuginfod;
	enum by_kind by;
	uint64_t limit;
};

static void print_full(struct text *out, const struct loaded *loaded, const struct choice *choice)
{
	const struct defs *defs = trace_defs(loaded->trace);
	summary_print_full(out, loaded->model, defs, &loaded->facts, choice->has_limit ? choice->limit : 0);
	for (size_t i = 0; i < model_oom_count(loaded->model); i++) {
		text_add_char(out, '\n');
		oom_print(out, loaded->model, defs, &loaded->facts, i, NULL);
	}
}

static void print_by(struct text *out, const struct loaded *loaded, const struct choice *choice,
		     size_t rows)
{
	const struct by_style style = {
		.kind = choice->by,
		.limit = rows,
		.stacks = {.full = choice->full,
			   .ascii = loaded->facts.ascii,
			   .demangle = names_demangle},
	};
	by_print(out, loaded->model, trace_defs(loaded->trace), &loaded->facts, &style);
}

static void print(struct text *out, const struct loaded *loaded, const struct choice *choice)
{
	const struct defs *defs = trace_defs(loaded->trace);
	uint64_t rows = choice->has_limit ? choice->limit : choice->full ? 0 : ROWS_BY_DEFAULT;
	if (choice->json)
		json_print(out, loaded->model, defs, &loaded->facts);
	else if (choice->has_by)
		print_by(out, loaded, choice, rows);
	else if (choice->full)
		print_full(out, loaded, choice);
	else if (choice->has_limit)
		summary_print_limit(out, loaded->model, defs, &loaded->facts, choice->limit);
	else
		summary_print(out, loaded->model, defs, &loaded->facts);
}

static int report(const char *path, const void *context)
{
	const struct choice *choice = context;
	struct loaded loaded;
	struct text out;
	int status = load_trace(&loaded, path);
	if (status)
		return status;
	names_find_asked(&loaded, choice->lines, choice->debuginfod);
	text_init(&out);
	print(&out, &loaded, choice);
	output_write_report(&out, choice->json);
	text_release(&out);
	load_close(&loaded);
	return STATUS_YES;
}

static bool parse_by(const char *word, enum by_kind *by)
{
	static const char *const names[] = {
		[BY_LINE] = "line", [BY_STACK] = "stack",   [BY_OWNER] = "owner",
		[BY_OP] = "op",     [BY_MODULE] = "module", [BY_CATEGORY] = "category"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (!strcmp(word, names[i])) {
			*by = (enum by_kind)i;
			return true;
		}
	}
	return false;
}

static int run(const struct arguments *arguments)
{
	struct choice choice = {
		.json = arguments->options[OPTION_JSON],
		.full = arguments->options[OPTION_FULL],
		.has_by = arguments->options[OPTION_BY],
		.has_limit = arguments->options[OPTION_LIMIT],
		.lines = arguments->options[OPTION_LINES],
		.debuginfod = arguments->options[OPTION_DEBUGINFOD],
	};
	if (choice.has_by && !parse_by(arguments->options[OPTION_BY], &choice.by))
		return options_wrong(&verb_report, "--by is line, stack, op, module, category or owner, not %s",
				     arguments->options[OPTION_BY]);
	if (choice.has_limit && !options_number(arguments->options[OPTION_LIMIT], &choice.limit))
		return options_wrong(&verb_report, "--limit is a number of rows, not %s",
				     arguments->options[OPTION_LIMIT]);
	return load_each(&verb_report, arguments, report, &choice);
}

const struct verb verb_report = {
	.name = "report",
	.summary = "Tells what peaked and where it was allocated",
	.usage = "[options] [TRACE...]",
	.details = LOAD_NEWEST,
	.options = options,
	.run = run,
};
