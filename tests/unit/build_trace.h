/* Small trace files by hand, for tests and for seeds of the fuzzer: laid out from
 * <memtrace/trace.h>, with a checksum of its own, so that a mistake of the code under test is not
 * made here too. Rows come from the encoder, which has tests of its own. */
#ifndef TEST_BUILD_TRACE_H
#define TEST_BUILD_TRACE_H

#include <memtrace/trace.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "build_defs.h"
#include "trace/rows.h"

#define BUILD_RING_SLOTS   16
#define BUILD_HALF_BYTES   2048
#define BUILD_TIMES_OFFSET 4096
#define BUILD_BYTES        (1u << 20)

struct build {
	_Alignas(64) unsigned char data[BUILD_BYTES];
	uint64_t bytes; /* of the file so far */
};

static inline struct memtrace_header *build_header(struct build *build)
{
	return (void *)build->data;
}

static inline struct memtrace_live *build_live(struct build *build)
{
	return (void *)(build->data + build_header(build)->live_offset);
}

static inline struct memtrace_events_window *build_window(struct build *build)
{
	return (void *)(build->data + build_header(build)->events_offset);
}

static inline void build_start(struct build *build)
{
	memset(build->data, 0, sizeof build->data);
	struct memtrace_header *header = build_header(build);
	memcpy(header->magic, MEMTRACE_MAGIC, sizeof header->magic);
	header->version = MEMTRACE_VERSION;
	header->pid = 4711;
	strcpy(header->boot_id, "another boot");
	strcpy(header->producer, "memtrace 0.1.0");
	header->live_offset = MEMTRACE_PAGE;
	header->ring_offset = 2 * MEMTRACE_PAGE;
	header->ring_slots = BUILD_RING_SLOTS;
	header->definitions_offset = 3 * MEMTRACE_PAGE;
	header->definitions_bytes = 2 * BUILD_HALF_BYTES;
	header->events_offset = 4 * MEMTRACE_PAGE;
	header->times_offset = BUILD_TIMES_OFFSET;
	header->events_bytes = 2 * MEMTRACE_PAGE;
	header->chunks_offset = header->end_offset = 6 * MEMTRACE_PAGE;
	build->bytes = header->chunks_offset;
	build_live(build)->status = -1;
}

/* All that a test needs to recognise an event by. */
static inline struct event build_event(uint64_t sequence)
{
	return (struct event){
		.sequence = sequence,
		.time_ns = (sequence + 1) << MEMTRACE_TIME_SHIFT,
		.address = 0x7f0000000000 + sequence * 512,
		.bytes = 512 * (sequence % 7 + 1),
		.extra = sequence % 3 ? 500 : 0,
		.stream = sequence % 2,
		.stack = (uint32_t)(sequence % 5),
		.thread = 1,
		.what = sequence % 2 ? MEMTRACE_ALLOC : MEMTRACE_FREE,
		.space = MEMTRACE_SPACE_DEVICE,
	};
}

struct columns {
	uint8_t rows[BUILD_TIMES_OFFSET * 4], times[BUILD_TIMES_OFFSET * 4];
	size_t rows_bytes, times_bytes;
	uint32_t count;
};

/* The rows of the listed sequences, ascending. */
static inline void build_columns(struct columns *columns, const uint64_t *sequences, uint32_t count)
{
	static struct rows_encoder encoder;
	uint8_t *row = columns->rows, *time = columns->times;
	rows_encoder_reset(&encoder, count ? sequences[0] : 0, 0);
	for (uint32_t i = 0; i < count; i++) {
		struct event ev = build_event(sequences[i]);
		rows_encode(&encoder, &ev, &row, &time);
	}
	columns->rows_bytes = (size_t)(row - columns->rows);
	columns->times_bytes = (size_t)(time - columns->times);
	columns->count = count;
}

static inline void build_range(struct columns *columns, uint64_t first, uint64_t last)
{
	static uint64_t sequences[1024];
	uint32_t count = 0;
	for (uint64_t sequence = first; sequence <= last; sequence++)
		sequences[count++] = sequence;
	build_columns(columns, sequences, count);
}

static inline uint64_t build_checksum(uint64_t h, const unsigned char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word = 0;
		for (size_t j = 0; j < 8 && i + j < bytes; j++)
			word |= (uint64_t)at[i + j] << 8 * j;
		h = (h ^ word) * 0x9E3779B97F4A7C15u;
		h ^= h >> 32;
	}
	return h;
}

/* Fills in the checksum of the chunk at `offset`, whatever its other fields say. */
static inline void build_seal(struct build *build, uint64_t offset)
{
	struct memtrace_chunk *chunk = (void *)(build->data + offset);
	chunk->checksum = 0;
	uint64_t h = build_checksum(sizeof *chunk, (void *)chunk, sizeof *chunk);
	chunk->checksum = build_checksum(h, (void *)(chunk + 1), chunk->stored_bytes);
}

