/* One decoded event: what the ring, the windows and the chunks all hold, in the form that every consumer
 * takes. Field meanings: <memtrace/trace.h>. */
#ifndef MT_TRACE_EVENT_H
#define MT_TRACE_EVENT_H

#include <memtrace/trace.h>
#include <stdbool.h>
#include <stdint.h>

struct event {
	uint64_t sequence; /* the ticket */
	uint64_t time_ns;  /* since the start of the trace */
	uint64_t address;
	uint64_t bytes;
	uint64_t extra;
	uint64_t stream;
	uint32_t stack;
	uint32_t thread;
	enum memtrace_what what;
	enum memtrace_space space;
	uint8_t device;
	uint8_t flags;
	int32_t status;
};

/* How large an element of a tensor is. */
enum event_element {
	ELEMENT_UNKNOWN,
	ELEMENT_1_BYTE,
	ELEMENT_2_BYTES,
	ELEMENT_4_BYTES,
	ELEMENT_8_BYTES,
	ELEMENT_16_BYTES,
	ELEMENT_COUNT
};

/* Of the tensor that a block_alloc is for. */
static inline enum event_element event_element(const struct event *event)
{
	unsigned element = (event->flags & MEMTRACE_ELEMENT) >> MEMTRACE_ELEMENT_SHIFT;
	bool is_known = event->what == MEMTRACE_BLOCK_ALLOC && element < ELEMENT_COUNT;
	return is_known ? (enum event_element)element : ELEMENT_UNKNOWN;
}

static inline unsigned element_bytes(unsigned element) /* 0 unknown */
{
	return element ? 1u << (element - 1) : 0;
}

/* The name in `memtrace dump --json`; never NULL ("unknown" for a value outside the enum). */
const char *event_what_name(unsigned what);
const char *event_space_name(unsigned space);

#endif
