/* `memtrace flame`: memory by stack as folded lines, for flamegraph.pl and speedscope. Owns the
 * choice of the moment and of the device, and where the lines go. Draws nothing. */
#include "report/flame.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/load.h"
#include "cli/names.h"
#include "cli/new_file.h"
#include "cli/options.h"
#include "cli/output.h"
#include "model/owner_name.h"
#include "report/owner.h"
#include "report/sites.h"

enum { OPTION_AT, OPTION_DEVICE, OPTION_OUTPUT, OPTION_LINES, OPTION_DEBUGINFOD };

static const struct option_row options[] = {
	[OPTION_AT] = {"at", "peak|total|oom",
		       "what counts: live at the peak (default), all ever allocated, live at the "
		       "last OOM"},
	[OPTION_DEVICE] = {"device", "N", "of this GPU; else of the one with the highest peak"},
	[OPTION_OUTPUT] = {"output", "FILE", "write there, not to the standard output"},
	[OPTION_LINES] = OPTION_ROW_LINES,
	[OPTION_DEBUGINFOD] = OPTION_ROW_DEBUGINFOD,
	{0},
};

enum moment { AT_PEAK, AT_TOTAL, AT_OOM };

struct choice {
	enum moment at;
	bool has_device, lines, debuginfod;
	uint64_t device;
	const char *output;
};

/* ---------- the device ---------- */

static const struct model_device *highest(const struct model *model)
{
	const struct model_device *device = model_device(model, 0);
	unsigned best = 0;
	uint64_t peak = device ? device->allocated.peak_bytes : 0;
	for (unsigned i = 1; (device = model_device(model, i)); i++)
		if (device->allocated.peak_bytes > peak) {
			peak = device->allocated.peak_bytes;
			best = i;
		}
	if (model_device(model, 1))
		tell("of GPU %u, whose peak is the highest; others: --device N",
		     model_device(model, best)->ordinal);
	return model_device(model, best);
}

static const struct model_device *chosen(const struct model *model, const struct choice *choice)
{
	const struct model_device *device;
	if (!choice->has_device)
		return highest(model);
	for (unsigned i = 0; (device = model_device(model, i)); i++)
		if (device->ordinal == choice->device)
			return device;
	return NULL;
}

/* ---------- all that was ever allocated ---------- */

/* Does the event add to what the device's `allocated` counts? PyTorch's segments do not, what it
 * hands out of them does. */
static bool counts(const struct defs *defs, const struct event *event, unsigned ordinal,
		   bool has_blocks)
{
	char buffer[OWNER_NAME_BYTES];
	if (event->device != ordinal || event->status)
		return false;
	if (event->what == MEMTRACE_BLOCK_ALLOC)
		return true;
	if (event->what != MEMTRACE_ALLOC || event->space == MEMTRACE_SPACE_PINNED ||
	    event->space == MEMTRACE_SPACE_REGISTERED || event->space == MEMTRACE_SPACE_EXTERNAL)
		return false;
	const char *owner = owner_of_event(defs, event, buffer);
	return !has_blocks || event->space == MEMTRACE_SPACE_STREAM || !owner ||
	       strcmp(owner, "pytorch");
}

static int add_total(struct text *out, struct loaded *loaded, unsigned ordinal, bool has_blocks)
{
	struct loaded again;
	struct event event;
	const struct defs *defs = trace_defs(loaded->trace);
	uint32_t count = defs_stack_count(defs);
	uint64_t *bytes = calloc((size_t)count + 1, sizeof *bytes);
	int status = bytes ? load_open(&again, loaded->facts.trace_path) : STATUS_UNREADABLE;
	while (!status && trace_next(again.trace, &event))
		if (counts(defs, &event, ordinal, has_blocks))
			bytes[event.stack <= count ? event.stack : 0] += event.bytes;
	if (loaded->facts.given_up)
		tell("%s: only of the events that are kept: the first %llu were given up",
		     loaded->facts.trace_path, (unsigned long long)loaded->facts.given_up);
	for (uint32_t id = 0; !status && id <= count; id++)
		if (bytes[id])
			flame_add(out, defs, id, bytes[id]);
	if (!status)
		load_close(&again);
	free(bytes);
	return status;
}

