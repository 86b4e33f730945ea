/* The calling thread's own Python frames, without the GIL and without Python's API: plain loads
 * along the frame list, which only this thread changes. Offsets come from one table a version; an
 * unknown version, or one that fails the check, has no Python frames and one line says so. */
#ifndef MT_RECORDER_PYTHON_H
#define MT_RECORDER_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/id_table.h"

#define PYTHON_FRAMES_MAX 128 /* 3 KiB on the stack of the hook */

struct python_frame {
	uintptr_t code; /* the code object */
	int32_t lasti;  /* bytes from the start of its instructions */
	uint32_t flags;
	uint64_t guard; /* tells a code object from another that was given the same address later */
};

/* ENTRY: the outermost frame of one evaluation loop of the interpreter, which is one C frame. */
#define PYTHON_GENERATOR 1u
#define PYTHON_ENTRY     2u

struct python_source { /* what a frame says to people; texts are cut at their size */
	char file[1024];
	char function[512];
	int32_t line;
	bool is_hidden; /* not a frame that `traceback` shows */
};

/* Looks for an interpreter among the loaded objects. For a thread of the program, off the hot path:
 * it takes the lock of dl_iterate_phdr. Where one is opened later, the walk finds it: the thread
 * that opens a library calls python_expect() before, and every thread's next walk after that looks
 * again. */
void python_find(void);
void python_expect(void);
/* "3.11.7", or NULL when no interpreter was found. */
const char *python_version(void);

/* What a walk found beside the frames. loop_mark: an address inside the C frame of the innermost
 * evaluation loop; 0 unknown. */
struct python_end {
	bool truncated;     /* there are more frames */
	bool is_finalizing; /* and then none were looked for */
	uintptr_t loop_mark;
	uint64_t key; /* of all frames, each with python_frame_mix from 0 on */
};

static inline uint64_t python_frame_mix(uint64_t hash, const struct python_frame *frame)
{
	return id_mix(hash, frame->code ^ (uint64_t)(uint32_t)frame->lasti << 40 ^ frame->guard);
}

/* What there is beside the frames, and the key: all that a known stack needs. */
void python_key(unsigned capacity, struct python_end *);
/* The same with the frames, innermost first. 0 without an interpreter or frames. */
unsigned python_walk(struct python_frame *frames, unsigned capacity, struct python_end *end);
/* The address of the first argument of a function `f(*args)` that the calling thread is in, `depth`
 * frames out from the innermost of those that python_walk tells; 0: it is not such a function. */
uintptr_t python_first_argument(unsigned depth);
/* Reads names and line of a frame that the calling thread is in. False: not a code object, nothing
 * read. */
bool python_describe(const struct python_frame *, struct python_source *);
/* The interpreter is being taken down: the program's own code has ended. */
bool python_is_finalizing(void);

#endif
