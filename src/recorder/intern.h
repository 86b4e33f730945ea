/* Stacks, frames, names, modules and threads, each defined once in the trace, before the event that uses it. A
 * known stack costs a walk, a hash and a look-up without a lock; a new one takes a leaf lock for microseconds. */
#ifndef MT_RECORDER_INTERN_H
#define MT_RECORDER_INTERN_H

#include <memtrace/trace.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "recorder/id_table.h"

#define INTERN_RECORD_BYTES 2048

struct session;

struct intern {
	pthread_mutex_t lock; /* leaf: nothing is called under it that takes another lock of the program */
	struct id_table stacks, frames, strings, modules;
	uint32_t last_string, last_module, last_python_frame, last_native_frame, last_stack, last_thread;
	uint8_t *frame_bits;   /* by Python frame: PROBE_… of recorder/probe.h */
	uint32_t *frame_steps; /* by Python frame: whose step of an optimizer it is, 0 nobody's */
	uint32_t *stack_steps; /* by stack: which step of an optimizer it is in, by its caller and its class */
	uint8_t *stack_optimizers; /* by stack: how far out its outermost Optimizer.step is, plus one; 0 none, or the
				    * stack is cut, and there may be one further out */
	uint64_t devices_known[2 * 64]; /* key of what was last defined of a device */
	uint16_t info_counts[MEMTRACE_INFO_COUNT];
	_Alignas(8) char record[INTERN_RECORD_BYTES];
};

/* The calling thread's stack at a moment. */
struct interned {
	uint32_t stack; /* its id; 0 when it cannot be had, which is counted */
	uint8_t bits;   /* PROBE_… of all its Python frames */
	bool is_finalizing; /* the Python interpreter is being taken down */
};

int intern_init(struct intern *); /* 0 or -ENOMEM */

/* Native frames out from the hooked call up to Python's evaluation loop (if `with_native`), and Python frames. The
 * owner is the first module on the native part that is not CUDA's own, without a native part the one that made the
 * call. `frame` is the hooked function's; NULL: Python frames only. */
struct interned intern_stack(struct session *, const void *frame, bool with_native);

/* The optimizer whose step the calling thread is in, by its address, the outermost where one steps another; 0 none
 * or not known. `stack` is the thread's at this moment. */
uint64_t intern_optimizer(const struct session *, uint32_t stack);

/* Defines the calling thread. */
uint32_t intern_thread(struct session *);

void intern_device(struct session *, unsigned ordinal, const char *name, uint64_t total_bytes);
/* A text that an event refers to; its id, 0 when there is no room. */
uint32_t intern_text(struct session *, const char *text);
void intern_info(struct session *, enum memtrace_info, const char *text);
/* For the dump thread, which must not wait for a hook: false when the lock is taken. */
bool intern_try_info(struct session *, enum memtrace_info, const char *text);
/* Also false when the trace has no room for it. */
bool intern_try_symbol(struct session *, uint32_t native_frame, const char *symbol, uint64_t offset);

#endif
