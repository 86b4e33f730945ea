/* What each event's memory turned out to be for: final labels, which only a pass over the whole trace
 * can tell. */
#ifndef MT_CLI_LABELS_H
#define MT_CLI_LABELS_H

#include "cli/load.h"

struct labels {
	struct model_observer observer;
	struct loaded loaded; /* what the labels mean stands in its model */
	uint64_t *rows;       /* by sequence: a label, or the event that the memory came with */
	size_t capacity;
	bool is_open, failed; /* failed: memory ran out, later events have none */
};

/* Replays the trace. Without memory, or if it cannot be read, no event has a category. */
void labels_open(struct labels *, const char *path);
void labels_close(struct labels *);
/* NULL: not an event about memory that is counted as allocated, or not known. */
const char *labels_category(const struct labels *, uint64_t sequence);

#endif
