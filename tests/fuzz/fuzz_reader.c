/* Feeds the reader broken traces, and checks what it promises whatever the file: no event twice or
 * out of order, an account that adds up, definitions that name only what is defined, one line for
 * an error.
 *
 * An input is either a trace file as it is (it begins like one), or a little program that builds
 * one: compressed data and checksums are made for it, so that mutations reach what lies behind
 * them. Each step is a letter and operands, see steps[]; numbers are little-endian.
 *
 * Built without a fuzzing compiler, `fuzz_reader FILE...` replays inputs, `fuzz_reader --seeds DIR`
 * writes seeds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit/build_trace.h"
#include "trace/reader.h"

#if defined(__has_feature)
#if __has_feature(coverage_sanitizer)
#define FUZZING /* the fuzzer brings main() */
#endif
#endif

#define REQUIRE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct build build;

/* ---------- what must hold ---------- */

static size_t check_text(const char *text)
{
	REQUIRE(text);
	return strlen(text); /* ends inside its memory, or the sanitizer says so */
}

static void check_stack(const struct defs *defs, const struct def_stack *stack)
{
	for (uint32_t i = 0; i < stack->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(defs, stack->python[i]);
		REQUIRE(frame);
		check_text(frame->file);
		check_text(frame->function);
	}
	for (uint32_t i = 0; i < stack->native_count; i++) {
		const struct def_native_frame *frame = defs_native_frame(defs, stack->native[i]);
		REQUIRE(frame && (!frame->module || defs_module(defs, frame->module)));
		REQUIRE(!frame->symbol == !frame->name);
		if (frame->symbol)
			REQUIRE(check_text(frame->symbol) > 0 && check_text(frame->name) > 0);
	}
	REQUIRE(!stack->owner || defs_module(defs, stack->owner));
}

static void check_defs(const struct defs *defs)
{
	for (uint32_t id = 1; id <= defs_stack_count(defs); id++)
		check_stack(defs, defs_stack(defs, id));
	for (uint32_t id = 1; id <= defs_thread_count(defs); id++)
		check_text(defs_thread(defs, id)->name);
	for (unsigned ordinal = 0; ordinal < 300; ordinal++)
		if (defs_device(defs, ordinal))
			check_text(defs_device(defs, ordinal)->name);
	for (uint32_t id = 1; defs_module(defs, id); id++)
		check_text(defs_module(defs, id)->name);
	for (unsigned key = 0; key < 20; key++)
		for (unsigned i = 0; defs_info(defs, (enum memtrace_info)key, i); i++)
			check_text(defs_info(defs, (enum memtrace_info)key, i));
}

static void check_trace(struct trace *trace)
{
	struct event ev;
	uint64_t events = 0, next = 0;
	for (; trace_next(trace, &ev); events++) {
		REQUIRE(ev.sequence >= next);
		next = ev.sequence + 1;
		check_text(event_what_name(ev.what));
		check_text(event_space_name(ev.space));
		double progress = trace_progress(trace);
		REQUIRE(progress >= 0 && progress <= 1);
	}
	const struct trace_facts *facts = trace_facts(trace);
	REQUIRE(facts->events == events);
	REQUIRE(facts->torn == (check_text(facts->torn_reason) > 0));
	check_defs(trace_defs(trace));
}

static void read_file(const void *data, size_t bytes)
{
	char path[64], error[256] = "";
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	REQUIRE(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	struct trace *trace = trace_open(path, error, sizeof error);
	if (trace)
		check_trace(trace);
	else
		REQUIRE(check_text(error) > 0 && !strchr(error, '\n'));
	trace_close(trace);
	close(fd);
}

/* ---------- programs ---------- */

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
};

