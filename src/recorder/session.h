/* One recording of one process: everything that ends with it. Made at the first event; a forked child has none
 * until its own first event, and then one of its own. */
#ifndef MT_RECORDER_SESSION_H
#define MT_RECORDER_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "recorder/calls.h"
#include "recorder/config.h"
#include "recorder/dump.h"
#include "recorder/fast_clock.h"
#include "recorder/intern.h"
#include "recorder/thread.h"
#include "trace/writer.h"

struct session {
	struct config config;
	struct writer writer;
	struct intern intern;
	struct dump dump;
	struct fast_clock clock;
	uint32_t generation; /* differs between sessions that a thread's TLS may have seen */
	uint64_t start_ns;   /* CLOCK_MONOTONIC of time 0 */
	char base[CONFIG_PATH_BYTES + 16]; /* of all output names: the trace is base.mtrace */
};

/* The session of this process, started if there is none and `may_start`; NULL when recording is off, over (then
 * the event is counted as late), not begun, or impossible. */
struct session *session_get(bool may_start);

enum anchor_state { ANCHOR_NONE = 0, ANCHOR_STARTING, ANCHOR_READY, ANCHOR_OVER, ANCHOR_OFF };

/* The word that says whether there is a session: zero in a forked child (session.c). */
struct anchor {
	uint32_t state;
	pid_t pid;
	struct session *session; /* stays readable after the end */
	struct calls calls;      /* the outermost ones */
};
extern struct anchor *session_anchor __attribute__((visibility("hidden"))); /* NULL before the first event */

/* The session if it is recording now, or NULL; starts nothing. */
static inline struct session *session_current(void)
{
	struct anchor *anchor = __atomic_load_n(&session_anchor, __ATOMIC_ACQUIRE);
	return anchor && __atomic_load_n(&anchor->state, __ATOMIC_ACQUIRE) == ANCHOR_READY ? anchor->session : NULL;
}

/* An outermost traced call begins; NULL: it is not counted, else session_call_ends() has to follow. */
static inline struct call_count *session_call_begins(void)
{
	struct anchor *anchor = __atomic_load_n(&session_anchor, __ATOMIC_ACQUIRE);
	if (!anchor)
		return NULL;
	bool is_known = __atomic_load_n(&anchor->state, __ATOMIC_ACQUIRE) == ANCHOR_READY &&
			thread_self.generation == anchor->session->generation;
	return calls_begin(&anchor->calls, is_known ? thread_self.id : 0);
}

static inline void session_call_ends(struct call_count *count)
{
	calls_end(&session_anchor->calls, count);
}

/* Ends the recording and returns what it was, to the one caller that ended it; NULL to all others, in a vfork
 * child, and when there was none. */
struct session *session_end(void);

/* What exit() was called with, -1 when it was not (destructors are not told it). */
int session_exit_status(void);

/* Nanoseconds since the session began. */
static inline uint64_t session_now(const struct session *session)
{
	return monotonic_ns() - session->start_ns;
}

/* The same for an event: at half the price, and within a microsecond of it. */
static inline uint64_t session_moment(const struct session *session)
{
	return fast_clock_ns(&session->clock) - session->start_ns;
}

#endif
