/* Which stream captures are open, and whether the calling thread began one: what it allocates then belongs to the
 * graph, and a failure is no retry. A capture may be ended by another thread, and ends by some failures too. */
#ifndef MT_HOOKS_CAPTURE_H
#define MT_HOOKS_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/thread.h"

/* Of what the calling thread began, is anything still open? Forgets in thread_self what is not. */
bool capture_look(void);

/* The stream whose capture takes what the calling thread puts on `stream` now, 0: none does. A stream that was drawn
 * into a capture by an event is not known as such: on a thread that has one open it is taken for captured. */
uint64_t capture_of(const void *stream);

static inline bool capture_is_open(void)
{
	return __builtin_expect(thread_self.capturing, 0) && capture_look();
}

#endif
