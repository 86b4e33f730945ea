/* `memtrace peak`: the peak of every device, and whether it is within a limit: the gate for CI.
 * Owns that answer. Must never say "within" when the trace does not show it. */
#include "base/units.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/devices.h"
#include "report/json_text.h"
#include "base/version.h"

enum { OPTION_JSON, OPTION_LIMIT };

static const struct option_row options[] = {
	[OPTION_JSON] = {"json", NULL, "one JSON object a trace"},
	[OPTION_LIMIT] = {"limit", "SIZE",
			  "exit with 1 if a device's peak is above (24GiB, 800M, ...)"},
	{0},
};

struct gate {
	bool json, has_limit;
	uint64_t limit_bytes;
};

enum answer { ANSWER_NONE, ANSWER_WITHIN, ANSWER_ABOVE, ANSWER_UNKNOWN };

/* Lower bounds can only be above the limit, or say nothing. */
static bool is_certain(const struct loaded *loaded, const struct model_device *device)
{
	bool is_damaged = facts_lacks_some(&loaded->facts) || model_failed(loaded->model);
	return !is_damaged &&
	       (!device || !devices_is_pytorch(device) || device->pytorch_reserved_known);
}

static enum answer answer_of(const struct loaded *loaded, const struct model_device *device,
			     const struct gate *gate)
{
	if (!gate->has_limit)
		return ANSWER_NONE;
	if (device && device->reserved.peak_bytes > gate->limit_bytes)
		return ANSWER_ABOVE;
	return is_certain(loaded, device) ? ANSWER_WITHIN : ANSWER_UNKNOWN;
}

/* Of all devices: the worst; a trace without devices is judged too. */
static enum answer answer_of_trace(const struct loaded *loaded, const struct gate *gate)
{
	enum answer worst = ANSWER_NONE;
	const struct model_device *device = model_device(loaded->model, 0);
	if (!device)
		return answer_of(loaded, NULL, gate);
	for (unsigned i = 0; (device = model_device(loaded->model, i)); i++) {
		enum answer answer = answer_of(loaded, device, gate);
		if (answer == ANSWER_ABOVE)
			return answer;
		worst = answer > worst ? answer : worst;
	}
	return worst;
}

static void add_answer(struct text *out, enum answer answer, const struct gate *gate,
		       uint64_t bytes)
{
	static const char *const words[] = {
		[ANSWER_WITHIN] = "    within the limit of ",
		[ANSWER_ABOVE] = "    above the limit of ",
		[ANSWER_UNKNOWN] = "    not certain; the limit is ",
	};
	if (answer == ANSWER_NONE)
		return;
	text_add(out, words[answer]);
	text_add_size(out, gate->limit_bytes);
	if (answer == ANSWER_ABOVE) {
		text_add(out, " by ");
		text_add_size(out, bytes - gate->limit_bytes);
	}
	text_add_char(out, '\n');
}

static void add_device(struct text *out, const struct loaded *loaded,
		       const struct model_device *device, const struct gate *gate)
{
	bool is_pytorch = devices_is_pytorch(device),
	     knows_pytorch = device->pytorch_reserved_known;
	text_add(out, "  ");
	devices_add_ordinal(out, device->ordinal);
	text_add(out, ": peak reserved ");
	text_add_size(out, device->reserved.peak_bytes);
	if (is_pytorch && knows_pytorch) {
		text_add(out, ", by PyTorch alone ");
		text_add_size(out, device->pytorch_reserved.peak_bytes);
	} else if (is_pytorch) {
		text_add(out, " without PyTorch's part, which is unknown");
	}
	text_add(out, ", peak allocated ");
	text_add_size(out, devices_allocated(device)->peak_bytes);
	text_add_char(out, '\n');
	add_answer(out, answer_of(loaded, device, gate), gate, device->reserved.peak_bytes);
}

