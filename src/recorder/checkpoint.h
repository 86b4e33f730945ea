/* The state of the model goes into a bounded trace from time to time: events before it can then be given up. */
#ifndef MT_RECORDER_CHECKPOINT_H
#define MT_RECORDER_CHECKPOINT_H

#include <stdint.h>

struct session;

/* Before the event `sequence`, which neither the model nor the trace has yet. Dump thread, or whoever drains. What
 * goes wrong is the writer's error, or costs this one checkpoint. */
void checkpoint_write(struct session *, uint64_t sequence);

#endif
