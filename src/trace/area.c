/* Where chunks lie. Without a bound they are appended. With one, the oldest events are given up when there is no room,
 * a stretch between two checkpoints at a time: their chunks become room, and later chunks are put there, first fit.
 * Nothing of this is kept in memory: the chain of chunks in the file is the list of what is free. It must leave that
 * chain whole at any moment: room is made by one store of a header, and taken by writing all that follows the new
 * header before the header itself. */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "trace/writer_private.h"

#define CHECKPOINTS_IN_FILE 8 /* so an eighth of the events is given up at a time */
#define ROOM_MAX ((uint64_t)UINT32_MAX / AREA_ALIGN * AREA_ALIGN)

struct room {
	uint64_t at, bytes;
};

/* ---------- the chain ---------- */

static uint64_t chunk_bytes(const struct memtrace_chunk *chunk)
{
	return (sizeof *chunk + (uint64_t)chunk->stored_bytes + 7) & ~UINT64_C(7);
}

static int read_header(const struct writer *writer, uint64_t at, struct memtrace_chunk *chunk)
{
	int error = sink_read(&writer->sink, chunk, sizeof *chunk, at);
	return error || chunk->magic == MEMTRACE_CHUNK_MAGIC ? error : -EIO;
}

static int write_room(struct writer *writer, struct room room)
{
	struct memtrace_chunk chunk = { .magic = MEMTRACE_CHUNK_MAGIC,
					.kind = MEMTRACE_CHUNK_FREE,
					.version = 1,
					.stored_bytes = (uint32_t)(room.bytes - sizeof chunk) };
	chunk.checksum = memtrace_checksum(sizeof chunk, &chunk, sizeof chunk);
	return sink_write(&writer->sink, &chunk, sizeof chunk, room.at);
}

static int append(struct writer *writer, size_t bytes)
{
	uint64_t end = writer->header->end_offset;
	int error = sink_write(&writer->sink, writer->scratch, bytes, end);
	if (!error)
		__atomic_store_n(&writer->header->end_offset, (end + bytes + 7) & ~UINT64_C(7), __ATOMIC_RELEASE);
	return error;
}

/* ---------- giving up ---------- */

static bool is_given_up(const struct memtrace_chunk *chunk, uint64_t floor)
{
	return chunk->kind == MEMTRACE_CHUNK_FREE ||
	       (chunk->kind == MEMTRACE_CHUNK_EVENTS && chunk->last_sequence < floor) ||
	       (chunk->kind == MEMTRACE_CHUNK_CHECKPOINT && chunk->first_sequence < floor);
}

/* The run of chunks ends: one header makes it room. */
static int close_run(struct writer *writer, struct room *run)
{
	int error = run->bytes ? write_room(writer, *run) : 0;
	writer->area.free_bytes += run->bytes;
	*run = (struct room){ 0, 0 };
	return error;
}

static int give_up_below(struct writer *writer, uint64_t floor)
{
	struct memtrace_chunk chunk;
	struct room run = { 0, 0 };
	int error = 0;
	writer->area.free_bytes = 0;
	for (uint64_t at = writer->header->chunks_offset; !error && at < writer->header->end_offset;
	     at += chunk_bytes(&chunk)) {
		error = read_header(writer, at, &chunk);
		if (error)
			break;
		bool goes = is_given_up(&chunk, floor);
		if (!goes || run.bytes + chunk_bytes(&chunk) > ROOM_MAX)
			error = close_run(writer, &run);
		if (goes && !run.bytes)
			run.at = at;
		run.bytes += goes ? chunk_bytes(&chunk) : 0;
	}
	return error ? error : close_run(writer, &run);
}

/* What comes before the next checkpoint. -ENOSPC: there is none, all that is left is needed. */
static int give_up_oldest(struct writer *writer)
{
	struct area *area = &writer->area;
	if (!area->checkpoint_count)
		return -ENOSPC;
	uint64_t floor = area->checkpoints[0];
	memmove(area->checkpoints, area->checkpoints + 1, --area->checkpoint_count * sizeof *area->checkpoints);
	return give_up_below(writer, floor);
}

/* ---------- room ---------- */

