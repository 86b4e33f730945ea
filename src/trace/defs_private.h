/* What defs.c and defs_native.c share. */
#ifndef MT_TRACE_DEFS_PRIVATE_H
#define MT_TRACE_DEFS_PRIVATE_H

#include <stdbool.h>

#include "base/arena.h"
#include "trace/defs.h"
#include "trace/defs_table.h"

#define INFO_KEYS MEMTRACE_INFO_COUNT

struct defs {
	struct arena *arena;
	char *pack; /* for strings and lists of frames, which are never freed singly */
	size_t pack_bytes;
	struct table strings; /* of const char * */
	struct table modules, python_frames, native_frames, stacks, threads;
	struct table devices;          /* index is the ordinal; those not defined are all zero */
	struct table infos[INFO_KEYS]; /* of const char * */
};

/* Zeroed memory that stays until the end, 8-byte aligned; NULL when memory is out. */
void *defs_pack(struct defs *, size_t bytes);

/* 0 is unknown, and may be. */
static inline bool defs_has(const struct table *table, uint32_t id)
{
	return id <= table->count;
}

/* Of the records of a kind: 0, -EINVAL or -ENOMEM. */
int defs_add_native_frame(struct defs *, const void *record, size_t bytes);
int defs_add_symbol(struct defs *, const void *record, size_t bytes);

#endif
