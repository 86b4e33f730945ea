/* PyTorch's segments when memory ran out, as a file that PyTorch's memory_viz opens: `<output>.oomN.pickle`.
 * Its size is bounded: at most about 200 bytes a live block, of at most 2^20, 150 an event, of at most
 * SNAPSHOT_EVENTS_MAX, and each stack and frame once. */
#ifndef MT_REPORT_SNAPSHOT_H
#define MT_REPORT_SNAPSHOT_H

#include "base/arena.h"
#include "model/model.h"
#include "model/segments.h"
#include "report/pickle.h"
#include "trace/defs.h"

#define SNAPSHOT_EVENTS_MAX 100000

enum snapshot_action {
	SNAPSHOT_ALLOC,
	SNAPSHOT_FREE,
	SNAPSHOT_SEGMENT_ALLOC,
	SNAPSHOT_SEGMENT_FREE,
	SNAPSHOT_SEGMENT_MAP,
	SNAPSHOT_SEGMENT_UNMAP,
};

struct snapshot_event {
	uint64_t address, bytes, stream;
	uint64_t time_ns;     /* since the start of the trace, 0 unknown */
	const char *category; /* NULL: none */
	uint32_t stack;
	uint8_t action; /* enum snapshot_action */
};

struct snapshot {
	const struct model *model;
	const struct defs *defs;
	size_t index; /* of the OOM */
	uint64_t start_realtime_ns;
	/* What led to it, in order; must lead to exactly what is live then (see snapshot_keep_sound()). */
	const struct snapshot_event *events;
	size_t event_count;
};

/* Without the events before it: what is live then, each block as it came. For the traced program. */
int snapshot_write_live(const struct snapshot *, pickle_take *, void *context);
/* 0 or -errno; -ENODATA: PyTorch's segments of that OOM are not known. */
int snapshot_write(const struct snapshot *, pickle_take *, void *context);

/* memory_viz goes back from the end, event by event, and fails at one that cannot have led to it. Returns the index
 * of the first event from which on all can; gives events about segments the stream that it needs. */
size_t snapshot_keep_sound(const struct segment_map *, struct arena *, struct snapshot_event *, size_t count);

#endif
