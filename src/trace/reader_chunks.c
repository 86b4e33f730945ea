/* Chunks: found, checked, unpacked. Owns: the list of events chunks and the one chunk in hand. Must
 * never believe a length before it has been compared with what is there, nor unpack more than
 * MEMTRACE_RAW_MAX. */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "trace/reader_private.h"

#define EVENT_BYTES_MIN 5 /* of a row and its time, at least */
#define RESTARTS_MAX 16   /* of a scan: each takes milliseconds, a whole file is given up in seconds */

/* In a bounded trace chunks are given up and others put there while it is read, if its program is running. */
static bool is_moving(const struct trace *trace)
{
	return trace->header.bound_bytes && process_look(&trace->header) != PROCESS_GONE;
}

static void is_missing(struct trace *trace, const char *what, const struct chunk_ref *chunk, const char *reason)
{
	trace->facts.moved = trace->facts.torn ? trace->facts.moved : is_moving(trace);
	reader_is_torn(trace, "%s at %llu: %s", what, (unsigned long long)chunk->offset,
		       trace->facts.moved ? "changed while it was read" : reason);
}

/* Grows a buffer without keeping its content. */
static bool ensure(unsigned char **buffer, size_t *capacity, size_t bytes)
{
	bytes = bytes ? bytes : 1; /* never NULL */
	if (bytes <= *capacity)
		return true;
	free(*buffer);
	*buffer = malloc(bytes);
	*capacity = *buffer ? bytes : 0;
	return *buffer;
}

/* What is wrong with the lengths and sequences of a chunk, NULL if nothing is. */
static const char *impossible_head(const struct memtrace_chunk *head)
{
	if (head->magic != MEMTRACE_CHUNK_MAGIC)
		return "there is no chunk";
	if (head->kind == MEMTRACE_CHUNK_FREE)
		return 0;
	if (head->raw_bytes > MEMTRACE_RAW_MAX ||
	    head->stored_bytes > ZSTD_COMPRESSBOUND(MEMTRACE_RAW_MAX))
		return "impossible lengths";
	if (head->kind != MEMTRACE_CHUNK_EVENTS || head->version != 1)
		return 0;
	if (head->rows_bytes > head->raw_bytes || head->count > head->raw_bytes / EVENT_BYTES_MIN)
		return "impossible lengths";
	if (head->last_sequence < head->first_sequence || head->last_sequence >= SEQUENCE_MAX)
		return "impossible sequences";
	return 0;
}

static uint64_t checksum_of(const struct memtrace_chunk *head, const unsigned char *stored, size_t stored_bytes)
{
	struct memtrace_chunk plain = *head;
	plain.checksum = 0;
	uint64_t h = memtrace_checksum(sizeof plain, &plain, sizeof plain);
	return stored_bytes ? memtrace_checksum(h, stored, stored_bytes) : h;
}

/* Reads the chunk at its offset into `stored`. NULL, or what is wrong with it. */
static const char *read_chunk(struct trace *trace, struct chunk_ref *chunk)
{
	struct chunks *chunks = &trace->chunks;
	struct memtrace_chunk *head = &chunk->head;
	if (file_read(trace, head, sizeof *head, chunk->offset) != sizeof *head)
		return errno ? "cannot be read" : "the file ends";
	const char *reason = impossible_head(head);
	if (reason)
		return reason;
	if (head->kind == MEMTRACE_CHUNK_FREE)
		return checksum_of(head, NULL, 0) == head->checksum ? 0 : "wrong checksum";
	if (!ensure(&chunks->stored, &chunks->stored_capacity, head->stored_bytes))
		return "out of memory";
	if (file_read(trace, chunks->stored, head->stored_bytes, chunk->offset + sizeof *head) !=
	    head->stored_bytes)
		return errno ? "cannot be read" : "the file ends inside it";
	return checksum_of(head, chunks->stored, head->stored_bytes) == head->checksum ? 0 : "wrong checksum";
}

static const unsigned char *unpack(struct chunks *chunks, const struct memtrace_chunk *head)
{
	if (!chunks->context)
		chunks->context = ZSTD_createDCtx();
	if (!chunks->context || !ensure(&chunks->raw, &chunks->raw_capacity, head->raw_bytes))
		return 0;
	size_t got = ZSTD_decompressDCtx(chunks->context, chunks->raw, head->raw_bytes,
					 chunks->stored, head->stored_bytes);
	return got == head->raw_bytes ? chunks->raw : 0;
}

/* Reads again what the scan has listed: all of it into `stored`, ready to be unpacked. NULL, or what is wrong. */
static const char *read_again(struct trace *trace, const struct chunk_ref *chunk)
{
	struct chunk_ref again = {.offset = chunk->offset};
	const char *reason = read_chunk(trace, &again);
	if (!reason && memcmp(&again.head, &chunk->head, sizeof again.head))
		reason = "changed while it was read";
	if (!reason && chunk->head.kind == MEMTRACE_CHUNK_FREE)
		reason = "is room, which holds nothing";
	return reason;
}

const unsigned char *chunk_load(struct trace *trace, const struct chunk_ref *chunk)
{
	const char *reason = read_again(trace, chunk);
	const unsigned char *raw = reason ? 0 : unpack(&trace->chunks, &chunk->head);
	if (!raw)
		is_missing(trace, "chunk", chunk, reason ? reason : "cannot be unpacked");
	return raw;
}

