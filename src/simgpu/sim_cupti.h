/*
 * What the files of the stand-in libcupti share: the buffers that the client gives, filled in the
 * order of the driver and handed back by a worker thread.
 */
#ifndef SIM_CUPTI_H
#define SIM_CUPTI_H

#include <cupti.h>
#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

/* The client's callbacks; the worker is started with the first. */
void buffers_set_callbacks(CUpti_BuffersCallbackRequestFunc request,
			   CUpti_BuffersCallbackCompleteFunc complete);
/* Append a record of `bytes`, a multiple of 8.  Any thread; counted as dropped without room. */
void buffers_add(const void *record, size_t bytes);
/* Hand everything to the client and wait until it has it. */
void buffers_flush(void);
size_t buffers_take_dropped(void);
uint64_t buffers_now(void); /* nanoseconds; each answer is later than the one before */

#pragma GCC visibility pop

#endif
