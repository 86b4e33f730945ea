/* One intercepted call, as its note sees it. */
#ifndef MT_HOOKS_CALL_H
#define MT_HOOKS_CALL_H

#include <memtrace/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum call_when { AFTER, AROUND, ALWAYS };
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

/* Opens and closes a traced call on this thread; close runs also when an exception passes. */
void call_open(struct call *, const void *frame);
void call_close(struct call *);

/* Memory was asked for: records alloc, or oom or failed as the status says. `bytes` as asked of this API;
 * nothing is recorded for a success with address 0 (a size of zero). */
void call_note_alloc(const struct call *, enum memtrace_space, uint8_t device, uint64_t address, uint64_t bytes,
		     uint64_t stream);
/* The same with everything set by the caller. `what` is what a success means. */
struct record;
void call_note(const struct call *, struct record *success);
/* Memory is given back: before the call the event, after a failed one its undoing. */
void call_note_free(struct call *, enum memtrace_what, enum memtrace_space, uint64_t address, uint64_t bytes,
		    uint64_t stream);

/* The device that the calling thread works on, or MEMTRACE_DEVICE_UNKNOWN. */
uint8_t call_device(void);
/* The same for the runtime API, where a thread that never said anything works on device 0. */
uint8_t call_runtime_device(void);

#endif