static void print_text(struct text *out, const struct loaded *loaded, const struct gate *gate)
{
	const struct model_device *device;
	text_add_escaped(out, loaded->facts.trace_path);
	text_add(out, loaded->facts.ended == SUMMARY_RUNNING ? ", still running: the peak so far\n"
							     : "\n");
	for (unsigned i = 0; (device = model_device(loaded->model, i)); i++)
		add_device(out, loaded, device, gate);
	if (!model_device(loaded->model, 0)) {
		text_add(out, "  no GPU memory was allocated\n");
		add_answer(out, answer_of(loaded, NULL, gate), gate, 0);
	}
}

static void add_json_answer(struct json *json, enum answer answer)
{
	if (answer == ANSWER_ABOVE || answer == ANSWER_WITHIN)
		json_bool(json, "above", answer == ANSWER_ABOVE);
	else
		json_null(json, "above");
}

static void print_json(struct text *out, const struct loaded *loaded, const struct gate *gate)
{
	struct json json = {.out = out};
	const struct model_device *device;
	json_open(&json, NULL, '{');
	json_string(&json, "memtrace", VERSION_TEXT);
	json_string(&json, "path", loaded->facts.trace_path);
	json_bool(&json, "complete",
		  facts_complete(&loaded->facts) && !model_failed(loaded->model));
	json_known(&json, "limit_bytes", gate->has_limit, gate->limit_bytes);
	add_json_answer(&json, answer_of_trace(loaded, gate));
	json_open(&json, "devices", '[');
	for (unsigned i = 0; (device = model_device(loaded->model, i)); i++) {
		bool knows_pytorch = devices_is_pytorch(device) && device->pytorch_reserved_known;
		json_open(&json, NULL, '{');
		json_known(&json, "device", device->ordinal != MEMTRACE_DEVICE_UNKNOWN, device->ordinal);
		json_known(&json, "reserved_peak_bytes",
			   !devices_is_pytorch(device) || knows_pytorch,
			   device->reserved.peak_bytes);
		json_known(&json, "pytorch_reserved_peak_bytes", knows_pytorch,
			   device->pytorch_reserved.peak_bytes);
		json_unsigned(&json, "allocated_peak_bytes", device->allocated.peak_bytes);
		json_known(&json, "pytorch_allocated_peak_bytes", devices_is_pytorch(device),
			   device->pytorch_allocated.peak_bytes);
		add_json_answer(&json, answer_of(loaded, device, gate));
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_close(&json, '}');
	text_add_char(out, '\n');
}

static int peak(const char *path, const void *context)
{
	const struct gate *gate = context;
	struct loaded loaded;
	struct text out;
	int status = load_trace(&loaded, path);
	if (status)
		return status;
	text_init(&out);
	if (gate->json)
		print_json(&out, &loaded, gate);
	else
		print_text(&out, &loaded, gate);
	output_write(&out);
	text_release(&out);
	enum answer answer = answer_of_trace(&loaded, gate);
	if (answer == ANSWER_UNKNOWN)
		tell("%s: whether the peak is within the limit is not certain: the trace is not "
		     "whole, or PyTorch's "
		     "part is unknown; see: memtrace check",
		     path);
	load_close(&loaded);
	return answer == ANSWER_ABOVE     ? STATUS_NO
	       : answer == ANSWER_UNKNOWN ? STATUS_UNREADABLE
					  : STATUS_YES;
}

static int run(const struct arguments *arguments)
{
	const char *limit = arguments->options[OPTION_LIMIT];
	struct gate gate = {.json = arguments->options[OPTION_JSON], .has_limit = limit};
	if (limit && parse_bytes(limit, &gate.limit_bytes))
		return options_wrong(&verb_peak, "--limit is a size such as 24GiB, not %s", limit);
	return load_each(&verb_peak, arguments, peak, &gate);
}

const struct verb verb_peak = {
	.name = "peak",
	.summary = "Prints the peak of every device; with --limit, tells whether it is within it",
	.usage = "[options] [TRACE...]",
	.details = "The peak is that of reserved: all memory that the process obtained from the "
		   "driver on a device,\n"
		   "PyTorch's and that outside PyTorch, without the CUDA context. Exit status: 0 "
		   "within the limit (or\n"
		   "no limit), 1 above, 3 the trace cannot be read or does not show it.\n" LOAD_NEWEST,
	.options = options,
	.run = run,
};
