/* Opens a trace and replays it. Owns how a verb gets at a model, and the words for what stands in
 * the way. Must never change a trace, nor stop at a damaged one: what is left out is in the facts.
 */
#include "cli/load.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/output_name.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "model/save.h"

#define EVENTS_BETWEEN_LOOKS 65536

static enum summary_ended ended_of(const struct trace_facts *facts)
{
	switch (facts->ended) {
	case MEMTRACE_EXIT:
		return SUMMARY_EXIT;
	case MEMTRACE_UNDERSCORE_EXIT:
	case MEMTRACE_QUICK_EXIT:
		return SUMMARY_UNDERSCORE_EXIT;
	case MEMTRACE_ABORT:
		return SUMMARY_ABORT;
	default:
		return facts->still_running ? SUMMARY_RUNNING : SUMMARY_UNKNOWN;
	}
}

bool load_may_lack(const struct loaded *loaded)
{
	return facts_lacks_some(&loaded->facts) || (loaded->model && model_failed(loaded->model));
}

int load_has_none(const struct loaded *loaded, const char *words)
{
	bool may_lack = load_may_lack(loaded);
	tell("%s: %s%s", loaded->facts.trace_path, words, may_lack ? " in what there is of the trace" : "");
	return may_lack ? STATUS_UNREADABLE : STATUS_NO;
}

void load_refresh_facts(struct loaded *loaded)
{
	const struct trace_facts *facts = trace_facts(loaded->trace);
	loaded->facts = (struct summary_facts){
		.trace_path = facts->path,
		.pid = facts->pid,
		.ended = ended_of(facts),
		.may_run_elsewhere = facts->may_run_elsewhere,
		.status = facts->status,
		.duration_ns = facts->duration_ns,
		.file_bytes = facts->file_bytes,
		.events = facts->events + facts->given_up,
		.given_up = facts->given_up,
		.bound_bytes = facts->bound_bytes,
		.lost = facts->lost,
		.in_flight = facts->in_flight,
		.late = facts->late,
		.stacks_lost = facts->stacks_lost,
		.disagreements = facts->disagreements,
		.blind_lookups = facts->blind_lookups,
		.blind_deepbind = facts->blind_deepbind,
		.blind_dlmopen = facts->blind_dlmopen,
		.write_errno = facts->write_errno,
		.torn_reason = facts->torn ? facts->torn_reason : NULL,
		.has_moved = facts->moved,
		.ascii = output_is_ascii(),
	};
	if (loaded->has_lost_state)
		loaded->facts.torn_reason = loaded->is_foreign ? "the state before the first event has another form"
							       : "the state before the first event cannot be read";
	loaded->facts.is_foreign = loaded->has_lost_state && loaded->is_foreign;
	if (facts->torn && !*facts->torn_reason)
		loaded->facts.torn_reason = "a part does not check out";
}

int load_open(struct loaded *loaded, const char *path)
{
	char error[512] = "";
	*loaded = (struct loaded){.trace = trace_open(path, error, sizeof error)};
	if (!loaded->trace) {
		tell("%s", error);
		return STATUS_UNREADABLE;
	}
	load_refresh_facts(loaded);
	return STATUS_YES;
}

/* ---------- the state that a bounded trace begins with ---------- */

static int bring_piece(struct archive *archive)
{
	size_t bytes = 0;
	const unsigned char *piece = trace_state_piece(archive->context, &bytes);
	archive->at = (uint8_t *)piece; /* only read */
	archive->end = archive->at + (piece ? bytes : 0);
	return piece ? 0 : -ENODATA;
}

static struct model *load_state(struct loaded *loaded, size_t index)
{
	struct archive archive = {.turn = bring_piece, .context = loaded->trace};
	struct model *model = model_create(trace_defs(loaded->trace));
	trace_state_begin(loaded->trace, index);
	int error = model ? model_load(model, &archive) : 0;
	loaded->is_foreign |= error == -ENOTSUP;
	if (!error)
		return model;
	model_release(model);
	return NULL;
}

/* Of states that are damaged the next one does as well: only the events between them are not seen. If none can be
 * read, all events that there are. */
struct model *load_begin(struct loaded *loaded)
{
	size_t states = trace_state_count(loaded->trace);
	struct model *model = NULL;
	for (size_t i = 0; i < states && !model; i++)
		model = load_state(loaded, i);
	loaded->has_lost_state = states && !model;
	if (loaded->has_lost_state)
		trace_state_begin(loaded->trace, 0);
	return model ? model : model_create(trace_defs(loaded->trace));
}

/* What there is no memory for is not noted: those who ask then find fewer steps. */
static void note_step_end(struct model_step_observer *observer, uint64_t sequence)
{
	struct load_steps *steps = (struct load_steps *)observer; /* its first member */
	size_t wanted = steps->capacity ? steps->capacity * 2 : 64;
	if (steps->count == steps->capacity) {
		uint64_t *grown = realloc(steps->sequences, wanted * sizeof *grown);
		if (!grown)
			return;
		steps->sequences = grown;
		steps->capacity = wanted;
	}
	steps->sequences[steps->count++] = sequence;
}

