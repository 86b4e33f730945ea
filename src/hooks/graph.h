/* Nodes of graphs that are made by other calls than those that add nodes. */
#ifndef MT_HOOKS_GRAPH_H
#define MT_HOOKS_GRAPH_H

#include "hooks/call.h"

/* `graph`: the graph, or the stream whose capture it comes from. Nothing of a call that failed. */
void graph_note_alloc(struct call *, uint64_t graph, uint8_t device, uint64_t address, uint64_t bytes);
void graph_note_free(struct call *, uint64_t graph, uint64_t address);

#endif
