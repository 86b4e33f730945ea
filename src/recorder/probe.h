/* What the recorder itself must know of the work that a thread does: optimizers that allocate nothing
 * are only seen when they launch kernels. After a backward the probe is armed: launches walk their
 * Python stack until a module is seen, or very many were nothing. Disarmed it is one load and a
 * branch. And of copies from the host the first into each block is told. */
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

extern uint32_t probe_backwards __attribute__((visibility("hidden"))); /* that armed it */
#define PROBE_COPIES 256
extern uint64_t probe_copied[PROBE_COPIES] __attribute__((visibility("hidden"))); /* blocks, by address */

/* For each thread until it is seen in a module again: others may train at the same time. */
static inline bool probe_is_armed(void)
{
	return __atomic_load_n(&probe_backwards, __ATOMIC_RELAXED) != thread_self.probe_seen;
}

static inline uint64_t *probe_copy_slot(uint64_t address)
{
	return &probe_copied[(address >> 9 ^ address >> 17) % PROBE_COPIES];
}

void probe_arm(void);    /* all threads */
void probe_disarm(void); /* the calling one */

/* For every block taken back, with the bits of its stack: outside of a step it ends the last one. */
static inline void probe_note_free(uint8_t bits)
{
	if (probe_is_armed() && !(bits & PROBE_OPTIMIZER) && !thread_self.is_engine)
		thread_self.probe_step = 0; /* the next one may be the same again */
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
		probe_disarm();
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
