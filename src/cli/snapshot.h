/* An OOM of a trace as a file for PyTorch's memory_viz, with the events that led to it. */
#ifndef MT_CLI_SNAPSHOT_H
#define MT_CLI_SNAPSHOT_H

#include "cli/load.h"

/* STATUS_YES, or STATUS_UNREADABLE: then the reason was said. A file of that name is overwritten. */
int snapshot_save(const struct loaded *, size_t index, const char *file);

#endif
