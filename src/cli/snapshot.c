/* Owns the events of a snapshot, from a second reading of the trace, and its file. Events that cannot have led to
 * what was live (some were lost, or given up) are left out, with all before them. */
#include "cli/snapshot.h"

#include <stdlib.h>

#include "cli/labels.h"
#include "cli/new_file.h"
#include "cli/output.h"
#include "model/sequence.h"
#include "report/snapshot.h"

struct origin { /* what an op of the sequence does not say of its event */
	uint64_t time_ns;
	uint32_t stack;
};

struct history {
	struct sequence *sequence;
	struct origin *origins; /* of each op */
	size_t origin_capacity;
	struct labels labels;
	struct arena *arena;
	struct snapshot_event *events; /* the end of an array of SNAPSHOT_EVENTS_MAX */
	size_t event_count;
};

/* ---------- reading ---------- */

static bool add_event(struct history *history, const struct event *event)
{
	size_t before = history->sequence->op_count;
	sequence_add(history->sequence, event);
	size_t count = history->sequence->op_count;
	if (count > history->origin_capacity) {
		size_t capacity = 2 * count + 1024;
		struct origin *origins = realloc(history->origins, capacity * sizeof *origins);
		if (!origins)
			return false;
		history->origins = origins;
		history->origin_capacity = capacity;
	}
	if (count > before)
		history->origins[count - 1] = (struct origin){event->time_ns, event->stack};
	return !history->sequence->failed;
}

/* All events before the OOM. */
static bool read_events(struct history *history, struct trace *trace, uint64_t end_sequence)
{
	struct event event;
	bool is_sound = true;
	while (is_sound && trace_next(trace, &event) && event.sequence < end_sequence)
		is_sound = add_event(history, &event);
	return is_sound;
}

/* ---------- choosing ---------- */

/* Memory that is not PyTorch's does not concern memory_viz, nor do address ranges. */
static bool describe_region(const struct sequence *sequence, const struct op *op, struct snapshot_event *event)
{
	const struct sequence_region *region = &sequence->regions[op->region];
	bool is_page = op->kind == OP_MAP || op->kind == OP_UNMAP;
	if (!sequence_is_torch(sequence, op->region) || (!is_page && region->kind != REGION_SEGMENT))
		return false;
	if (is_page) {
		event->action = op->kind == OP_MAP ? SNAPSHOT_SEGMENT_MAP : SNAPSHOT_SEGMENT_UNMAP;
		return true;
	}
	event->address = region->address;
	event->bytes = region->bytes;
	event->action = op->kind == OP_OBTAIN ? SNAPSHOT_SEGMENT_ALLOC : SNAPSHOT_SEGMENT_FREE;
	return true;
}

static bool describe(const struct history *history, size_t index, struct snapshot_event *event)
{
	const struct op *op = &history->sequence->ops[index];
	*event = (struct snapshot_event){
		.address = op->address,
		.bytes = op->bytes,
		.stream = op->stream & INT64_MAX,
		.time_ns = history->origins[index].time_ns,
		.stack = history->origins[index].stack,
	};
	switch (op->kind) {
	case OP_ALLOC:
	case OP_FREE:
		event->action = op->kind == OP_ALLOC ? SNAPSHOT_ALLOC : SNAPSHOT_FREE;
		event->category = labels_category(&history->labels, op->sequence);
		return true;
	case OP_OBTAIN:
	case OP_GIVE_BACK:
	case OP_MAP:
	case OP_UNMAP:
		return describe_region(history->sequence, op, event);
	default:
		return false;
	}
}

static bool choose_events(struct history *history, const struct segment_map *map)
{
	struct snapshot_event *events =
		arena_alloc(history->arena, SNAPSHOT_EVENTS_MAX * sizeof *events), event;
	size_t first = SNAPSHOT_EVENTS_MAX;
	if (!events)
		return false;
	for (size_t i = history->sequence->op_count; i-- > 0 && first;)
		if (describe(history, i, &event))
			events[--first] = event;
	size_t count = SNAPSHOT_EVENTS_MAX - first;
	size_t sound = snapshot_keep_sound(map, history->arena, events + first, count);
	history->events = events + first + sound;
	history->event_count = count - sound;
	return true;
}

static bool history_open(struct history *history, const struct loaded *loaded, size_t index)
{
	const struct model_oom *oom = model_oom(loaded->model, index);
	struct loaded again;
	*history = (struct history){.arena = arena_create()};
	labels_open(&history->labels, loaded->facts.trace_path);
	if (!history->arena || load_open(&again, loaded->facts.trace_path))
		return false;
	history->sequence = sequence_create(oom->device, NULL);
	bool is_read = history->sequence && read_events(history, again.trace, oom->sequence) &&
		       choose_events(history, model_segments_at_oom(loaded->model, index));
	load_close(&again);
	return is_read;
}

static void history_close(struct history *history)
{
	if (history->sequence)
		sequence_release(history->sequence);
	if (history->arena)
		arena_release(history->arena);
	labels_close(&history->labels);
	free(history->origins);
}

/* ---------- the file ---------- */

static int take(void *context, const void *data, size_t bytes, uint64_t offset)
{
	(void)offset; /* one piece follows the other */
	return output_write_bytes(*(const int *)context, data, bytes);
}

static int write_file(const struct snapshot *snapshot, const char *file)
{
	struct new_file output;
	int fd = new_file_open(&output, file);
	int error = fd < 0 ? fd : new_file_close(&output, fd, snapshot_write(snapshot, take, &fd));
	return new_file_status(file, error);
}

int snapshot_save(const struct loaded *loaded, size_t index, const char *file)
{
	struct history history;
	int status = STATUS_UNREADABLE;
	if (!model_segments_at_oom(loaded->model, index)) {
		tell("%s: PyTorch's segments are not known then: %s is not written", loaded->facts.trace_path, file);
		return status;
	}
	if (history_open(&history, loaded, index)) {
		struct snapshot snapshot = {
			.model = loaded->model,
			.defs = trace_defs(loaded->trace),
			.index = index,
			.start_realtime_ns = trace_facts(loaded->trace)->start_realtime_ns,
			.events = history.events,
			.event_count = history.event_count,
		};
		status = write_file(&snapshot, file);
	} else {
		tell("%s: there is no memory for its events: %s is not written", loaded->facts.trace_path, file);
	}
	history_close(&history);
	return status;
}
