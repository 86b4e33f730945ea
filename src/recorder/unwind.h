/* The calling thread's native frames: return addresses, innermost first. A rule for each address is worked out
 * once and kept in a table shared by all threads; a known address costs a look-up and two loads: no lock, no
 * allocation, no call into the loader. glibc 2.35 on; before that there are no native frames. */
#ifndef MT_RECORDER_UNWIND_H
#define MT_RECORDER_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#define UNWIND_FRAMES_MAX 64

enum unwind_end {
	UNWIND_OUTERMOST,   /* the thread's first frame, or code without unwind information */
	UNWIND_INTERPRETER, /* the next frame is Python's evaluation loop: what follows is Python's to tell */
	UNWIND_TRUNCATED    /* more than `capacity` frames, or unwind information that is not understood */
};

struct unwind_result {
	unsigned count;
	enum unwind_end end;
	uint64_t key; /* of all addresses and the objects they lie in. 0 without frames */
};

/* Walks outwards from the caller of the function whose frame (__builtin_frame_address(0)) is given; that function
 * must still be running on this thread. `interpreter` is an address on this thread's stack inside the frame of
 * Python's evaluation loop, where the walk ends; 0: none. */
struct unwind_result unwind_walk(const void *frame, uintptr_t *frames, unsigned capacity, uintptr_t interpreter);

/* 0, or -ENOMEM / -ENOSYS: there are then no native frames. Call once before the first walk. */
int unwind_init(void);

/* Modules were closed: rules of addresses that may hold other code now are not used again. */
void unwind_forget(void);

/* The code of Python's evaluation loop, for interpreters that leave no mark on the stack: the walk ends there. */
void unwind_set_interpreter(uintptr_t function);

#endif