static void run_step(struct input *input)
{
	char letter = (char)take_number(input, 1);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (steps[i].letter == letter)
			steps[i].run(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct input input = {data, bytes};
	if (bytes >= 8 && !memcmp(data, MEMTRACE_MAGIC, 8)) {
		read_file(data, bytes);
		return 0;
	}
	build_start(&build);
	while (input.bytes)
		run_step(&input);
	read_file(build.data, build.bytes);
	return 0;
}

#ifndef FUZZING

/* ---------- seeds ---------- */

static void put(FILE *seed, uint64_t number, size_t bytes)
{
	fwrite(&number, bytes, 1, seed);
}

static void put_block(FILE *seed, const void *data, size_t bytes)
{
	put(seed, bytes, 2);
	fwrite(data, bytes, 1, seed);
}

static void put_header(FILE *seed, size_t offset, uint64_t value)
{
	fputc('H', seed);
	put(seed, offset / 8, 1);
	put(seed, value, 8);
}

static void put_live(FILE *seed, size_t offset, uint64_t value)
{
	fputc('L', seed);
	put(seed, offset / 8, 1);
	put(seed, value, 8);
}

static void put_chunk(FILE *seed, unsigned kind, uint64_t first, uint64_t last,
		      const struct columns *columns)
{
	fputc('C', seed);
	put(seed, kind, 1);
	put(seed, first, 1);
	put(seed, last, 1);
	put(seed, columns->count, 2);
	put(seed, columns->rows_bytes, 2);
	put(seed, columns->rows_bytes + columns->times_bytes, 2);
	fwrite(columns->rows, columns->rows_bytes, 1, seed);
	fwrite(columns->times, columns->times_bytes, 1, seed);
}

static void put_window(FILE *seed, uint64_t first, const struct columns *columns)
{
	fputc('W', seed);
	put(seed, first, 1);
	put(seed, columns->count, 1);
	put_block(seed, columns->rows, columns->rows_bytes);
	put_block(seed, columns->times, columns->times_bytes);
}

static void put_ring(FILE *seed, uint64_t first, uint64_t last)
{
	for (uint64_t ticket = first; ticket <= last; ticket++) {
		build_ring_event(&build, ticket);
		fputc('S', seed);
		put(seed, ticket % BUILD_RING_SLOTS, 1);
		fwrite(build_slot(&build, ticket), sizeof(struct memtrace_slot), 1, seed);
	}
	put_live(seed, offsetof(struct memtrace_live, consumed), first);
	put_live(seed, offsetof(struct memtrace_live, head), last + 1);
}

static void example_records(struct records *records)
{
	static const uint32_t frames[] = {2, 1, 1};
	memset(records, 0, sizeof *records);
	put_string(records, 1, "train.py");
	put_string(records, 2, "/usr/lib/libtorch.so");
	put_module(records, 1, 2);
	put_python_frame(records, 1, 1, 1, 40);
	put_python_frame(records, 2, 1, 0, -1);
	put_native_frame(records, 1, 1, 0x123);
	put_stack(records, 1, 1, 2, 1, frames);
	put_thread(records, 1, 4711, 2);
	put_device(records, 2, 1, 80);
	put_info(records, MEMTRACE_INFO_ARGUMENT, 1);
}

static FILE *open_seed(const char *directory, const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *seed = fopen(path, "w");
	if (!seed) {
		perror(path);
		exit(1);
	}
	return seed;
}

static void write_seeds(const char *directory)
{
	static const uint64_t with_holes[] = {20, 21, 25, 26, 40};
	static struct records records;
	static struct columns columns;
	build_start(&build);
	example_records(&records);

	FILE *seed = open_seed(directory, "killed");
	fputc('C', seed);
	put(seed, MEMTRACE_CHUNK_DEFINITIONS, 1);
	put(seed, 0, 6);
	put_block(seed, records.data, records.used_bytes);
	build_range(&columns, 0, 19);
	put_chunk(seed, MEMTRACE_CHUNK_EVENTS, 0, 19, &columns);
	build_columns(&columns, with_holes, 5);
	put_window(seed, 20, &columns);
	put_ring(seed, 41, 46);
	fclose(seed);

	seed = open_seed(directory, "halves");
	fputs("D\1\2\1", seed);
	put_block(seed, records.data, records.used_bytes);
	memset(&records, 0, sizeof records);
	put_string(&records, 3, "gr\xc3\xbc\xff");
	put_info(&records, MEMTRACE_INFO_NOTICE, 3);
	fputc('D', seed);
	put(seed, 0x020100, 3);
	put_block(seed, records.data, records.used_bytes);
	fclose(seed);

	seed = open_seed(directory, "torn");
	build_range(&columns, 0, 9);
	put_chunk(seed, MEMTRACE_CHUNK_EVENTS, 0, 9, &columns);
	put_chunk(seed, MEMTRACE_CHUNK_EVENTS, 5, 14, &columns);
	fputs("T\x0c", seed);
	fputc(0, seed);
	put_header(seed, offsetof(struct memtrace_header, ring_slots), 8);
	fclose(seed);
}

static void replay(const char *path)
{
	static uint8_t data[1 << 23];
	FILE *file = fopen(path, "r");
	size_t bytes = file ? fread(data, 1, sizeof data, file) : 0;
	printf("%s: %zu bytes\n", path, bytes);
	LLVMFuzzerTestOneInput(data, bytes);
	if (file)
		fclose(file);
}

int main(int count, char **arguments)
{
	if (count == 3 && !strcmp(arguments[1], "--seeds")) {
		write_seeds(arguments[2]);
		return 0;
	}
	for (int i = 1; i < count; i++)
		replay(arguments[i]);
	return 0;
}

#endif
