/* Programs of trace_steps.c to begin with: a trace of a killed program, halves of the definitions window, a torn one, a
 * bounded one. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace_steps.h"

static struct build build;

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

static void write_killed(FILE *seed, const struct records *records)
{
	static const uint64_t with_holes[] = {20, 21, 25, 26, 40};
	static struct columns columns;
	fputc('C', seed);
	put(seed, MEMTRACE_CHUNK_DEFINITIONS, 1);
	put(seed, 0, 6);
	put_block(seed, records->data, records->used_bytes);
	build_range(&columns, 0, 19);
	put_chunk(seed, MEMTRACE_CHUNK_EVENTS, 0, 19, &columns);
	build_columns(&columns, with_holes, 5);
	put_window(seed, 20, &columns);
	put_ring(seed, 41, 46);
}

static void write_halves(FILE *seed, const struct records *records)
{
	static struct records more;
	fputs("D\1\2\1", seed);
	put_block(seed, records->data, records->used_bytes);
	memset(&more, 0, sizeof more);
	put_string(&more, 3, "gr\xc3\xbc\xff");
	put_info(&more, MEMTRACE_INFO_NOTICE, 3);
	fputc('D', seed);
	put(seed, 0x020100, 3);
	put_block(seed, more.data, more.used_bytes);
}

static void write_torn(FILE *seed, const struct records *records)
{
	static struct columns columns;
	(void)records;
	build_range(&columns, 0, 9);
	put_chunk(seed, MEMTRACE_CHUNK_EVENTS, 0, 9, &columns);
	put_chunk(seed, MEMTRACE_CHUNK_EVENTS, 5, 14, &columns);
	fputs("T\x0c", seed);
	fputc(0, seed);
	put_header(seed, offsetof(struct memtrace_header, ring_slots), 8);
}

static void put_piece(FILE *seed, uint64_t sequence, unsigned number, bool is_last)
{
	fputc('C', seed);
	put(seed, MEMTRACE_CHUNK_CHECKPOINT, 1);
	put(seed, sequence, 1);
	put(seed, sequence, 1);
	put(seed, number, 2);
	put(seed, is_last, 2);
	put_block(seed, "a state", 7);
}

/* Chunks in no order, two states and a piece of one, room. */
static void write_bounded(FILE *seed, const struct records *records)
{
	static struct columns columns;
	put_header(seed, offsetof(struct memtrace_header, bound_bytes), BUILD_BYTES);
	build_range(&columns, 60, 79);
	put_chunk(seed, MEMTRACE_CHUNK_EVENTS, 60, 79, &columns);
	put_piece(seed, 50, 1, true);
	fputc('R', seed);
	put(seed, 72, 2);
	build_range(&columns, 40, 59);
	put_chunk(seed, MEMTRACE_CHUNK_EVENTS, 40, 59, &columns);
	put_piece(seed, 70, 0, true);
	put_piece(seed, 50, 0, false);
	put_piece(seed, 78, 0, false);
	fputc('C', seed);
	put(seed, MEMTRACE_CHUNK_DEFINITIONS, 1);
	put(seed, 1, 6);
	put_block(seed, records->data, records->used_bytes);
	put_ring(seed, 80, 84);
}

void write_trace_seeds(const char *directory)
{
	static const struct {
		const char *name;
		void (*write)(FILE *, const struct records *);
	} seeds[] = {{"killed", write_killed}, {"halves", write_halves}, {"torn", write_torn}, {"bounded", write_bounded}};
	static struct records records;
	example_records(&records);
	for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
		FILE *seed = open_seed(directory, seeds[i].name);
		build_start(&build);
		seeds[i].write(seed, &records);
		fclose(seed);
	}
}
