/* What the dump thread and the tool do with a real training run, at length: reads the trace of one,
 * finds a stretch after which blocks of the same sizes are live as before it (a few steps), and
 * writes a trace of as many events as asked for, the stretch being repeated; all in memory but for
 * the writer's file. Times are shaken a little, since exact repetition would compress too well.
 *   bench_dump TRACE NEW_TRACE EVENTS
 * Prints ns of processor time an event, "PART NS": read (the reader alone), write (rows,
 * compression, file), model; and "stretch EVENTS". */
#include <memtrace/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/build_defs.h"
#include "model/model.h"
#include "trace/reader.h"
#include "trace/writer.h"

#define BATCH_EVENTS       4096
#define STRETCH_EVENTS_MIN 5000
#define STRETCH_PLACES     (1u << 20)
#define LIVE_MAX           100000
#define SEAM_GAP_NS        1000

struct events {
	struct event *all;
	size_t count;
	size_t from, to;          /* the stretch */
	const struct event *seam; /* between its end and its beginning */
	size_t seam_count;
};

static void stop(const char *why)
{
	fprintf(stderr, "bench_dump: %s\n", why);
	exit(1);
}

/* Processor time: others may be using the machine. */
static double now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 31) * 0x9E3779B97F4A7C15u;
	value = (value ^ value >> 29) * 0xBF58476D1CE4E5B9u;
	return value ^ value >> 32;
}

/* ---------- the trace ---------- */

static void read_all(struct trace *trace, struct events *events)
{
	size_t room = 0;
	double start = now_ns();
	struct event event;
	while (trace_next(trace, &event)) {
		if (events->count == room) {
			room = room ? room * 2 : 1 << 16;
			events->all = realloc(events->all, room * sizeof event);
			if (!events->all)
				stop("out of memory");
		}
		events->all[events->count++] = event;
	}
	printf("read %.1f\n", (now_ns() - start) / (double)events->count);
}

/* The sizes of the live blocks as one number: an allocation and its free cancel out. */
static uint64_t live_sizes(uint64_t live, const struct event *event)
{
	uint64_t own = mix(event->bytes ^ (uint64_t)event->device << 56);
	return event->what == MEMTRACE_BLOCK_ALLOC  ? live + own
	       : event->what == MEMTRACE_BLOCK_FREE ? live - own
						    : live;
}

/* The latest stretch between two places, each after a free, with the same sizes of blocks live and
 * with nothing but block events in it. */
static void find_stretch(struct events *events)
{
	struct place {
		uint64_t live;
		size_t index;
	} *places = calloc(STRETCH_PLACES, sizeof *places);
	uint64_t live = 0;
	size_t clean_from = 0;
	for (size_t i = 0; places && i + 1 < events->count; i++) {
		const struct event *event = &events->all[i];
		live = live_sizes(live, event);
		if (event->what <= MEMTRACE_RELEASE)
			clean_from = i + 1;
		if (event->what != MEMTRACE_BLOCK_FREE || event->flags & MEMTRACE_AT_EXIT)
			continue;
		struct place *place = &places[live % STRETCH_PLACES];
		if (place->live != live || place->index < clean_from) {
			*place = (struct place){live, i + 1};
		} else if (i + 1 - place->index >= STRETCH_EVENTS_MIN) {
			events->from = place->index;
			events->to = i + 1;
			*place = (struct place){live, i + 1};
		}
	}
	free(places);
	if (!events->to)
		stop("no two places of this trace have the same sizes of blocks live");
	printf("stretch %zu\n", events->to - events->from);
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = ((const struct event *)a)->address, y = ((const struct event *)b)->address;
	return (x > y) - (x < y);
}

/* The allocations whose blocks are live after `count` events, by address. */
static size_t live_at(const struct events *events, size_t count, struct event *live)
{
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		const struct event *event = &events->all[i];
		size_t at = used;
		if (event->what == MEMTRACE_BLOCK_ALLOC && used < LIVE_MAX)
			live[used++] = *event;
		if (event->what != MEMTRACE_BLOCK_FREE)
			continue;
		while (at && live[at - 1].address != event->address)
			at--;
		if (at)
			live[at - 1] = live[--used];
	}
	qsort(live, used, sizeof *live, compare_addresses);
	return used;
}

/* PyTorch hands out small blocks at ever other addresses: before the stretch begins again, the few
 * blocks that are live only at its end are freed and those live only at its beginning are
 * allocated. */
static void find_seam(struct events *events)
{
	static struct event first[LIVE_MAX], last[LIVE_MAX], seam[2 * LIVE_MAX];
	size_t firsts = live_at(events, events->from, first),
	       lasts = live_at(events, events->to, last);
	size_t frees = 0, i = 0, j = 0;
	struct event *allocations = seam + LIVE_MAX;
	size_t allocation_count = 0;
	while (i < firsts || j < lasts) {
		int order = i == firsts  ? 1
			    : j == lasts ? -1
					 : compare_addresses(&first[i], &last[j]);
		if (!order && first[i].bytes == last[j].bytes) {
			i++, j++;
			continue;
		}
		if (order >= 0) {
			seam[frees] = last[j++];
			seam[frees++].what = MEMTRACE_BLOCK_FREE;
		}
		if (order <= 0)
			allocations[allocation_count++] = first[i++];
	}
	memmove(seam + frees, allocations, allocation_count * sizeof *seam);
	events->seam = seam;
	events->seam_count = frees + allocation_count;
}

