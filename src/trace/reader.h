/* Reads a trace file: events in ticket order, definitions, and what is known about its end. Works
 * on a finished file, on one whose process was killed, and on one still being written (then as of
 * now). Trusts nothing in the file: memory is bounded by the file's size and by MEMTRACE_RAW_MAX.
 */
#ifndef MT_TRACE_READER_H
#define MT_TRACE_READER_H

#include "trace/defs.h"
#include "trace/event.h"

struct trace;

struct trace_facts {
	const char *path;
	uint32_t pid;
	uint64_t start_realtime_ns;
	uint64_t events;    /* that trace_next() gives in all; complete after the last one */
	uint64_t given_up;  /* of a bounded trace, before those: in the state alone */
	uint64_t bound_bytes; /* of the file, 0 none */
	uint64_t lost;      /* no ticket was taken, or the file could not take it */
	uint64_t in_flight; /* tickets never published */
	uint64_t late;
	uint64_t disagreements;
	uint64_t blind_lookups, blind_deepbind, blind_dlmopen;
	uint64_t stacks_lost;
	uint64_t duration_ns; /* end of the program if known, else the last event */
	uint64_t frozen;      /* sequence of the first event at exit + 1, 0 none */
	uint64_t file_bytes;  /* allocated on disk */
	enum memtrace_ended ended;
	bool still_running; /* pid, start time and boot id still live */
	bool may_run_elsewhere; /* its machine or container is not in sight from here */
	int32_t status;     /* -1 unknown */
	int32_t write_errno;
	bool torn; /* a chunk or window did not check out: what follows it was given up */
	char torn_reason[320]; /* one line, "" if whole */
	bool moved; /* no damage: the program is running, and put other events there while the file was read */
	bool repaired;         /* made by trace_repair() of another */
	bool cut;              /* and of that, not all could be read */
};

/* Opens. NULL on failure, and *error (>= 256 bytes) has one clear line without a newline that names
 * the file, the reason and what to do: not a regular file, not a trace, an unknown version,
 * unreadable. */
struct trace *trace_open(const char *path, char *error, size_t error_bytes);
void trace_close(struct trace *);

/* 1 and *ev, or 0 at the end. Never an error: what cannot be read is counted in the facts. */
int trace_next(struct trace *, struct event *ev);

/* A bounded trace whose oldest events were given up has states of the model, each before one event. Reading
 * begins after the oldest. How many there are; 0: every event is there. */
size_t trace_state_count(const struct trace *);
/* Before the first trace_next(): begins after that one instead, and with its first piece. */
void trace_state_begin(struct trace *, size_t index);
/* The next piece, valid until the next call of any function. NULL: there is no more, or it is damaged. */
const unsigned char *trace_state_piece(struct trace *, size_t *bytes);

const struct defs *trace_defs(const struct trace *);
/* The same, for adding what can be found elsewhere (names of native frames); no records. */
struct defs *trace_own_defs(struct trace *);
const struct trace_facts *trace_facts(const struct trace *);
double trace_progress(const struct trace *); /* 0 … 1, for a progress bar */

#endif
