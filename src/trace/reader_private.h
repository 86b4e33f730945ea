/* What the files of the reader share. Each group names the .c file that defines it. */
#ifndef MT_TRACE_READER_PRIVATE_H
#define MT_TRACE_READER_PRIVATE_H

#include <stddef.h>
#include <zstd.h>

#include "base/text.h"
#include "trace/reader.h"
#include "trace/rows.h"

/* Sequences above are damage: no process takes so many tickets. Sums with them do not wrap. */
#define SEQUENCE_MAX ((uint64_t)1 << 62)

#define COPY_ATTEMPTS 16 /* while the traced process writes to what is being copied */

struct chunk_ref {
	uint64_t offset;
	struct memtrace_chunk head;
};

struct chunk_list {
	struct chunk_ref *list;
	size_t count, capacity;
};

struct chunks { /* in file order; those of a bounded trace in the order of their sequences */
	struct chunk_list events;
	struct chunk_list definitions; /* that say their order: decoded when all were found */
	struct chunk_list pieces;      /* of checkpoints */
	bool has_room;                 /* chunks may have been put before others */
	uint64_t end_offset; /* of the last good chunk */
	bool is_closed;      /* a bad chunk: nothing after it is read */
	unsigned restarts;   /* of a scan, because chunks were moved meanwhile */
	ZSTD_DCtx *context;
	unsigned char *stored, *raw; /* of the one chunk in hand */
	size_t stored_capacity, raw_capacity;
};

struct window {
	struct memtrace_events_window head;
	unsigned char *rows, *times;
};

struct ring {
	struct memtrace_slot *slots; /* of the tickets [first, first + count), in that order */
	uint64_t first, count;
	uint64_t trusted_from; /* earlier slots may have been overwritten during the copy */
};

struct states { /* whole checkpoints, oldest first; none if no event was given up */
	struct {
		size_t first, count; /* of chunks.pieces */
	} *list;
	size_t count;
	size_t piece_next, piece_end; /* of the one that is being read */
	uint64_t left_bytes;          /* that may still be unpacked */
};

enum source { SOURCE_CHUNKS, SOURCE_WINDOW, SOURCE_RING, SOURCE_NONE };

struct trace {
	char *path;
	int fd;
	int front_fd; /* of a front elsewhere, else -1 */
	bool front_is_gone;
	struct memtrace_header header; /* checked */
	struct memtrace_live live;
	struct trace_facts facts;
	struct defs *defs;
	uint64_t definitions_left_bytes; /* that may still be unpacked */
	struct chunks chunks;
	struct window window;
	struct ring ring;

	struct states states;
	enum source source;
	size_t chunk_next;  /* index into the list */
	uint64_t ring_next; /* index into the copy */
	uint64_t rows_left; /* of the chunk or window in hand */
	uint64_t rows_last; /* the highest sequence that it may hold */
	uint64_t next;      /* the lowest sequence not seen yet */
	uint64_t gaps;      /* sequences passed over */
	struct rows_decoder rows;
};

/* reader_file.c: all functions that give an int return 0, or -1 with the reason in `why`. */
int file_open(struct trace *, const char *path, struct text *why);
/* What was read; the rest is zeroed, and errno says why there is one: 0, the file ends. */
size_t file_read(const struct trace *, void *buffer, size_t bytes, uint64_t offset);
int header_read(struct trace *, struct text *why);

/* reader_elsewhere.c: finds the front that the header names and takes its header. */
void elsewhere_open(struct trace *);
/* Is every offset of this header safe to use? NULL, or the name of a field that cannot be right. */
const char *header_impossible_field(const struct memtrace_header *);

/* reader_front.c: 0 or -ENOMEM. */
int front_copy(struct trace *);

/* reader_defs.c */
void definitions_add_chunk(struct trace *, const struct chunk_ref *, const unsigned char *raw);
int definitions_add_window(struct trace *); /* 0 or -ENOMEM */

/* reader_chunks.c */
void chunks_scan(struct trace *, bool with_events);
/* Again from the beginning, for definitions alone: some may have been put where there was room. */
void chunks_scan_again(struct trace *);
/* The raw content of a listed chunk, valid until the next call. NULL: it cannot be unpacked. */
const unsigned char *chunk_load(struct trace *, const struct chunk_ref *);
void chunks_release(struct trace *);
/* Room in a bounded trace: a sound header, whatever lies behind it. */
bool chunk_is_room(const struct trace *, const struct chunk_ref *);
int chunk_list_add(struct chunk_list *, const struct chunk_ref *); /* 0 or -ENOMEM */

/* reader_states.c: 0 or -ENOMEM. Finds the checkpoints, and begins with the oldest if events were given up. */
int states_find(struct trace *);

/* reader_process.c */
enum process_state { PROCESS_GONE, PROCESS_RUNS, PROCESS_UNKNOWN /* it would be out of sight from here */ };

enum process_state process_look(const struct memtrace_header *);

/* reader.c: the first reason stays. */
void reader_is_torn(struct trace *, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
