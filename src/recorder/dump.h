/* The dump thread: takes events from the ring in ticket order, appends them to the trace, feeds the model, writes
 * reports. It never calls CUDA and never waits for a lock that a hook may hold. Where it cannot be started, and at
 * the end, the calling thread does the same work (one at a time: whoever takes `draining`). */
#ifndef MT_RECORDER_DUMP_H
#define MT_RECORDER_DUMP_H

#include <memtrace/trace.h>
#include <stdbool.h>
#include <stdint.h>

#include "recorder/mark_frames.h"
#include "recorder/reading.h"

struct session;
struct defs;
struct model;

struct dump {
	struct defs *defs;
	struct model *model;
	uint64_t cursor;       /* next ticket to take */
	uint64_t ooms_reported;
	uint64_t ooms_met, oom_met_ns; /* the OOM that waits to be reported, counted from 1, and since when */
	uint32_t half_order[2]; /* of the definitions window: what is read of which half */
	uint64_t half_read[2];
	uint64_t hole_at;      /* the cursor, plus one, that stopped at an unpublished ticket */
	uint64_t hole_ns;      /* slept since then */
	uint64_t hole_head;    /* the head at that moment */
	uint64_t abandoned;    /* unpublished tickets below are skipped at once */
	uint64_t stalled_at;   /* the cursor, plus one, at which a waiting thread's patience ended */
	struct mark_frames marks;
	uint32_t frames_named; /* native frames up to this id were looked up */
	struct readings readings;
	bool framework_told, python_told;
	bool is_threaded;
	uint32_t stop;      /* set by the ending thread */
	uint32_t stopped;   /* set by the dump thread, last */
	uint32_t sleeping;
	uint32_t wakes;     /* futex word */
	uint32_t draining;  /* taken by whoever drains */
};

int dump_init(struct session *); /* 0 or -ENOMEM */
void dump_start(struct session *);
void dump_wake(struct session *);

#define DUMP_PATIENCE_NS UINT64_C(200000000)

/* Waiting for room that the dump thread makes: at most 200 ms during which it takes nothing. They are of sleeps, not of
 * the clock: where the process was stopped, or the machine stood still, the dump thread had no time either. */
struct patience {
	struct session *session;
	uint64_t waited_ns;
	uint64_t step_ns;
	uint64_t consumed;
};
/* Gives the dump thread a moment, or drains in its place. False: it has been too long. */
bool dump_is_waited_for(struct patience *);

/* For whoever drains: takes in what was defined since, and makes room for more. */
void dump_read_definitions(struct session *);

/* Ends the recording: drains, closes the trace, writes the summary. The session is over already for hooks. */
void dump_finish(struct session *, enum memtrace_ended how, int status);

#endif
