/* The one way from the hooks into the recorder.
 *
 * Locks. On the way of a known stack there is none: no lock, no allocation, no system call but the clock. Else, in this
 * order, and never one of them across a call into CUDA, the loader, Python or the program:
 *   1. the anchor's STARTING state (session.c): held by the first event; others, and an exit, wait for at most a second;
 *   2. intern.lock (intern.c): a new stack, name, module or thread is defined; trylock with patience, a leaf. While the
 *      definitions window is full its holder waits for the dump thread, at most 200 ms during which that takes nothing;
 *   3. dump.draining (dump.c): whoever takes events from the ring; never waited for, only tried. Its holder takes
 *      intern.lock by trylock alone.
 * Locks of libc that another thread may have held at a fork (on_exit's, the time zone's) are not taken in a child. */
#ifndef MT_RECORDER_RECORD_H
#define MT_RECORDER_RECORD_H

#include <memtrace/trace.h>
#include <stdbool.h>
#include <stdint.h>

struct record {
	enum memtrace_what what;
	enum memtrace_space space;
	uint8_t device; /* ordinal, MEMTRACE_DEVICE_UNKNOWN or MEMTRACE_DEVICE_HOST */
	uint8_t flags;
	int32_t status;
	uint64_t address;
	uint64_t bytes;
	uint64_t extra;
	uint64_t stream;
	const void *frame; /* of the hooked function (__builtin_frame_address(0)): where the native part begins; NULL: there is
			    * none, the stack is Python's alone */
	uint64_t at_ns;    /* CLOCK_MONOTONIC of something that is told later, which has no stack; 0: it is now */
	bool is_of_other;  /* with at_ns: by which thread is not known */
};

/* Records one event of the calling thread: stack, thread, time, ticket. Starts the session when this is the
 * first event of the process. Any thread, any time, also with the GIL or an allocator's lock held; never
 * blocks but for a full ring (at most 200 ms an incident). Keeps errno. Returns the ticket, or UINT64_MAX when
 * nothing was recorded (off, closed, or lost: then it is counted). */
uint64_t record_event(const struct record *);

struct session;
/* An event of the dump thread's own: no thread, no stack, and no waiting for room. It is marked as of no moment
 * (status 1) if a traced call has begun since there were `begun` of them. 0 or -EAGAIN. */
int record_reading(struct session *, struct record *, uint64_t begun);

/* Tells what is known of a device or of the process: a definition, once per distinct content. */
void record_device(unsigned ordinal, const char *name, uint64_t total_bytes);
void record_device_uuid(unsigned ordinal, const void *uuid); /* 16 bytes */

/* The id of a text among the trace's definitions, for the `extra` of an event; 0: nothing is being recorded yet, or
 * there is no room. */
uint32_t record_text(const char *text);

/* Something that a reader of reports should know, in parts that end with NULL: a notice in the trace, ALOUD on stderr
 * too. Before the session it is kept for its start (four of them); of AT_ONCE there may be none, it is only said. */
enum record_volume { RECORD_QUIET, RECORD_ALOUD, RECORD_AT_ONCE };
void record_notice(enum record_volume, const char *first, ...) __attribute__((sentinel));
/* A fact about the recording that is known before it begins. `text` must stay. */
void record_fact(enum memtrace_info, const char *text);
/* Events that are known to be missing: counted as lost. */
void record_lost(uint64_t count);

/* Something may have escaped: counted in the trace's live page and reported as a blind spot. */
enum record_blind { RECORD_BLIND_LOOKUP, RECORD_BLIND_DEEPBIND, RECORD_BLIND_DLMOPEN };
/* `what` was looked up or loaded: for who wants to know more. NULL: the program itself. */
void record_blind(enum record_blind, const char *what);

/* Brings what was counted before the session into it; called once, by its start. */
void record_early_blinds(struct session *);

/* A library was opened or closed: the dump thread looks for Python again. No lock, no allocation. */
void record_loader_changed(void);

/* What the calling thread's Python stack says. Records nothing; all 0 without a session. */
struct record_look {
	uint8_t bits;  /* PROBE_… of recorder/probe.h */
	uint32_t step; /* of an optimizer, by its caller and its class */
	uint64_t optimizer; /* whose it is, 0 not known */
};
struct record_look record_look(void);

/* True once a block of PyTorch's allocator was recorded. */
bool record_has_blocks(void);

/* True once an event of the program's own allocations was recorded in this process. */
bool record_has_started(void);

/* Closes the trace and prints the summary; called on every way out of the process. In a vfork child and in a
 * process without a session it does nothing; beside another thread's it waits for that, two seconds at most. Later
 * events are only counted. */
void record_close(enum memtrace_ended how, int status);

#endif
