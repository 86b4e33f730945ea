/* A list that grows and whose entries never move, so that pointers to them may be given out. Ids
 * start at 1. */
#ifndef MT_TRACE_DEFS_TABLE_H
#define MT_TRACE_DEFS_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define TABLE_BLOCK_ENTRIES 256u

struct table {
	char **blocks;
	uint32_t block_count, block_capacity;
	uint32_t count;
	uint32_t entry_bytes;
};

/* Makes room for one more; the next table_push() cannot fail then. 0 or -ENOMEM. */
int table_reserve(struct table *, struct arena *);
void *table_push(struct table *); /* the new entry, zeroed */

static inline void *table_at(const struct table *table, uint32_t id)
{
	if (id == 0 || id > table->count)
		return 0;
	uint32_t index = id - 1;
	return table->blocks[index / TABLE_BLOCK_ENTRIES] +
	       (size_t)(index % TABLE_BLOCK_ENTRIES) * table->entry_bytes;
}

#endif