/* Looks at the chunks in [from, to). 1 and *room, 0, or -errno. */
static int find_between(const struct writer *writer, uint64_t from, uint64_t to, size_t bytes, struct room *room)
{
	struct memtrace_chunk chunk;
	for (uint64_t at = from; at < to; at += chunk_bytes(&chunk)) {
		int error = read_header(writer, at, &chunk);
		if (error)
			return error;
		*room = (struct room){ at, chunk_bytes(&chunk) };
		if (chunk.kind == MEMTRACE_CHUNK_FREE && room->bytes >= bytes)
			return 1;
	}
	return 0;
}

/* From where the last chunk was put: so events lie round the file in their order, as far as they fit. */
static int find_room(const struct writer *writer, size_t bytes, struct room *room)
{
	const struct area *area = &writer->area;
	uint64_t first = writer->header->chunks_offset, cursor = area->cursor ? area->cursor : first;
	if (area->free_bytes < bytes)
		return 0;
	int found = find_between(writer, cursor, writer->header->end_offset, bytes, room);
	return found ? found : find_between(writer, first, cursor, bytes, room);
}

static int store_in(struct writer *writer, size_t bytes, struct room room)
{
	const size_t head = sizeof(struct memtrace_chunk);
	struct room rest = { room.at + bytes, room.bytes - bytes };
	int error = rest.bytes ? write_room(writer, rest) : 0;
	if (!error)
		error = sink_write(&writer->sink, writer->scratch + head, bytes - head, room.at + head);
	if (!error)
		error = sink_write(&writer->sink, writer->scratch, head, room.at);
	writer->area.free_bytes -= bytes;
	writer->area.cursor = room.at + bytes;
	return error;
}

/* What is live must be told, however small the bound: several checkpoints fit, or the file becomes larger. */
static uint64_t end_most(const struct writer *writer)
{
	uint64_t least = writer->header->chunks_offset + 6 * writer->area.checkpoint_bytes;
	return writer->area.bound_bytes > least ? writer->area.bound_bytes : least;
}

int area_store(struct writer *writer, size_t bytes)
{
	struct room room;
	while (writer->area.bound_bytes) {
		int found = find_room(writer, bytes, &room);
		if (found < 0)
			return found;
		if (found)
			return store_in(writer, bytes, room);
		if (writer->header->end_offset + bytes <= end_most(writer))
			break;
		int error = give_up_oldest(writer);
		if (error == -ENOSPC)
			break;
		if (error)
			return error;
	}
	return append(writer, bytes);
}

/* ---------- checkpoints ---------- */

void writer_set_bound(struct writer *writer, uint64_t bytes)
{
	writer->area.bound_bytes = bytes < WRITER_BOUND_MIN ? WRITER_BOUND_MIN : bytes;
	writer->header->bound_bytes = writer->area.bound_bytes;
	front_copy_out(writer);
}

bool writer_wants_checkpoint(const struct writer *writer)
{
	const struct area *area = &writer->area;
	if (!area->bound_bytes || writer->error)
		return false;
	uint64_t due = (end_most(writer) - writer->header->chunks_offset) / CHECKPOINTS_IN_FILE;
	return area->events_bytes >= due;
}

void writer_put_off_checkpoint(struct writer *writer)
{
	writer->area.events_bytes = 0;
}

void area_note_checkpoint(struct writer *writer, const struct memtrace_chunk *piece, bool is_first, bool is_last)
{
	struct area *area = &writer->area;
	uint64_t bytes = sizeof *piece + piece->stored_bytes;
	area->checkpoint_bytes = is_first ? bytes : area->checkpoint_bytes + bytes;
	if (!is_last)
		return;
	area->events_bytes = 0;
	if (area->checkpoint_count == AREA_CHECKPOINTS) /* one less to begin at */
		area->checkpoint_count--;
	area->checkpoints[area->checkpoint_count++] = piece->first_sequence;
}

bool writer_definitions_full(const struct writer *writer)
{
	const struct area *area = &writer->area;
	return area->bound_bytes &&
	       __atomic_load_n(&area->definitions_bytes, __ATOMIC_RELAXED) > area->bound_bytes / 4;
}
