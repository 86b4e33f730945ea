/* One intercepted call, as its note sees it. */
#ifndef MT_HOOKS_CALL_H
#define MT_HOOKS_CALL_H

#include <memtrace/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum call_when { AFTER, AROUND, BOTH, ALWAYS, ALONE, PROBE, PASS };
enum call_phase { CALL_BEFORE, CALL_AFTER };

struct call {
	const void *frame;     /* of the wrapper: its caller's registers stand there */
	uint64_t ticket;       /* of what was noted before the call, UINT64_MAX nothing */
	uint32_t depth;        /* of traced calls around this one */
	int status;            /* the API's result; 0 before the call */
	int saved_errno;       /* as the real function left it */
	enum call_phase phase;
	bool is_outermost;
};

/* Opens and closes a traced call on this thread, which goes on to `real`; close runs also when an exception
 * passes. A call inside another is a part of it, if CUDA makes it; if not (a signal handler came in between), it
 * is the program's own and counts as outermost. */
void call_open(struct call *, const void *frame, const void *real);
void call_close(struct call *);

/* Memory was asked for: records alloc, or oom or failed as the status says. `bytes` as asked of this API;
 * nothing is recorded for a success with address 0 (a size of zero). */
void call_note_alloc(const struct call *, enum memtrace_space, uint8_t device, uint64_t address, uint64_t bytes,
		     uint64_t stream);
/* Memory of another process or API was given a place here; `as` is the space that `address` is one of. */
void call_note_external(const struct call *, enum memtrace_space as, uint64_t address, uint64_t bytes);
/* The same with everything set by the caller. `what` is what a success means. */
struct record;
void call_note(const struct call *, struct record *success);
/* Memory is given back: before the call the event, after a failed one its undoing. */
void call_note_free(struct call *, enum memtrace_what, enum memtrace_space, uint64_t address, uint64_t bytes,
		    uint64_t stream);

/* Memory of another process is no longer shown at its place here: as call_note_free, whoever tells allocations. */
void call_note_close(struct call *, uint64_t address);

/* An event that obtains and gives back nothing; only of a call that succeeded. */
void call_tell(const struct call *, enum memtrace_what, enum memtrace_space, uint64_t address, uint64_t bytes,
	       uint64_t extra);
/* What a traced call inside this one has told, at its own depth, this one need not tell again. */
void call_told_inside(const struct call *);
bool call_was_told_inside(const struct call *);

/* The context that the calling thread works in, 0 for a primary one and when it is not known. */
uint64_t call_context(void);
/* The device of a context, or of a part of a device, that was seen to begin; else MEMTRACE_DEVICE_UNKNOWN. */
uint8_t context_device(const void *context);
/* The device that the calling thread works on, or MEMTRACE_DEVICE_UNKNOWN. */
uint8_t call_device(void);
/* The same for the runtime API, where a thread that never said anything works on device 0. */
uint8_t call_runtime_device(void);

#endif
