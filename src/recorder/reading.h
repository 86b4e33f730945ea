/* When the dump thread asks NVML what is in use: at the start of use, after a new peak, after contexts, code and
 * graphs, when memory ran out, and at the end. A reading becomes an event of its own, at a moment at which no traced
 * call was open, so that it agrees exactly with the events before it. */
#ifndef MT_RECORDER_READING_H
#define MT_RECORDER_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"

struct session;

#define READING_DEVICES_MAX 16

struct readings {
	uint64_t next_ns, urgent_ns; /* not before; if it is urgent */
	uint64_t captured_ns;   /* when the last stream capture began */
	uint64_t peaks[READING_DEVICES_MAX]; /* sequences of those that were read after */
	uint32_t used;          /* devices on which something was allocated, a bit each */
	uint32_t captures;      /* that are open */
	bool is_off;            /* there is no NVML, or no device of it is known */
	bool is_open, is_wanted, is_urgent, was_at_exit;
};

void readings_note(struct readings *, const struct event *);

/* For each event, in order, on the dump thread. */
static inline void readings_take_event(struct readings *readings, const struct event *ev)
{
	if (ev->what != MEMTRACE_BLOCK_ALLOC && ev->what != MEMTRACE_BLOCK_FREE)
		readings_note(readings, ev);
	else if (ev->flags & MEMTRACE_AT_EXIT && !readings->was_at_exit)
		readings->was_at_exit = readings->is_wanted = readings->is_urgent = true;
}

/* True until what is in use has been read once more on that device, if it can be at all. */
bool readings_will_tell(const struct readings *, unsigned ordinal);

/* Reads what is due. On the dump thread, outside of draining. `is_last`: now or never. */
void readings_run(struct session *, bool is_last);

#endif
