/* `memtrace dump`: every event of a trace, in order. Owns the loop and its speed; the lines are
 * report/dump.c. Models are built for the JSON's categories, known at the end, and for --tracked. */
#include "report/dump.h"

#include "cli/labels.h"
#include "cli/load.h"
#include "cli/names.h"
#include "cli/options.h"
#include "cli/output.h"

enum { OPTION_JSON, OPTION_STACKS, OPTION_TRACKED, OPTION_LINES, OPTION_DEBUGINFOD };

static const struct option_row options[] = {
	[OPTION_JSON] = {"json", NULL, "one JSON object an event"},
	[OPTION_STACKS] = {"stacks", NULL, "with Python and native frames, innermost first"},
	[OPTION_TRACKED] = {"tracked", NULL, "with what is tracked on the event's device then (--json)"},
	[OPTION_LINES] = OPTION_ROW_LINES,
	[OPTION_DEBUGINFOD] = OPTION_ROW_DEBUGINFOD,
	{0},
};

struct choice {
	bool json, tracked, lines, debuginfod;
	struct dump_style style;
};

#define WRITE_BYTES 65536

static bool dump_events(struct loaded *loaded, const struct choice *choice,
			const struct labels *labels, struct text *out)
{
	const struct defs *defs = trace_defs(loaded->trace);
	struct dump_style style = choice->style;
	struct event event;
	if (choice->tracked)
		style.tracked = loaded->model = load_begin(loaded);
	while (trace_next(loaded->trace, &event)) {
		if (style.tracked)
			model_apply(style.tracked, &event);
		if (choice->json)
			dump_json(out, defs, &event, labels_category(labels, event.sequence),
				  &style);
		else
			dump_table(out, defs, &event, &style);
		if (out->used_bytes >= WRITE_BYTES && !output_write(out))
			return false;
	}
	return output_write(out);
}

static int dump(const char *path, const void *context)
{
	const struct choice *choice = context;
	struct loaded loaded;
	struct labels labels = {0};
	struct text out;
	int status = load_open(&loaded, path);
	if (status)
		return status;
	if (!choice->json || choice->style.stacks)
		names_find(&loaded);
	if (choice->lines)
		names_find_lines(&loaded, choice->debuginfod);
	if (choice->json)
		labels_open(&labels, path);
	text_init(&out);
	if (!choice->json)
		dump_table_head(&out);
	dump_events(&loaded, choice, &labels, &out);
	labels_close(&labels);
	load_refresh_facts(&loaded);
	if (loaded.facts.given_up)
		tell("%s: the first %llu events were given up to keep the file within its bound", path,
		     (unsigned long long)loaded.facts.given_up);
	if (!facts_complete(&loaded.facts))
		tell("%s is not whole; see: memtrace check", path);
	text_release(&out);
	load_close(&loaded);
	return STATUS_YES;
}

static int run(const struct arguments *arguments)
{
	struct choice choice = {
		.json = arguments->options[OPTION_JSON],
		.tracked = arguments->options[OPTION_TRACKED],
		.lines = arguments->options[OPTION_LINES],
		.debuginfod = arguments->options[OPTION_DEBUGINFOD],
		.style = {.stacks = arguments->options[OPTION_STACKS], .ascii = output_is_ascii()},
	};
	return load_each(&verb_dump, arguments, dump, &choice);
}

const struct verb verb_dump = {
	.name = "dump",
	.summary = "Prints every event",
	.usage = "[options] [TRACE...]",
	.details = LOAD_NEWEST,
	.options = options,
	.run = run,
};
