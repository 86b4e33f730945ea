/* The index of live blocks: open addressing with the addresses in the table itself, at most half full,
 * so that a look-up costs one cache line where a chain costs one for each block on it. Owns the places,
 * not the blocks. Must never leave a gap between a block and where its search begins: a removal moves
 * up what stands behind it. */
#include "model/blocks.h"

#include <errno.h>
#include <stdbool.h>

#define BITS_FIRST 10

static size_t mask_of(const struct blocks *blocks)
{
	return ((size_t)1 << blocks->bits) - 1;
}

/* The size of the table goes into the hash: blocks that are read from a table in its order and added to
 * a smaller one, as when a model is saved and loaded, would all crowd at its beginning. */
static size_t home_of(const struct blocks *blocks, uint64_t address)
{
	uint64_t hash = (address + blocks->bits) * 0x9E3779B97F4A7C15ull;
	hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93ull;
	return hash >> (64 - blocks->bits);
}

/* Of the address, or the empty one where its search ends. */
static size_t place_of(const struct blocks *blocks, uint64_t address)
{
	size_t place = home_of(blocks, address), mask = mask_of(blocks);
	while (blocks->places[place].block && blocks->places[place].address != address)
		place = (place + 1) & mask;
	return place;
}

struct block *blocks_find(const struct blocks *blocks, uint64_t address)
{
	return blocks->count ? blocks->places[place_of(blocks, address)].block : NULL;
}

static int grow(struct blocks *blocks, struct arena *arena)
{
	struct blocks larger = {.count = blocks->count, .bits = blocks->bits ? blocks->bits + 1 : BITS_FIRST};
	size_t had = blocks->bits ? mask_of(blocks) + 1 : 0;
	larger.places = arena_alloc(arena, sizeof *larger.places << larger.bits);
	if (!larger.places)
		return -ENOMEM;
	for (size_t i = 0; i < had; i++)
		if (blocks->places[i].block)
			larger.places[place_of(&larger, blocks->places[i].address)] = blocks->places[i];
	arena_free(arena, blocks->places, had * sizeof *blocks->places);
	*blocks = larger;
	return 0;
}

int blocks_add(struct blocks *blocks, struct arena *arena, uint64_t address, struct block *block)
{
	bool is_full = !blocks->bits || blocks->count > mask_of(blocks) / 2;
	if (is_full && grow(blocks, arena))
		return -ENOMEM;
	blocks->places[place_of(blocks, address)] = (struct blocks_place){address, block};
	blocks->count++;
	return 0;
}

void blocks_remove(struct blocks *blocks, uint64_t address)
{
	size_t mask = mask_of(blocks), gap = place_of(blocks, address), place = gap;
	for (;;) {
		place = (place + 1) & mask;
		struct blocks_place *behind = &blocks->places[place];
		if (!behind->block)
			break;
		size_t way = (place - home_of(blocks, behind->address)) & mask;
		if (way < ((place - gap) & mask))
			continue; /* its search begins behind the gap */
		blocks->places[gap] = *behind;
		gap = place;
	}
	blocks->places[gap] = (struct blocks_place){0};
	blocks->count--;
}

struct block *blocks_next(const struct blocks *blocks, size_t *place)
{
	size_t places = blocks->count ? mask_of(blocks) + 1 : 0;
	while (*place < places) {
		struct block *block = blocks->places[(*place)++].block;
		if (block)
			return block;
	}
	return NULL;
}
