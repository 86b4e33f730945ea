/* What an event costs in the model: 100,000 live blocks, most of them old, in 2,000 segments of
 * PyTorch beside 200 regions of NCCL, from 5,000 stacks and two threads. Most frees take a recent
 * block, as training does. Prints ns an event, the best of five rounds, for: block events in a
 * steady state, also with 1,000 and with a million live blocks; block events while every allocation
 * is a new peak; driver events of a program with no caching allocator and 100,000 regions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/build_defs.h"
#include "model/model.h"

enum { LIVE_MOST = 1000000, LIVE = 100000, LIVE_FEW = 1000 };
enum { STACKS = 5000, SEGMENTS = 2000, EVENTS = 2000000, ROUNDS = 5 };

#define SEGMENT_BYTES (64ull << 20)
#define BASE          0x7f0000000000ull

static struct event events[EVENTS];
static uint64_t live[LIVE_MOST];
static uint32_t live_count = LIVE;

static uint32_t next_random(void)
{
	static uint64_t state = 1;
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33);
}

static void add_records(struct defs *defs, struct records *records)
{
	if (defs_add(defs, records->data, records->used_bytes, NULL))
		abort();
	records->used_bytes = 0;
}

static struct defs *make_defs(void)
{
	static struct records records;
	struct defs *defs = defs_create();
	put_string(&records, 1, "/usr/lib/libc10_cuda.so");
	put_string(&records, 2, "/usr/lib/libnccl.so.2");
	put_module(&records, 1, 1);
	put_module(&records, 2, 2);
	put_thread(&records, 1, 100, 0);
	put_thread(&records, 2, 101, 0);
	for (uint32_t id = 1; id <= STACKS; id++) {
		put_stack(&records, id, id == STACKS ? 2 : 1, 0, 0, NULL);
		if (id % 100 == 0)
			add_records(defs, &records);
	}
	return defs;
}

static double now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time); /* other load counts less */
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static struct event make(enum memtrace_what what, enum memtrace_space space, uint64_t address,
			 uint64_t bytes)
{
	static uint64_t sequence;
	return (struct event){
		.sequence = ++sequence,
		.time_ns = sequence * 1000,
		.what = what,
		.space = space,
		.address = address,
		.bytes = bytes,
		.stack = 1 + next_random() % (STACKS - 1),
		.thread = 1 + next_random() % 2,
	};
}

/* Segments and regions, then the live blocks. */
static void warm_up(struct model *m)
{
	for (uint64_t i = 0; i < SEGMENTS; i++) {
		struct event e = make(MEMTRACE_ALLOC, MEMTRACE_SPACE_DEVICE,
				      BASE + i * SEGMENT_BYTES, SEGMENT_BYTES);
		if (i % 10 == 9)
			e.stack = STACKS;
		model_apply(m, &e);
	}
	const uint64_t segments = SEGMENTS / 10 * 9;
	for (uint64_t i = 0; i < live_count; i++) {
		live[i] = BASE + i % segments / 9 * 10 * SEGMENT_BYTES + (i / segments * 9 + i % 9) * 512;
		struct event e = make(MEMTRACE_BLOCK_ALLOC, MEMTRACE_SPACE_BLOCK, live[i], 512);
		model_apply(m, &e);
	}
}

/* Three quarters of the frees take one of the 1,000 newest blocks. */
static void fill_steady(void)
{
	for (int i = 0; i < EVENTS; i += 2) {
		uint32_t from =
			next_random() % 4 ? live_count - 1 - next_random() % 1000 : next_random() % live_count;
		uint64_t address = live[from], bytes = 512 * (1 + next_random() % 1000);
		events[i] = make(MEMTRACE_BLOCK_FREE, MEMTRACE_SPACE_BLOCK, address, bytes);
		events[i + 1] = make(MEMTRACE_BLOCK_ALLOC, MEMTRACE_SPACE_BLOCK, address, bytes);
	}
}

static void fill_rising(void)
{
	for (int i = 0; i < EVENTS; i += 2) {
		uint64_t address = live[next_random() % LIVE];
		events[i] = make(MEMTRACE_BLOCK_FREE, MEMTRACE_SPACE_BLOCK, address, 512);
		events[i + 1] = make(MEMTRACE_BLOCK_ALLOC, MEMTRACE_SPACE_BLOCK, address,
				     (2048ull + (unsigned)i) << 20);
	}
}

static void fill_regions(void)
{
	for (uint64_t i = 0; i < EVENTS; i++) {
		bool is_free = i >= LIVE && i % 2;
		uint64_t place = i < LIVE ? i : next_random() % LIVE;
		if (is_free)
			place = events[i - 1].address / 4096;
		events[i] = make(is_free ? MEMTRACE_FREE : MEMTRACE_ALLOC, MEMTRACE_SPACE_STREAM,
				 place * 4096 + 4096, 4096);
		if (is_free)
			events[i].address = events[i - 1].address;
	}
}

static void measure(const char *name, const struct defs *defs, bool warm)
{
	double best = 1e18;
	size_t bytes = 0;
	for (int round = 0; round < ROUNDS; round++) {
		struct model *m = model_create(defs);
		if (warm)
			warm_up(m);
		double start = now_ns();
		for (int i = 0; i < EVENTS; i++)
			model_apply(m, &events[i]);
		double each = (now_ns() - start) / EVENTS;
		best = each < best ? each : best;
		bytes = model_memory_bytes(m);
		if (model_failed(m))
			abort();
		model_release(m);
	}
	printf("model %-8s %6.1f ns an event, %.2f M events a second, %zu KiB\n", name, best,
	       1e3 / best, bytes >> 10);
}

static void measure_steady(const char *name, const struct defs *defs, uint32_t blocks)
{
	struct model *m = model_create(defs);
	live_count = blocks;
	warm_up(m);
	model_release(m);
	fill_steady();
	measure(name, defs, true);
}

int main(void)
{
	struct defs *defs = make_defs();
	measure_steady("few", defs, LIVE_FEW);
	measure_steady("many", defs, LIVE_MOST);
	measure_steady("steady", defs, LIVE);
	fill_rising();
	measure("rising", defs, true);
	fill_regions();
	measure("regions", defs, false);
	defs_release(defs);
	return 0;
}
