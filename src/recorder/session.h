/* One recording of one process: everything that ends with it. Made at the first event; a forked child has none
 * until its own first event, and then one of its own. */
#ifndef MT_RECORDER_SESSION_H
#define MT_RECORDER_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "recorder/config.h"
#include "recorder/dump.h"
#include "recorder/intern.h"
#include "trace/writer.h"

struct session {
	struct config config;
	struct writer writer;
	struct intern intern;
	struct dump dump;
	uint32_t generation; /* differs between sessions that a thread's TLS may have seen */
	uint64_t start_ns;   /* CLOCK_MONOTONIC of time 0 */
	char base[CONFIG_PATH_BYTES + 16]; /* of all output names: the trace is base.mtrace */
};

/* The session of this process, started if there is none and `may_start`; NULL when recording is off, over (then
 * the event is counted as late), not begun, or impossible. */
struct session *session_get(bool may_start);

/* The session if it is recording now, or NULL; starts nothing. */
struct session *session_current(void);

/* Ends the recording and returns what it was, to the one caller that ended it; NULL to all others, in a vfork
 * child, and when there was none. */
struct session *session_end(void);

/* What exit() was called with, -1 when it was not (destructors are not told it). */
int session_exit_status(void);

/* Nanoseconds since the session began. */
uint64_t session_now(const struct session *);

#endif