int load_replay(struct loaded *loaded)
{
	struct progress progress;
	struct event event;
	loaded->model = load_begin(loaded);
	if (!loaded->model) {
		tell("%s: there is no memory for it", loaded->facts.trace_path);
		return STATUS_UNREADABLE;
	}
	if (loaded->observer)
		model_observe(loaded->model, loaded->observer);
	loaded->steps.observer.ended = note_step_end;
	model_observe_steps(loaded->model, &loaded->steps.observer);
	progress_start(&progress, loaded->facts.trace_path);
	/* A model that fails says so itself: reading goes on, so that the facts are complete. */
	for (uint64_t count = 0; trace_next(loaded->trace, &event); count++) {
		model_apply(loaded->model, &event);
		if (count % EVENTS_BETWEEN_LOOKS == 0)
			progress_update(&progress, trace_progress(loaded->trace));
	}
	load_refresh_facts(loaded);
	if (facts_has_gaps(&loaded->facts) || trace_facts(loaded->trace)->cut)
		model_note_gaps(loaded->model);
	model_note_lost(loaded->model, loaded->facts.lost, loaded->facts.disagreements);
	model_finish(loaded->model);
	model_observe_steps(loaded->model, NULL);
	progress_end(&progress);
	return STATUS_YES;
}

/* Figures of nothing would read as if nothing had been allocated. */
static int refuse_ruin(const struct loaded *loaded)
{
	const struct summary_facts *facts = &loaded->facts;
	const struct trace_facts *of_file = trace_facts(loaded->trace);
	bool was_lost = of_file->cut || (of_file->repaired && facts->lost);
	if (facts->events || !(facts->torn_reason || was_lost))
		return STATUS_YES;
	char count[40] = "how many there were is not known";
	if (facts->lost)
		snprintf(count, sizeof count, "%llu were lost", (unsigned long long)facts->lost);
	tell("%s: damaged, no event can be read, %s: %s", facts->trace_path, count,
	     facts->torn_reason ? facts->torn_reason : "it was repaired");
	return STATUS_UNREADABLE;
}

int load_trace(struct loaded *loaded, const char *path)
{
	int status = load_open(loaded, path);
	if (status)
		return status;
	status = load_replay(loaded);
	if (!status)
		status = refuse_ruin(loaded);
	if (status)
		load_close(loaded);
	return status;
}

void load_close(struct loaded *loaded)
{
	if (loaded->model)
		model_release(loaded->model);
	if (loaded->trace)
		trace_close(loaded->trace);
	free(loaded->steps.sequences);
	*loaded = (struct loaded){0};
}

static bool has_trace_name(const char *name)
{
	return name[output_stem_bytes(name)];
}

static bool is_newer(const struct stat *a, const struct stat *b)
{
	if (a->st_mtim.tv_sec != b->st_mtim.tv_sec)
		return a->st_mtim.tv_sec > b->st_mtim.tv_sec;
	return a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

/* 0, or -errno: -ENOENT if there is none. */
static int find_newest(char *path, size_t bytes)
{
	DIR *folder = opendir(".");
	int error = folder ? 0 : -errno;
	struct stat newest = {0}, found;
	const struct dirent *entry;
	*path = 0;
	while (folder && (entry = readdir(folder))) {
		if (!has_trace_name(entry->d_name) || stat(entry->d_name, &found) ||
		    !S_ISREG(found.st_mode))
			continue;
		if (*path && !is_newer(&found, &newest))
			continue;
		newest = found;
		/* A name that begins with a dash must not look like an option when it is typed
		 * again. */
		snprintf(path, bytes, "%s%s", *entry->d_name == '-' ? "./" : "", entry->d_name);
	}
	if (folder)
		closedir(folder);
	return *path || error ? error : -ENOENT;
}

static int do_newest(const struct verb *verb, int (*each)(const char *path, const void *context), const void *context)
{
	char path[PATH_MAX];
	int error = find_newest(path, sizeof path);
	if (error == -ENOENT)
		return options_wrong(verb, "no trace is named and there is no *.mtrace here");
	if (error) {
		tell("no trace is named and this folder cannot be listed: %s", strerror(-error));
		return STATUS_UNREADABLE;
	}
	tell("reading %s, the newest here", path);
	return each(path, context);
}

int load_each(const struct verb *verb, const struct arguments *arguments,
	      int (*each)(const char *path, const void *context), const void *context)
{
	int highest = STATUS_YES;
	if (!arguments->operand_count)
		return do_newest(verb, each, context);
	for (size_t i = 0; i < arguments->operand_count; i++) {
		int status = each(arguments->operands[i], context);
		if (status > highest)
			highest = status;
	}
	return highest;
}