bool chunk_is_room(const struct trace *trace, const struct chunk_ref *chunk)
{
	return chunk->head.kind == MEMTRACE_CHUNK_FREE && checksum_of(&chunk->head, NULL, 0) == chunk->head.checksum &&
	       trace->header.bound_bytes;
}

int chunk_list_add(struct chunk_list *to, const struct chunk_ref *chunk)
{
	if (to->count == to->capacity) {
		size_t capacity = to->capacity ? to->capacity * 2 : 64;
		struct chunk_ref *list = realloc(to->list, capacity * sizeof *list);
		if (!list)
			return -ENOMEM;
		to->list = list;
		to->capacity = capacity;
	}
	to->list[to->count++] = *chunk;
	return 0;
}

static void append(struct trace *trace, struct chunk_list *to, const struct chunk_ref *chunk)
{
	if (chunk_list_add(to, chunk))
		reader_is_torn(trace, "chunk at %llu: out of memory", (unsigned long long)chunk->offset);
}

static int compare(const void *a, const void *b)
{
	const struct chunk_ref *x = a, *y = b;
	if (x->head.first_sequence != y->head.first_sequence)
		return x->head.first_sequence < y->head.first_sequence ? -1 : 1;
	if (x->head.kind == MEMTRACE_CHUNK_CHECKPOINT && x->head.count != y->head.count)
		return x->head.count < y->head.count ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static void sort(struct chunk_list *list)
{
	if (list->count > 1)
		qsort(list->list, list->count, sizeof *list->list, compare);
}

static void take_definitions(struct trace *trace, const struct chunk_ref *chunk)
{
	const unsigned char *raw = 0;
	if (chunk->head.raw_bytes <= trace->definitions_left_bytes)
		raw = unpack(&trace->chunks, &chunk->head);
	if (raw)
		definitions_add_chunk(trace, chunk, raw);
	else
		reader_is_torn(trace, "definitions at %llu: cannot be unpacked",
			       (unsigned long long)chunk->offset);
}

/* Kinds and versions that are not known are passed over; events in them show as a gap. */
static void take_chunk(struct trace *trace, const struct chunk_ref *chunk, bool with_events)
{
	struct chunks *chunks = &trace->chunks;
	if (chunk->head.version != 1)
		return;
	if (chunk->head.kind == MEMTRACE_CHUNK_DEFINITIONS && chunk->head.first_sequence)
		append(trace, &chunks->definitions, chunk);
	else if (chunk->head.kind == MEMTRACE_CHUNK_DEFINITIONS)
		take_definitions(trace, chunk);
	else if (chunk->head.kind == MEMTRACE_CHUNK_EVENTS && with_events)
		append(trace, &chunks->events, chunk);
	else if (chunk->head.kind == MEMTRACE_CHUNK_CHECKPOINT && with_events)
		append(trace, &chunks->pieces, chunk);
	else if (chunk->head.kind == MEMTRACE_CHUNK_FREE)
		chunks->has_room = true;
}

static void take_in_order(struct trace *trace)
{
	struct chunks *chunks = &trace->chunks;
	sort(&chunks->definitions);
	for (size_t i = 0; i < chunks->definitions.count; i++) {
		const struct chunk_ref *chunk = &chunks->definitions.list[i];
		const char *reason = read_again(trace, chunk);
		if (reason)
			is_missing(trace, "definitions", chunk, reason);
		else
			take_definitions(trace, chunk);
	}
	chunks->definitions.count = 0;
	if (!trace->header.bound_bytes)
		return;
	sort(&chunks->events);
	sort(&chunks->pieces);
}

/* A chain that was changed under the scan is followed anew. */
static bool scan_restarts(struct chunks *chunks, const struct trace *trace, bool with_events)
{
	if (chunks->restarts >= RESTARTS_MAX || !is_moving(trace))
		return false;
	chunks->restarts++;
	chunks->end_offset = trace->header.chunks_offset;
	chunks->definitions.count = 0;
	if (with_events)
		chunks->events.count = chunks->pieces.count = 0;
	return true;
}

/* Goes on from where the last scan ended. Beyond the end that the header names there may be a chunk
 * that is complete but was not counted before the process died; anything else is no damage. */
static void scan(struct trace *trace, bool with_events)
{
	struct chunks *chunks = &trace->chunks;
	if (!chunks->end_offset)
		chunks->end_offset = trace->header.chunks_offset;
	while (!chunks->is_closed) {
		struct chunk_ref chunk = {.offset = chunks->end_offset};
		const char *reason = read_chunk(trace, &chunk);
		if (reason && chunk.offset >= trace->header.end_offset)
			return;
		if (reason && scan_restarts(chunks, trace, with_events))
			continue;
		if (reason) {
			is_missing(trace, "chunk", &chunk, reason);
			chunks->is_closed = true;
			return;
		}
		take_chunk(trace, &chunk, with_events);
		chunks->end_offset +=
			(sizeof chunk.head + (uint64_t)chunk.head.stored_bytes + 7) / 8 * 8;
	}
}

void chunks_scan(struct trace *trace, bool with_events)
{
	scan(trace, with_events);
	take_in_order(trace);
}

void chunks_scan_again(struct trace *trace)
{
	if (trace->chunks.has_room && !trace->chunks.is_closed)
		trace->chunks.end_offset = 0;
	chunks_scan(trace, false);
}

void chunks_release(struct trace *trace)
{
	free(trace->chunks.events.list);
	free(trace->chunks.definitions.list);
	free(trace->chunks.pieces.list);
	free(trace->chunks.stored);
	free(trace->chunks.raw);
	ZSTD_freeDCtx(trace->chunks.context);
}