/* ---------- the new trace ---------- */

/* The definitions of `from` under the same ids; strings get new ones. */
static void put_definitions(struct writer *writer, const struct defs *from)
{
	static struct records records;
	const struct def_module *module;
	const struct def_python_frame *frame;
	uint32_t string = 0;
#define FLUSH()                                                                          \
	do {                                                                             \
		if (writer_define(writer, records.data, records.used_bytes))             \
			writer_flush_full_halves(writer),                                \
				writer_define(writer, records.data, records.used_bytes); \
		records.used_bytes = 0;                                                  \
	} while (0)
	for (uint32_t id = 1; (module = defs_module(from, id)); id++) {
		put_string(&records, ++string, module->path);
		put_module(&records, id, string);
		FLUSH();
	}
	for (uint32_t id = 1; (frame = defs_python_frame(from, id)); id++) {
		put_string(&records, ++string, frame->file);
		put_string(&records, ++string, frame->function);
		put_python_frame(&records, id, string - 1, string, frame->line);
		FLUSH();
	}
	for (uint32_t id = 1; id <= defs_stack_count(from); id++) {
		const struct def_stack *stack = defs_stack(from, id);
		put_stack(&records, id, stack->owner, stack->python_count, 0, stack->python);
		FLUSH();
	}
	for (uint32_t id = 1; id <= defs_thread_count(from); id++) {
		put_thread(&records, id, defs_thread(from, id)->tid, 0);
		FLUSH();
	}
	const struct def_device *device = defs_device(from, 0);
	put_string(&records, ++string, device ? device->name : "");
	put_device(&records, 0, string, device ? device->total_bytes : 0);
	FLUSH();
}

struct maker {
	const struct events *events;
	size_t at, seam_left, left; /* next event; of the seam; how many in all are still to come */
	uint64_t sequence, time_ns;
};

static struct event take_next(struct maker *maker)
{
	const struct events *events = maker->events;
	if (maker->at == events->to &&
	    maker->left > events->count - events->to + events->seam_count) {
		maker->at = events->from;
		maker->seam_left = events->seam_count;
	}
	if (maker->seam_left)
		return events->seam[events->seam_count - maker->seam_left--];
	return events->all[maker->at++];
}

/* Its times are those of the trace plus up to a quarter. */
static struct event make_next(struct maker *maker)
{
	const struct event *all = maker->events->all;
	struct event event = take_next(maker);
	uint64_t gap = SEAM_GAP_NS;
	if (!maker->seam_left && maker->at > 1 && event.time_ns > all[maker->at - 2].time_ns)
		gap = event.time_ns - all[maker->at - 2].time_ns;
	maker->time_ns += gap + gap * (mix(maker->sequence) % 64) / 256;
	event.time_ns = maker->time_ns;
	event.sequence = maker->sequence++;
	maker->left--;
	return event;
}

static void write_and_replay(struct maker *maker, struct writer *writer, struct model *model)
{
	static struct event batch[BATCH_EVENTS];
	double write_ns = 0, model_ns = 0, all = (double)maker->left;
	while (maker->left && maker->at < maker->events->count) {
		unsigned count = 0;
		while (count < BATCH_EVENTS && maker->left && maker->at < maker->events->count)
			batch[count++] = make_next(maker);
		double start = now_ns();
		for (unsigned i = 0; i < count; i++)
			writer_add(writer, &batch[i]);
		double between = now_ns();
		for (unsigned i = 0; i < count; i++)
			model_apply(model, &batch[i]);
		write_ns += between - start;
		model_ns += now_ns() - between;
	}
	printf("write %.1f\nmodel %.1f\n", write_ns / all, model_ns / all);
}

int main(int argc, char **argv)
{
	static struct writer writer;
	struct events events = {0};
	char error[256];
	struct trace *trace = argc == 4 ? trace_open(argv[1], error, sizeof error) : NULL;
	if (!trace)
		stop(argc == 4 ? error : "usage: bench_dump TRACE NEW_TRACE EVENTS");
	read_all(trace, &events);
	find_stretch(&events);
	find_seam(&events);
	struct model *model = model_create(trace_defs(trace));
	if (!model || writer_create(&writer, argv[2]))
		stop("cannot make the new trace");
	put_definitions(&writer, trace_defs(trace));
	struct maker maker = {.events = &events, .left = strtoull(argv[3], NULL, 10)};
	write_and_replay(&maker, &writer, model);
	writer_finish(&writer, MEMTRACE_EXIT, 0, maker.time_ns);
	model_release(model);
	trace_close(trace);
	free(events.all);
	return writer.error ? 1 : 0;
}
