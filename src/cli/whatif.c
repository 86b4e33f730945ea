/* `memtrace whatif`: what another setting of PyTorch's allocator would have done to a recorded run.
 * Owns the choice of the device and of the settings. Runs nothing anew: it replays the record. */
#include "model/whatif.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/recorded.h"
#include "report/whatif.h"

#define HELPERS_MAX 7

enum { OPTION_JSON, OPTION_CONF, OPTION_EMPTY, OPTION_MEMORY, OPTION_DEVICE };

static const struct option_row options[] = {
	[OPTION_JSON] = {"json", NULL, "one JSON object a trace"},
	[OPTION_CONF] = {"conf", "SETTING",
			 "this PYTORCH_ALLOC_CONF instead of the usual ones; may be repeated"},
	[OPTION_EMPTY] = {"empty-cache", NULL, "each --conf with empty_cache() after every step too"},
	[OPTION_MEMORY] = {"memory", "SIZE", "on a GPU of this size (24GiB, ...)"},
	[OPTION_DEVICE] = {"device", "N", "of this GPU; else of the one with the highest peak"},
	{0},
};

struct choice {
	const struct arguments *arguments;
	bool json, has_device, empties;
	uint64_t device, memory_bytes;
};

/* ---------- the device ---------- */

static const struct model_device *choose(const struct model *model, const struct choice *choice)
{
	const struct model_device *device, *chosen = NULL;
	for (unsigned i = 0; (device = model_device(model, i)); i++) {
		if (choice->has_device ? device->ordinal != choice->device : !device->has_blocks)
			continue;
		if (!chosen ||
		    device->pytorch_allocated.peak_bytes > chosen->pytorch_allocated.peak_bytes)
			chosen = device;
	}
	return chosen;
}

/* ---------- the settings ---------- */

static int refuse(const char *path, struct text *reason)
{
	tell("%s: %s", path, text_string(reason));
	return STATUS_USAGE;
}

static int add_settings(struct whatif *whatif, const char *path, const struct choice *choice)
{
	char buffer[512];
	struct text reason;
	const struct arguments *arguments = choice->arguments;
	text_init_fixed(&reason, buffer, sizeof buffer);
	if (!arguments->repeated_count) {
		whatif_add_useful(whatif);
		return STATUS_YES;
	}
	whatif_add(whatif, whatif->recorded_text, false, &reason);
	for (size_t i = 0; i < arguments->repeated_count; i++) {
		const char *conf = arguments->repeated[i];
		reason.used_bytes = 0;
		if (whatif_add(whatif, conf, false, &reason) ||
		    (choice->empties && whatif_add(whatif, conf, true, &reason)))
			return refuse(path, &reason);
	}
	return STATUS_YES;
}

/* Settings are independent of each other: every processor takes the next one. The last of the usual ones, which empty
 * the cache in every step, take longest and so come first. */
struct shared_work {
	struct whatif *whatif;
	uint64_t memory_bytes;
	size_t taken_count, done_count;
	int error;
	struct progress *progress; /* of the main thread */
};

static void do_work(struct shared_work *work, bool shows_progress)
{
	size_t count = work->whatif->setting_count, taken;
	while ((taken = __atomic_fetch_add(&work->taken_count, 1, __ATOMIC_RELAXED)) < count) {
		int error = whatif_try(work->whatif, count - 1 - taken, work->memory_bytes);
		size_t done = __atomic_add_fetch(&work->done_count, 1, __ATOMIC_RELAXED);
		if (error)
			__atomic_store_n(&work->error, error, __ATOMIC_RELAXED);
		if (shows_progress)
			progress_update(work->progress, (double)done / (double)count);
	}
}

static void *help(void *work)
{
	do_work(work, false);
	return NULL;
}

static int share(struct shared_work work)
{
	pthread_t helpers[HELPERS_MAX];
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t helper_count = 0, wanted = processors > 1 ? (size_t)processors - 1 : 0;
	while (helper_count < wanted && helper_count < HELPERS_MAX &&
	       !pthread_create(&helpers[helper_count], NULL, help, &work))
		helper_count++;
	do_work(&work, true);
	while (helper_count)
		pthread_join(helpers[--helper_count], NULL);
	return work.error;
}

static int replay_all(struct whatif *whatif, const char *path, const struct choice *choice)
{
	struct progress progress;
	struct shared_work work = {.whatif = whatif,
				   .memory_bytes = choice->memory_bytes,
				   .progress = &progress};
	progress_start(&progress, path);
	whatif_find_twins(whatif);
	int error = share(work);
	progress_end(&progress);
	whatif_rank(whatif, choice->memory_bytes ? 0 : whatif->limits.total_bytes);
	if (error)
		tell("%s: there is no memory for it", path);
	return error ? STATUS_UNREADABLE : STATUS_YES;
}

