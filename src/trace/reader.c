/* Reading a trace: opening, and the events in ticket order out of chunks, window and ring. Owns:
 * which event comes next, and the account of those that are missing. Must never give a sequence
 * twice or out of order, nor fail: what cannot be read is counted. How the parts of a file that is
 * still being written are copied so that nothing is missed stands in reader_front.c. */
#include "trace/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/reader_private.h"

#define DEFINITIONS_FREE_BYTES ((uint64_t)64 << 20)
#define DEFINITIONS_RATIO      64 /* beyond that, unpacked to stored; text packs 5 to 15 times */

void reader_is_torn(struct trace *trace, const char *format, ...)
{
	struct text text;
	va_list arguments;
	if (trace->facts.torn)
		return;
	trace->facts.torn = true;
	text_init_fixed(&text, trace->facts.torn_reason, sizeof trace->facts.torn_reason);
	va_start(arguments, format);
	text_vprintf(&text, format, arguments);
	va_end(arguments);
	text_string(&text);
}

/* ---------- the account ---------- */

static uint64_t add_up(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* A sequence that is passed over was given up by the dump thread (in flight), could not be written,
 * or was in a part of the file that is damaged. */
static void account(struct trace *trace)
{
	const struct memtrace_live *live = &trace->live;
	uint64_t missing = trace->gaps > live->in_flight ? trace->gaps - live->in_flight : 0;
	if (missing < live->unwritten)
		missing = live->unwritten;
	trace->facts.lost = add_up(live->lost, missing);
}

static void pass_over(struct trace *trace, uint64_t sequence)
{
	trace->gaps = add_up(trace->gaps, sequence - trace->next);
	trace->next = sequence;
	account(trace);
}

/* Tickets that threads took while or after the last events were stored: none is in the file. */
static uint64_t late(const struct memtrace_live *live)
{
	uint64_t tickets = live->ended && live->head > live->consumed ? live->head - live->consumed : 0;
	return add_up(live->late, tickets);
}

static void fill_facts(struct trace *trace)
{
	struct trace_facts *facts = &trace->facts;
	const struct memtrace_live *live = &trace->live;
	facts->pid = trace->header.pid;
	facts->start_realtime_ns = trace->header.start_realtime_ns;
	facts->in_flight = live->in_flight;
	facts->late = late(live);
	facts->disagreements = live->disagreements;
	facts->blind_lookups = live->blind_lookups;
	facts->blind_deepbind = live->blind_deepbind;
	facts->blind_dlmopen = live->blind_dlmopen;
	facts->stacks_lost = live->stacks_lost;
	facts->bound_bytes = trace->header.bound_bytes;
	facts->frozen = live->frozen;
	facts->ended = live->ended <= MEMTRACE_ABORT ? (enum memtrace_ended)live->ended
							  : MEMTRACE_RUNNING;
	facts->status = facts->ended ? live->status : -1;
	facts->duration_ns = facts->ended ? live->end_time_ns : 0;
	facts->write_errno = live->write_errno;
	facts->repaired = strstr(trace->header.producer, MEMTRACE_REPAIRED) != NULL;
	facts->cut = facts->repaired && strstr(trace->header.producer, MEMTRACE_CUT);
	enum process_state state = facts->ended ? PROCESS_GONE : process_look(&trace->header);
	facts->still_running = state == PROCESS_RUNS;
	facts->may_run_elsewhere = state == PROCESS_UNKNOWN;
	account(trace);
}

/* ---------- opening ---------- */

static int load(struct trace *trace, struct text *why)
{
	trace->definitions_left_bytes =
		DEFINITIONS_FREE_BYTES + DEFINITIONS_RATIO * trace->facts.file_bytes;
	trace->defs = defs_create();
	bool is_loaded = trace->defs && !front_copy(trace);
	if (is_loaded) {
		chunks_scan(trace, true);
		is_loaded = !definitions_add_window(trace) && !states_find(trace);
		/* Again: what a chunk passes over must be in the counters already. */
		file_read(trace, &trace->live, sizeof trace->live, trace->header.live_offset);
	}
	if (is_loaded)
		return 0;
	text_add_escaped(why, trace->path);
	text_add(why, ": out of memory");
	return -1;
}

struct trace *trace_open(const char *path, char *error, size_t error_bytes)
{
	struct text why;
	text_init_fixed(&why, error, error_bytes);
	struct trace *trace = calloc(1, sizeof *trace);
	if (!trace) {
		text_add(&why, "out of memory");
		text_string(&why);
		return 0;
	}
	if (file_open(trace, path, &why) || header_read(trace, &why) || load(trace, &why)) {
		text_string(&why);
		trace_close(trace);
		return 0;
	}
	fill_facts(trace);
	return trace;
}

void trace_close(struct trace *trace)
{
	if (!trace)
		return;
	if (trace->fd >= 0)
		close(trace->fd);
	if (trace->front_fd >= 0)
		close(trace->front_fd);
	chunks_release(trace);
	defs_release(trace->defs);
	free(trace->states.list);
	free(trace->window.rows);
	free(trace->window.times);
	free(trace->ring.slots);
	free(trace->path);
	free(trace);
}

/* ---------- events ---------- */

static void start_chunk(struct trace *trace, const struct chunk_ref *chunk)
{
	const struct memtrace_chunk *head = &chunk->head;
	if (head->last_sequence < trace->next)
		return; /* all of it was seen */
	const unsigned char *raw = chunk_load(trace, chunk);
	if (!raw)
		return;
	rows_decoder_init(&trace->rows, raw, head->rows_bytes, raw + head->rows_bytes,
			  head->raw_bytes - head->rows_bytes, head->first_sequence,
			  head->base_time_ns);
	trace->rows_left = head->count;
	trace->rows_last = head->last_sequence;
}

static void start_window(struct trace *trace)
{
	const struct window *window = &trace->window;
	rows_decoder_init(&trace->rows, window->rows, window->head.rows_bytes, window->times,
			  window->head.times_bytes, window->head.first_sequence,
			  window->head.base_time_ns);
	trace->rows_left = window->head.count;
	trace->rows_last = SEQUENCE_MAX - 1;
}

static void finish_chunk(struct trace *trace)
{
	if (!trace->chunk_next)
		return;
	uint64_t last = trace->chunks.events.list[trace->chunk_next - 1].head.last_sequence;
	if (last >= trace->next)
		pass_over(trace, last + 1);
}

static void start_ring(struct trace *trace)
{
	/* What was taken from the ring and is in no window or chunk could not be written. */
	if (trace->ring.first > trace->next)
		pass_over(trace, trace->ring.first);
}

static void start_next(struct trace *trace)
{
	if (trace->source == SOURCE_CHUNKS) {
		finish_chunk(trace);
		if (trace->chunk_next < trace->chunks.events.count) {
			start_chunk(trace, &trace->chunks.events.list[trace->chunk_next++]);
			return;
		}
		trace->source = SOURCE_WINDOW;
		start_window(trace);
	} else if (trace->source == SOURCE_WINDOW) {
		trace->source = SOURCE_RING;
		start_ring(trace);
	} else {
		trace->source = SOURCE_NONE;
	}
}

static void rows_are_damaged(struct trace *trace)
{
	trace->rows_left = 0;
	if (trace->source == SOURCE_CHUNKS)
		reader_is_torn(
			trace, "chunk at %llu: damaged rows",
			(unsigned long long)trace->chunks.events.list[trace->chunk_next - 1].offset);
	else
		reader_is_torn(trace, "the events window has damaged rows");
}

/* 1 and an event of the chunk or window in hand, perhaps one that was seen already; 0: there is no
 * more. */
static int next_row(struct trace *trace, struct event *ev)
{
	if (!trace->rows_left)
		return 0;
	uint64_t expected = trace->rows.next_sequence;
	if (rows_decode(&trace->rows, ev) != 1 || ev->sequence < expected ||
	    ev->sequence > trace->rows_last) {
		rows_are_damaged(trace);
		return 0;
	}
	trace->rows_left--;
	return 1;
}

static void take_slot(struct event *ev, const struct memtrace_slot *slot, uint64_t ticket)
{
	*ev = (struct event){
		.sequence = ticket,
		.time_ns = slot->time_ns,
		.address = slot->address,
		.bytes = slot->bytes,
		.extra = slot->what == MEMTRACE_BLOCK_FREE ? 0
							   : slot->extra, /* as after the window */
		.stream = slot->stream,
		.stack = slot->stack,
		.thread = slot->thread,
		.what = (enum memtrace_what)slot->what,
		.space = (enum memtrace_space)slot->space,
		.device = slot->device,
		.flags = slot->flags,
		.status = slot->status,
	};
}

static int next_slot(struct trace *trace, struct event *ev)
{
	const struct ring *ring = &trace->ring;
	while (trace->ring_next < ring->count) {
		const struct memtrace_slot *slot = &ring->slots[trace->ring_next];
		uint64_t ticket = ring->first + trace->ring_next++;
		if (ticket < trace->next || ticket < ring->trusted_from)
			continue;
		if (slot->turn == ticket + 1) {
			take_slot(ev, slot, ticket);
			return 1;
		}
		if (ticket > trace->next)
			pass_over(trace, ticket);
		trace->next = ticket + 1;
		trace->facts.in_flight++;
	}
	return 0;
}

static void take(struct trace *trace, const struct event *ev)
{
	if (ev->sequence > trace->next)
		pass_over(trace, ev->sequence);
	trace->next = ev->sequence + 1;
	trace->facts.events++;
	if (ev->time_ns > trace->facts.duration_ns)
		trace->facts.duration_ns = ev->time_ns;
}

int trace_next(struct trace *trace, struct event *ev)
{
	while (trace->source != SOURCE_NONE) {
		if (!(trace->source == SOURCE_RING ? next_slot(trace, ev) : next_row(trace, ev))) {
			start_next(trace);
		} else if (ev->sequence >= trace->next) {
			take(trace, ev);
			return 1;
		}
	}
	return 0;
}

const struct defs *trace_defs(const struct trace *trace)
{
	return trace->defs;
}

struct defs *trace_own_defs(struct trace *trace)
{
	return trace->defs;
}

const struct trace_facts *trace_facts(const struct trace *trace)
{
	return &trace->facts;
}

double trace_progress(const struct trace *trace)
{
	if (trace->source == SOURCE_NONE)
		return 1;
	return (double)(trace->chunk_next ? trace->chunk_next - 1 : 0) /
	       (double)(trace->chunks.events.count + 1);
}
