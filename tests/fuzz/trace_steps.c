/* Builds a trace as a little program says: compressed data and checksums are made for it, so that mutations of the
 * program reach what lies behind them. Each step is a letter and operands, see steps[]; numbers are little-endian. */
#define _GNU_SOURCE
#include "trace_steps.h"

#include <string.h>

static struct build build;

struct input {
	const uint8_t *at;
	size_t bytes;
};

static void take_bytes(struct input *input, void *to, size_t bytes)
{
	size_t some = bytes < input->bytes ? bytes : input->bytes;
	memset(to, 0, bytes);
	memcpy(to, input->at, some);
	input->at += some;
	input->bytes -= some;
}

static uint64_t take_number(struct input *input, size_t bytes)
{
	uint64_t number = 0;
	take_bytes(input, &number, bytes);
	return number;
}

/* Two bytes of length, then so many bytes; no more than `room`. */
static size_t take_block(struct input *input, void *to, size_t room)
{
	size_t bytes = take_number(input, 2);
	bytes = bytes < room ? bytes : room;
	bytes = bytes < input->bytes ? bytes : input->bytes;
	take_bytes(input, to, bytes);
	return bytes;
}

static void step_header(struct input *input) /* field in units of 8 bytes, value */
{
	size_t field = take_number(input, 1) % (sizeof(struct memtrace_header) / 8);
	take_bytes(input, build.data + 8 * field, 8);
}

static void step_live(struct input *input) /* the same, from the live page's start */
{
	size_t field = take_number(input, 1) % (sizeof(struct memtrace_live) / 8);
	take_bytes(input, build.data + MEMTRACE_PAGE + 8 * field, 8);
}

static void step_slot(struct input *input) /* index, then the slot */
{
	size_t index = take_number(input, 1) % BUILD_RING_SLOTS;
	take_bytes(input, build.data + 2 * MEMTRACE_PAGE + index * sizeof(struct memtrace_slot),
		   sizeof(struct memtrace_slot));
}

static void step_half(struct input *input) /* which, state, order, block of records */
{
	unsigned char *at =
		build.data + 3 * MEMTRACE_PAGE + take_number(input, 1) % 2 * BUILD_HALF_BYTES;
	struct memtrace_definitions_window half = {.state = (uint32_t)take_number(input, 1)};
	half.order = (uint32_t)take_number(input, 1);
	half.used_bytes = take_block(input, at + sizeof half, BUILD_HALF_BYTES - sizeof half);
	memcpy(at, &half, sizeof half);
}

static void step_window(struct input *input) /* first, count, block of rows, block of times */
{
	unsigned char *at = build.data + 4 * MEMTRACE_PAGE;
	struct memtrace_events_window window = {.first_sequence = take_number(input, 1)};
	window.count = take_number(input, 1);
	window.rows_bytes =
		take_block(input, at + sizeof window, BUILD_TIMES_OFFSET - sizeof window);
	window.times_bytes = take_block(input, at + BUILD_TIMES_OFFSET, MEMTRACE_PAGE);
	memcpy(at, &window, sizeof window);
}

static bool has_room(void)
{
	return build.bytes + (1 << 18) < BUILD_BYTES;
}

static void
step_chunk(struct input *input) /* kind, first, last, count, bytes of rows, block of raw content */
{
	static unsigned char raw[1 << 16];
	struct memtrace_chunk head = {.kind = (uint16_t)take_number(input, 1)};
	head.first_sequence = take_number(input, 1);
	head.last_sequence = take_number(input, 1);
	head.count = (uint32_t)take_number(input, 2);
	head.rows_bytes = (uint32_t)take_number(input, 2);
	size_t bytes = take_block(input, raw, sizeof raw);
	uint64_t end = build_header(&build)->end_offset;
	if (!has_room())
		return;
	build_chunk(&build, &head, raw, bytes);
	if (end < MEMTRACE_PAGE) /* the header was spoiled on purpose */
		build_header(&build)->end_offset = end;
}

static void
step_sealed(struct input *input) /* a chunk's struct as it is, block of stored content */
{
	uint64_t at = build.bytes;
	struct memtrace_chunk *chunk = (void *)(build.data + at);
	if (!has_room())
		return;
	take_bytes(input, chunk, sizeof *chunk);
	chunk->stored_bytes = (uint32_t)take_block(input, chunk + 1, 1 << 16);
	build_seal(&build, at);
	build.bytes += (sizeof *chunk + chunk->stored_bytes + 7) / 8 * 8;
}

static void step_bytes(struct input *input) /* block to append */
{
	if (has_room())
		build.bytes += take_block(input, build.data + build.bytes, 1 << 16) / 8 * 8;
}

/* Bytes of room: as in a bounded trace, what lies there is not looked at. */
static void step_room(struct input *input)
{
	struct memtrace_chunk *chunk = (void *)(build.data + build.bytes);
	if (!has_room())
		return;
	*chunk = (struct memtrace_chunk){.magic = MEMTRACE_CHUNK_MAGIC, .kind = MEMTRACE_CHUNK_FREE, .version = 1};
	chunk->stored_bytes = (uint32_t)take_number(input, 2);
	chunk->checksum = build_checksum(sizeof *chunk, (void *)chunk, sizeof *chunk);
	build.bytes += (sizeof *chunk + chunk->stored_bytes + 7) / 8 * 8;
}

static void step_cut(struct input *input) /* how many bytes of the end are missing */
{
	uint64_t bytes = take_number(input, 2);
	build.bytes -= bytes < build.bytes ? bytes : build.bytes;
	build.bytes = build.bytes / 8 * 8;
}

static const struct step {
	char letter;
	void (*run)(struct input *);
} steps[] = {
	{'H', step_header}, {'L', step_live},   {'S', step_slot},
	{'D', step_half},   {'W', step_window}, {'C', step_chunk},
	{'X', step_sealed}, {'B', step_bytes},  {'T', step_cut},
	{'R', step_room},
};

static void run_step(struct input *input)
{
	char letter = (char)take_number(input, 1);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (steps[i].letter == letter)
			steps[i].run(input);
}

const unsigned char *trace_of_steps(const uint8_t *data, size_t bytes, size_t *trace_bytes)
{
	struct input input = {data, bytes};
	if (bytes >= 8 && !memcmp(data, MEMTRACE_MAGIC, 8)) {
		*trace_bytes = bytes;
		return data;
	}
	build_start(&build);
	while (input.bytes)
		run_step(&input);
	*trace_bytes = build.bytes;
	return build.data;
}
