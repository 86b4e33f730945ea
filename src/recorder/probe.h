/* What the recorder itself must know of the work that a thread does: optimizers that allocate nothing
 * are only seen when they launch kernels. After a backward the probe is armed: launches walk their
 * Python stack, but not while a module runs, and until very many were nothing. Disarmed it is one
 * load and a branch. And of copies from the host the first into each block is told. */
#ifndef MT_RECORDER_PROBE_H
#define MT_RECORDER_PROBE_H

#include <memtrace/trace.h>
#include <stdbool.h>
#include <stdint.h>

#include "recorder/session.h"
#include "recorder/thread.h"

/* Of a stack. */
#define PROBE_BACKWARD	1
#define PROBE_OPTIMIZER 2
#define PROBE_FORWARD	4
#define PROBE_TORCH	8 /* of a frame only: the file is PyTorch's */

#define PROBE_LAUNCHES 16384 /* outside of steps, that a thread looks at after a backward */

#define PROBE_PAUSES 1024 /* how often it goes on after a module without another backward */

extern uint32_t probe_backwards __attribute__((visibility("hidden"))); /* that armed it */
#define PROBE_COPIES 256
extern uint64_t probe_copied[PROBE_COPIES] __attribute__((visibility("hidden"))); /* blocks, by address */

/* For each thread on its own: others may train at the same time. */
static inline bool probe_is_armed(void)
{
	return __atomic_load_n(&probe_backwards, __ATOMIC_RELAXED) != thread_self.probe_seen;
}

static inline uint64_t *probe_copy_slot(uint64_t address)
{
	return &probe_copied[(address >> 9 ^ address >> 17) % PROBE_COPIES];
}

void probe_arm(void); /* all threads */
/* The calling one: it is in a module, or was and is outside. */
bool probe_pause(void); /* true: for the first time since a backward */
void probe_resume(void);

static inline void probe_note_outside(uint8_t bits)
{
	if (__builtin_expect(thread_self.probe_is_paused, 0) && !(bits & PROBE_FORWARD))
		probe_resume();
}

/* For every block taken back, with the bits of its stack: outside of a step it ends the last one. */
static inline void probe_note_free(uint8_t bits)
{
	if (probe_is_armed() && !(bits & PROBE_OPTIMIZER) && !thread_self.is_engine)
		thread_self.probe_step = 0; /* the next one may be the same again */
	probe_note_outside(bits);
}

/* For every block handed out: its stack arms or disarms. */
static inline void probe_note_block(uint8_t bits, uint64_t address)
{
	uint64_t *copied = probe_copy_slot(address);
	if (__atomic_load_n(copied, __ATOMIC_RELAXED) == address)
		__atomic_store_n(copied, 0, __ATOMIC_RELAXED);
	if (bits & PROBE_BACKWARD || thread_self.is_engine)
		probe_arm();
	else if (bits & PROBE_FORWARD && probe_is_armed())
		probe_pause();
	else
		probe_note_outside(bits);
}

/* The bits of a Python frame. */
uint8_t probe_frame_bits(const char *file, const char *function);

/* A kernel was launched while the probe was armed. Keeps errno. */
void probe_note_launch(void);
/* Bytes were copied to device memory; `source` 0: from the host, else from where it is not known. */
void probe_note_copy(uint64_t address, uint64_t bytes, uint64_t source);
/* Bytes of device memory were copied to the host; recorded where that is asked for. */
void probe_note_readback(uint64_t address, uint64_t bytes);

#endif