/* ---------- live at a moment ---------- */

static int add_composition(struct text *out, const struct loaded *loaded, struct composition of)
{
	struct arena *arena = arena_create();
	size_t count = 0;
	const struct model_share *rows =
		arena ? composition_rows(arena, loaded->model, of, &count) : NULL;
	for (size_t i = 0; i < count; i++)
		flame_add(out, trace_defs(loaded->trace), rows[i].stack, rows[i].bytes);
	if (!rows)
		tell("%s: there is no memory for it", loaded->facts.trace_path);
	if (arena)
		arena_release(arena);
	return rows ? STATUS_YES : STATUS_UNREADABLE;
}

static int add_oom(struct text *out, const struct loaded *loaded, const struct choice *choice)
{
	for (size_t i = model_oom_count(loaded->model); i-- > 0;)
		if (!choice->has_device || model_oom(loaded->model, i)->device == choice->device)
			return add_composition(out, loaded,
					       (struct composition){COMPOSITION_OOM, (unsigned)i});
	return load_has_none(loaded, "memory did not run out");
}

static int add_all(struct text *out, struct loaded *loaded, const struct choice *choice)
{
	if (choice->at == AT_OOM)
		return add_oom(out, loaded, choice);
	const struct model_device *device = chosen(loaded->model, choice);
	if (!device)
		return load_has_none(loaded, choice->has_device ? "no memory was allocated on that GPU"
								: "no memory was allocated on a GPU");
	unsigned ordinal = device->ordinal;
	if (choice->at == AT_TOTAL)
		return add_total(out, loaded, ordinal, device->has_blocks);
	return add_composition(out, loaded, (struct composition){COMPOSITION_PEAK, ordinal});
}

static int flame(const char *path, const void *context)
{
	const struct choice *choice = context;
	struct loaded loaded;
	struct text out;
	int status = load_trace(&loaded, path);
	if (status)
		return status;
	names_find_asked(&loaded, choice->lines, choice->debuginfod);
	if (facts_lacks_some(&loaded.facts))
		tell("%s: the trace is not whole: see memtrace check", path);
	text_init(&out);
	status = add_all(&out, &loaded, choice);
	if (!status && choice->output)
		status = new_file_status(choice->output, new_file_write(choice->output, &out));
	else if (!status)
		output_write(&out);
	text_release(&out);
	load_close(&loaded);
	return status;
}

static bool parse_moment(const char *word, enum moment *at)
{
	static const char *const names[] = {
		[AT_PEAK] = "peak", [AT_TOTAL] = "total", [AT_OOM] = "oom"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(word, names[i])) {
			*at = (enum moment)i;
			return true;
		}
	return false;
}

static int run(const struct arguments *arguments)
{
	const char *at = arguments->options[OPTION_AT], *device = arguments->options[OPTION_DEVICE];
	struct choice choice = {
		.has_device = device,
		.output = arguments->options[OPTION_OUTPUT],
		.lines = arguments->options[OPTION_LINES],
		.debuginfod = arguments->options[OPTION_DEBUGINFOD],
	};
	if (at && !parse_moment(at, &choice.at))
		return options_wrong(&verb_flame, "--at is peak, total or oom, not %s", at);
	if (device && !options_number(device, &choice.device))
		return options_wrong(&verb_flame, "--device is the number of a GPU, not %s",
				     device);
	if (choice.output && arguments->operand_count > 1)
		return options_wrong(&verb_flame, "--output is for one trace");
	return load_each(&verb_flame, arguments, flame, &choice);
}

const struct verb verb_flame = {
	.name = "flame",
	.summary = "Prints memory by stack as folded lines, for flamegraph.pl and speedscope",
	.usage = "[options] [TRACE...]",
	.details =
		"A line is a stack, outermost frame first, and its bytes. Exit status: 1 there is "
		"nothing to show.\n" LOAD_NEWEST,
	.options = options,
	.letter = 'o',
	.letter_row = OPTION_OUTPUT,
	.run = run,
};
