/* `memtrace steps`: what was allocated at the borders of each training step. Owns the choice of the
 * devices. Does not say why: `report` does. */
#include "base/version.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/devices.h"
#include "report/json.h"
#include "report/step_table.h"
#include "report/summary.h"

enum { OPTION_JSON, OPTION_DEVICE, OPTION_FULL };

static const struct option_row options[] = {
	[OPTION_JSON] = {"json", NULL, "one JSON object a trace, with every step"},
	[OPTION_DEVICE] = {"device", "N", "of this GPU only"},
	[OPTION_FULL] = {"full", NULL, "a row for each step, also for equal ones"},
	{0},
};

struct choice {
	bool json, full, has_device;
	uint64_t device;
};

static bool is_chosen(const struct model_device *device, const struct choice *choice)
{
	return !choice->has_device || device->ordinal == choice->device;
}

/* True too if no GPU was asked for, and used: that is told on stdout. */
static bool has_the_chosen(const struct loaded *loaded, const struct choice *choice)
{
	const struct model_device *device;
	for (unsigned i = 0; (device = model_device(loaded->model, i)); i++)
		if (is_chosen(device, choice))
			return true;
	return !choice->has_device;
}

static void print_json(struct text *out, const struct loaded *loaded)
{
	struct json json = {.out = out};
	json_open(&json, NULL, '{');
	json_string(&json, "memtrace", VERSION_TEXT);
	json_string(&json, "path", loaded->facts.trace_path);
	json_bool(&json, "complete", facts_complete(&loaded->facts) && !model_failed(loaded->model));
	json_add_steps(&json, loaded->model);
	json_close(&json, '}');
	text_add_char(out, '\n');
}

static bool print_device(struct text *out, const struct loaded *loaded, const struct model_device *device,
			 const struct choice *choice)
{
	const struct step_table_style style = {
		.device = device->ordinal, .one_each = choice->full, .has_change = true};
	size_t before = out->used_bytes;
	if (model_device(loaded->model, 1)) {
		devices_add_ordinal(out, device->ordinal);
		text_add_char(out, '\n');
	}
	if (!step_table_print(out, loaded->model, &style)) {
		out->used_bytes = before;
		return false;
	}
	text_add_char(out, '\n');
	return true;
}

/* Of the devices that are shown. */
static bool has_outsiders(const struct loaded *loaded, const struct choice *choice)
{
	const struct model_device *device;
	for (unsigned i = 0; (device = model_device(loaded->model, i)); i++)
		if (is_chosen(device, choice) && devices_has_outsiders(device))
			return true;
	return false;
}

static void print_text(struct text *out, const struct loaded *loaded, const struct choice *choice)
{
	const struct model_device *device;
	bool has_steps = false;
	for (unsigned i = 0; (device = model_device(loaded->model, i)); i++)
		if (is_chosen(device, choice))
			has_steps |= print_device(out, loaded, device, choice);
	if (has_steps)
		text_add(out, "Allocated after the forward pass, the backward pass and the optimizer; the peak and "
			      "its\nphase; what stayed allocated more than after the step before.\n");
	else
		text_add(out, "No training step was seen.\n");
	if (has_steps && has_outsiders(loaded, choice))
		text_add(out, "These figures count what others than PyTorch hold, too.\n");
	summary_add_gaps(out, loaded->model, trace_defs(loaded->trace), &loaded->facts);
}

static int steps(const char *path, const void *context)
{
	const struct choice *choice = context;
	struct loaded loaded;
	struct text out;
	int status = load_trace(&loaded, path);
	if (status)
		return status;
	if (!has_the_chosen(&loaded, choice)) {
		status = load_has_none(&loaded, "no memory was allocated on that GPU");
		load_close(&loaded);
		return status;
	}
	text_init(&out);
	if (choice->json)
		print_json(&out, &loaded);
	else
		print_text(&out, &loaded, choice);
	output_write_report(&out, choice->json);
	text_release(&out);
	load_close(&loaded);
	return STATUS_YES;
}

static int run(const struct arguments *arguments)
{
	const char *device = arguments->options[OPTION_DEVICE];
	struct choice choice = {
		.json = arguments->options[OPTION_JSON],
		.full = arguments->options[OPTION_FULL],
		.has_device = device,
	};
	if (device && !options_number(device, &choice.device))
		return options_wrong(&verb_steps, "--device is the number of a GPU, not %s", device);
	return load_each(&verb_steps, arguments, steps, &choice);
}

const struct verb verb_steps = {
	.name = "steps",
	.summary = "Tells what each training step had allocated, phase by phase",
	.usage = "[options] [TRACE...]",
	.details = "Equal steps that follow each other are one row. Of very many steps the first 64 and the last "
		   "192\nare kept. With --json all devices are told. Exit status: 1 nothing was allocated on the GPU\n"
		   "of --device.\n" LOAD_NEWEST,
	.options = options,
	.run = run,
};
