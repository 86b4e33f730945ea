/* Owns the growth of the lists of definitions: blocks of entries, and a list of blocks that alone
 * is moved. Must never move an entry. */
#include "trace/defs_table.h"

#include <errno.h>

static int grow_list(struct table *table, struct arena *arena)
{
	uint32_t capacity = table->block_capacity ? table->block_capacity * 2 : 4;
	char **blocks = arena_resize(arena, table->blocks, table->block_capacity * sizeof *blocks,
				     capacity * sizeof *blocks);
	if (!blocks)
		return -ENOMEM;
	table->blocks = blocks;
	table->block_capacity = capacity;
	return 0;
}

int table_reserve(struct table *table, struct arena *arena)
{
	if (table->count < table->block_count * TABLE_BLOCK_ENTRIES)
		return 0;
	if (table->count > UINT32_MAX - TABLE_BLOCK_ENTRIES)
		return -ENOMEM;
	if (table->block_count == table->block_capacity && grow_list(table, arena))
		return -ENOMEM;
	char *block = arena_alloc(arena, (size_t)TABLE_BLOCK_ENTRIES * table->entry_bytes);
	if (!block)
		return -ENOMEM;
	table->blocks[table->block_count++] = block;
	return 0;
}

void *table_push(struct table *table)
{
	table->count++;
	return table_at(table, table->count);
}
