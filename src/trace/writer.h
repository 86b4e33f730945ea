/* Writes a trace file: makes it, maps its front, and moves events and definitions from the mapped windows into
 * compressed chunks. Two kinds of callers: hooks store definitions (writer_define, serialised by the caller's
 * own lock); everything else is the dump thread's, or whoever drains in its place: one thread at a time. */
#ifndef MT_TRACE_WRITER_H
#define MT_TRACE_WRITER_H

#include <memtrace/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"
#include "trace/rows.h"
#include "trace/sink.h"

#define WRITER_RING_SLOTS (1u << 16)
#define WRITER_DEFINITIONS_BYTES (512u << 10) /* both halves */
#define WRITER_ROWS_BYTES (768u << 10)
#define WRITER_TIMES_BYTES (256u << 10)

#define WRITER_PIECE_BYTES (256u << 10) /* of a checkpoint, at most */
#define WRITER_BOUND_MIN (16u << 20)
#define AREA_CHECKPOINTS 32

/* Of a bounded trace: where its chunks lie. bound_bytes 0: they are appended. */
struct area {
	uint64_t bound_bytes;
	uint64_t free_bytes;       /* in free chunks */
	uint64_t cursor;           /* where the search for room begins, 0: with the first chunk */
	uint64_t checkpoints[AREA_CHECKPOINTS]; /* sequences of those that events may be given up to */
	unsigned checkpoint_count;
	uint64_t checkpoint_bytes; /* of the newest */
	uint64_t events_bytes;     /* written since then */
	uint64_t definitions_bytes, definitions_count;
};

struct writer {
	struct sink sink;
	struct sink front_sink; /* where the front is mapped from; fd -1: from the trace itself */
	char *front; /* mapped, shared; DONTFORK */
	uint64_t front_bytes;
	struct memtrace_header *header;
	struct memtrace_live *live;
	struct memtrace_slot *ring;
	struct memtrace_definitions_window *halves[2];
	uint64_t half_bytes; /* room for records in one */
	unsigned open_half;  /* that writer_define fills */
	uint32_t half_order;
	struct memtrace_events_window *window;
	uint8_t *rows, *times;
	struct rows_encoder encoder;
	void *zstd;        /* compression context in memory of our own */
	void *zstd_memory;
	size_t zstd_bytes;
	char *scratch;     /* one compressed chunk with its header */
	size_t scratch_bytes;
	struct area area;
	uint64_t next_sequence;
	int error;         /* -errno of the first failed write: events are no longer stored */
};

/* Makes `path` (which must not exist) with a complete, readable front; where it is, if not in the trace, is in the
 * header's front_path. 0 or -errno; on failure nothing of it is left. Takes the process's facts for the header. */
int writer_create(struct writer *, const char *path);

/* To be called before the first event: the file is not to become larger than `bytes`, at least WRITER_BOUND_MIN.
 * Whoever writes then asks before each event, with all events before it in the model, whether a checkpoint is due;
 * there is room for events only as far as there are checkpoints. */
void writer_set_bound(struct writer *, uint64_t bytes);
bool writer_wants_checkpoint(const struct writer *);
void writer_put_off_checkpoint(struct writer *); /* there is no state to store: asks again later */
/* A piece of the state before the event `sequence`, in order, number 0 first. 0 or -errno; after a failed write
 * nothing is stored any more. */
int writer_add_checkpoint(struct writer *, uint64_t sequence, uint32_t number, bool is_last, const void *piece,
			  size_t bytes);
/* Definitions take a quarter of a bounded file: no more stacks are to be defined. Any thread. */
bool writer_definitions_full(const struct writer *);

/* Appends a definition record to the open half. 0, or -EAGAIN when both halves are full: the caller may wait for
 * the dump thread and try again. Caller's lock. */
int writer_define(struct writer *, const void *record, size_t bytes);

/* Writes halves that are full as chunks and opens them again. Call it after reading what they hold. */
void writer_flush_full_halves(struct writer *);

/* Stores one event, in ticket order. After a failed write it only counts (live.unwritten). */
void writer_add(struct writer *, const struct event *);

/* Empties both windows into chunks, gives the ring's and the windows' blocks back, and marks the end. The front
 * stays mapped and harmless to threads that still hold pointers into it. */
void writer_finish(struct writer *, enum memtrace_ended how, int status, uint64_t end_time_ns);

/* An event came after that: it is counted in the trace, wherever its front was. Any thread. */
void writer_note_late(struct writer *);

/* Bytes on disk. */
uint64_t writer_file_bytes(const struct writer *);

#endif
