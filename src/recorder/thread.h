/* What the recorder keeps of a thread: at most 256 bytes of initial-exec TLS in all, so that the library can
 * also be opened by dlopen (facts: 2 KiB fail there). Zero at the start of a thread. */
#ifndef MT_RECORDER_THREAD_H
#define MT_RECORDER_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#define THREAD_CONTEXTS_MAX 8

struct thread_self {
	uint32_t depth;       /* traced calls that are open on this thread: only the outermost is noted */
	const void *outermost; /* its frame, and where it returns to: tells whether it is still open */
	const void *outermost_return;
	const void *outermost_real; /* the function that it forwards to */
	const void *told_inside; /* the outermost call inside which another has told what both mean */
	const void *busy_frame; /* where it became so: a call at or above has been left by longjmp */
	uint32_t busy;        /* inside the recorder: whatever happens now is ours, or a signal handler's */
	uint32_t id;          /* thread definition, valid if generation is the session's */
	uint32_t generation;
	uint32_t stack_id;    /* the stack that was looked up last, and its key */
	uint32_t capturing;   /* this thread may have stream captures open: hooks/capture.h */
	uint32_t capture_owner; /* its number there, 0 none yet */
	uint64_t stack_key;
	struct call_count *counted; /* where the outermost call is: recorder/calls.h */
	uint64_t asked_bytes; /* of PyTorch's allocator, until a block event takes it: hooks/torch.c */
	const void *asked_frame; /* of the computation that told, and where it returned to */
	uint64_t asked_return;
	uint64_t optimizer;   /* whose step the trace was told of last, 0 of none yet */
	uint32_t probe_seen;  /* the backward after which this thread was seen in a module: recorder/probe.h */
	uint32_t probe_step;  /* the step that was told last, 0 none */
	uint32_t probe_met;   /* the backward after which it was seen in a module first */
	uint16_t probe_looks; /* launches looked at since the step or the module */
	uint16_t probe_pauses; /* how often it was seen in a module after the backward above, less one */
	uint8_t probe_is_paused; /* until it is seen outside of modules */
	uint8_t asked_item;   /* bytes of an element of what asked_bytes are of, 0 unknown */
	uint8_t stack_bits;   /* of the stack above */
	uint8_t is_engine;    /* one of autograd's, by its name; known once there is an id */
	uint8_t device_known; /* the ordinal below was set by a call we saw */
	uint8_t device;
	uint8_t context_count;
	uint8_t contexts[THREAD_CONTEXTS_MAX]; /* devices below the current one, of cuCtxPushCurrent */
	uint8_t own_context; /* place of the current context in the hooks' table, plus one; 0: a primary one, or unknown */
	uint8_t own_contexts[THREAD_CONTEXTS_MAX]; /* of those below */
};

extern __thread struct thread_self thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

#endif