/* Appends a chunk and moves the end; the result is its offset. */
static inline uint64_t build_chunk(struct build *build, const struct memtrace_chunk *head,
				   const void *raw, size_t bytes)
{
	uint64_t offset = build->bytes;
	struct memtrace_chunk *chunk = (void *)(build->data + offset);
	*chunk = *head;
	chunk->magic = MEMTRACE_CHUNK_MAGIC;
	chunk->version = 1;
	chunk->raw_bytes = (uint32_t)bytes;
	chunk->stored_bytes = (uint32_t)ZSTD_compress(
		chunk + 1, BUILD_BYTES - offset - sizeof *chunk, raw, bytes, 3);
	build_seal(build, offset);
	build->bytes = (offset + sizeof *chunk + chunk->stored_bytes + 7) / 8 * 8;
	build_header(build)->end_offset = build->bytes;
	return offset;
}

static inline uint64_t build_events_chunk(struct build *build, const struct columns *columns,
					  uint64_t first, uint64_t last)
{
	static unsigned char raw[sizeof columns->rows + sizeof columns->times];
	const struct memtrace_chunk head = {
		.kind = MEMTRACE_CHUNK_EVENTS,
		.first_sequence = first,
		.last_sequence = last,
		.count = columns->count,
		.rows_bytes = (uint32_t)columns->rows_bytes,
	};
	memcpy(raw, columns->rows, columns->rows_bytes);
	memcpy(raw + columns->rows_bytes, columns->times, columns->times_bytes);
	return build_chunk(build, &head, raw, columns->rows_bytes + columns->times_bytes);
}

static inline uint64_t build_chunk_range(struct build *build, uint64_t first, uint64_t last)
{
	static struct columns columns;
	build_range(&columns, first, last);
	return build_events_chunk(build, &columns, first, last);
}

static inline uint64_t build_definitions_chunk(struct build *build, const struct records *records)
{
	const struct memtrace_chunk head = {.kind = MEMTRACE_CHUNK_DEFINITIONS};
	return build_chunk(build, &head, records->data, records->used_bytes);
}

static inline void build_window_columns(struct build *build, const struct columns *columns,
					uint64_t first)
{
	struct memtrace_events_window *window = build_window(build);
	memcpy(window + 1, columns->rows, columns->rows_bytes);
	memcpy((unsigned char *)window + BUILD_TIMES_OFFSET, columns->times, columns->times_bytes);
	*window = (struct memtrace_events_window){
		.first_sequence = first,
		.count = columns->count,
		.rows_bytes = columns->rows_bytes,
		.times_bytes = columns->times_bytes,
	};
}

static inline void build_window_range(struct build *build, uint64_t first, uint64_t last)
{
	static struct columns columns;
	build_range(&columns, first, last);
	build_window_columns(build, &columns, first);
}

static inline struct memtrace_slot *build_slot(struct build *build, uint64_t ticket)
{
	struct memtrace_slot *ring = (void *)(build->data + build_header(build)->ring_offset);
	return &ring[ticket & (BUILD_RING_SLOTS - 1)];
}

static inline struct memtrace_slot build_slot_of(uint64_t ticket)
{
	struct event ev = build_event(ticket);
	return (struct memtrace_slot){
		.time_ns = ev.time_ns,
		.address = ev.address,
		.bytes = ev.bytes,
		.extra = ev.extra,
		.stream = ev.stream,
		.stack = ev.stack,
		.thread = ev.thread,
		.what = (uint8_t)ev.what,
		.space = (uint8_t)ev.space,
	};
}

static inline void build_ring_event(struct build *build, uint64_t ticket)
{
	struct memtrace_slot *slot = build_slot(build, ticket);
	*slot = build_slot_of(ticket);
	slot->turn = ticket + 1;
}

/* Published events [first, last], all after what has been consumed. */
static inline void build_ring_range(struct build *build, uint64_t first, uint64_t last)
{
	for (uint64_t ticket = first; ticket <= last; ticket++)
		build_ring_event(build, ticket);
	build_live(build)->consumed = first;
	build_live(build)->head = last + 1;
}

static inline void build_half(struct build *build, unsigned which, uint32_t state, uint32_t order,
			      const struct records *records)
{
	struct memtrace_definitions_window *half =
		(void *)(build->data + build_header(build)->definitions_offset +
			 which * BUILD_HALF_BYTES);
	half->state = state;
	half->order = order;
	half->used_bytes = records->used_bytes;
	memcpy(half + 1, records->data, records->used_bytes);
}

#endif
