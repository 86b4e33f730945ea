/* Copies what the traced process stores into the front: counters, ring, events window. Owns: that
 * the copies are consistent although the process may be storing while they are made.
 *
 * Events move from the ring to the window and from there to a chunk, and are never taken away
 * before they are in the next place. So the copies are made in that direction, ring, window,
 * chunks: an event that moves in the meantime is seen twice, which its sequence tells, and never
 * missed. A copy is good if, after it, what names its content is still the same: of the window
 * first_sequence (it changes with every restart), of a ticket's slot the head (the slot is not used
 * again before ticket + ring_slots is taken). */
#include <errno.h>
#include <stdlib.h>

#include "trace/reader_private.h"

static void read_live(struct trace *trace)
{
	file_read(trace, &trace->live, sizeof trace->live, trace->header.live_offset);
}

/* ---------- ring ---------- */

static void choose_tickets(struct ring *ring, const struct memtrace_live *live, uint64_t slots, bool is_gone)
{
	uint64_t head = live->head < SEQUENCE_MAX ? live->head : SEQUENCE_MAX;
	ring->first = live->consumed < head && !is_gone ? live->consumed : head;
	if (head - ring->first > slots)
		ring->first = head - slots;
	ring->count = live->ended ? 0 : head - ring->first; /* after the end: late (reader.c) */
}

static int copy_ring(struct trace *trace)
{
	struct ring *ring = &trace->ring;
	const uint64_t slots = trace->header.ring_slots, slot_bytes = sizeof *ring->slots;
	read_live(trace);
	choose_tickets(ring, &trace->live, slots, trace->front_is_gone);
	ring->slots = malloc(ring->count * slot_bytes + 1);
	if (!ring->slots)
		return -ENOMEM;
	uint64_t index = ring->first & (slots - 1); /* the ring begins anew at its end */
	uint64_t until_end = ring->count < slots - index ? ring->count : slots - index;
	file_read(trace, ring->slots, until_end * slot_bytes,
		  trace->header.ring_offset + index * slot_bytes);
	file_read(trace, ring->slots + until_end, (ring->count - until_end) * slot_bytes,
		  trace->header.ring_offset);
	read_live(trace);
	ring->trusted_from = trace->live.head > slots ? trace->live.head - slots : 0;
	return 0;
}

/* ---------- events window ---------- */

static void read_window_head(struct trace *trace, struct memtrace_events_window *head)
{
	file_read(trace, head, sizeof *head, trace->header.events_offset);
}

static bool has_room(const struct memtrace_header *header,
		     const struct memtrace_events_window *head)
{
	return head->rows_bytes <= header->times_offset - sizeof *head &&
	       head->times_bytes <= header->events_bytes - header->times_offset;
}

/* True when the copy is of one and the same window. */
static bool copy_window_once(struct trace *trace)
{
	struct window *window = &trace->window;
	struct memtrace_events_window *head = &window->head, after;
	const uint64_t offset = trace->header.events_offset;
	read_window_head(trace, head);
	if (has_room(&trace->header, head)) {
		file_read(trace, window->rows, head->rows_bytes, offset + sizeof *head);
		file_read(trace, window->times, head->times_bytes,
			  offset + trace->header.times_offset);
	}
	read_window_head(trace, &after);
	return after.first_sequence == head->first_sequence && after.count >= head->count;
}

static int copy_window(struct trace *trace)
{
	struct window *window = &trace->window;
	const struct memtrace_header *header = &trace->header;
	window->rows = malloc(header->times_offset);
	window->times = malloc(header->events_bytes - header->times_offset + 1);
	if (!window->rows || !window->times)
		return -ENOMEM;
	bool is_good = false;
	for (int i = 0; i < COPY_ATTEMPTS && !is_good; i++)
		is_good = copy_window_once(trace);
	if (is_good && has_room(header, &window->head))
		return 0;
	reader_is_torn(trace, is_good ? "the events window is damaged (its lengths)"
				      : "the events window changed faster than it could be read");
	window->head.count = 0;
	return 0;
}

int front_copy(struct trace *trace)
{
	char last;
	int error = copy_ring(trace);
	if (!error)
		error = copy_window(trace);
	if (!file_read(trace, &last, 1, trace->header.chunks_offset - 1))
		reader_is_torn(trace, "the file is cut off before its first chunk");
	return error;
}