static bool any_fits(const struct whatif *whatif)
{
	for (size_t i = 0; i < whatif->setting_count; i++)
		if (!whatif->settings[i].result.ooms)
			return true;
	return false;
}

static int print(const struct whatif *whatif, const struct loaded *loaded, const struct model_device *device,
		 const struct choice *choice)
{
	struct text out;
	struct whatif_view view = {.whatif = whatif,
				   .facts = &loaded->facts,
				   .device = device->ordinal,
				   .card_bytes = device->total_bytes,
				   .memory_bytes = choice->memory_bytes};
	text_init(&out);
	if (choice->json)
		whatif_print_json(&out, &view);
	else
		whatif_print(&out, &view);
	output_write(&out);
	text_release(&out);
	return choice->memory_bytes && !any_fits(whatif) ? STATUS_NO : STATUS_YES;
}

/* ---------- the verb ---------- */

static int compare(struct sequence *sequence, const struct loaded *loaded,
		   const struct model_device *device, const struct choice *choice)
{
	const char *path = loaded->facts.trace_path;
	struct whatif *whatif = malloc(sizeof *whatif);
	if (!whatif || whatif_start(whatif, sequence, trace_defs(loaded->trace),
				    device->total_bytes, device->untracked_bytes)) {
		tell("%s: there is no memory for it", path);
		if (whatif)
			whatif_end(whatif);
		free(whatif);
		return STATUS_UNREADABLE;
	}
	whatif->doubts.is_partial |= !facts_complete(&loaded->facts);
	int status = STATUS_NO;
	if (whatif->doubts.is_async)
		tell("%s: the program used backend:cudaMallocAsync, whose pool is the driver's and is "
		     "not modelled; it needs at least the peak of allocated",
		     path);
	else
		status = add_settings(whatif, path, choice);
	if (status == STATUS_YES)
		status = replay_all(whatif, path, choice);
	if (status == STATUS_YES)
		status = print(whatif, loaded, device, choice);
	whatif_end(whatif);
	free(whatif);
	return status;
}

static int whatif(const char *path, const void *context)
{
	const struct choice *choice = context;
	struct loaded loaded;
	int status = load_trace(&loaded, path);
	if (status)
		return status;
	const struct model_device *device = choose(loaded.model, choice);
	if (!device || !(device->has_blocks || device->has_async)) {
		status = load_has_none(&loaded, choice->has_device ? "PyTorch's allocator handed out no block on that GPU"
								   : "PyTorch's allocator handed out no block");
		load_close(&loaded);
		return status;
	}
	struct sequence *sequence = recorded_sequence(&loaded, device->ordinal, true);
	status = STATUS_UNREADABLE;
	if (sequence) {
		sequence->counts.has_async = device->has_async;
		status = compare(sequence, &loaded, device, choice);
		sequence_release(sequence);
	}
	load_close(&loaded);
	return status;
}

static int run(const struct arguments *arguments)
{
	const char *memory = arguments->options[OPTION_MEMORY];
	const char *device = arguments->options[OPTION_DEVICE];
	struct choice choice = {.arguments = arguments,
				.json = arguments->options[OPTION_JSON],
				.empties = arguments->options[OPTION_EMPTY],
				.has_device = device};
	if (memory && (parse_bytes(memory, &choice.memory_bytes) || !choice.memory_bytes))
		return options_wrong(&verb_whatif, "--memory is a size such as 24GiB, not %s", memory);
	if (device && !options_number(device, &choice.device))
		return options_wrong(&verb_whatif, "--device is the number of a GPU, not %s", device);
	return load_each(&verb_whatif, arguments, whatif, &choice);
}

const struct verb verb_whatif = {
	.name = "whatif",
	.summary = "Tells what other settings of PyTorch's allocator would have done",
	.usage = "[options] [TRACE...]",
	.details =
		"Replays the recorded requests in a model of PyTorch's caching allocator, of the version that ran: first\n"
		"as it was, to show how far the model can be trusted, then under other settings: those that need the least\n"
		"memory first, after them those that would retry (on the card of the run, or of --memory), last those that\n"
		"run out. Exit status: 1 nothing to replay, or with --memory no setting fits.\n" LOAD_NEWEST,
	.options = options,
	.has_repeated = true,
	.repeated_row = OPTION_CONF,
	.run = run,
};
