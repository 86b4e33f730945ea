/* A hash table of addresses. Owns its growth: what was taken out is left behind then. */
#include "model/address_map.h"

#define LEAST_CAPACITY 1024

static size_t slot_of(const struct address_map *map, uint64_t address)
{
	size_t at = (size_t)(address * 0x9E3779B97F4A7C15ull >> 20) & (map->capacity - 1);
	while (map->keys[at] && map->keys[at] != address)
		at = (at + 1) & (map->capacity - 1);
	return at;
}

uint64_t address_map_get(const struct address_map *map, uint64_t address)
{
	return map->capacity ? map->values[slot_of(map, address)] : 0;
}

uint64_t address_map_take(struct address_map *map, uint64_t address)
{
	if (!map->capacity)
		return 0;
	uint64_t *value = &map->values[slot_of(map, address)], taken = *value;
	*value = 0;
	map->count -= taken != 0;
	return taken;
}

static void set(struct address_map *map, uint64_t address, uint64_t value)
{
	size_t at = slot_of(map, address);
	map->used_count += !map->keys[at];
	map->count += !map->values[at];
	map->keys[at] = address;
	map->values[at] = value;
}

static bool grow(struct address_map *map, struct arena *arena)
{
	struct address_map old = *map, grown = {.capacity = LEAST_CAPACITY};
	while (grown.capacity < old.count * 4)
		grown.capacity *= 2;
	grown.keys = arena_alloc(arena, grown.capacity * sizeof *grown.keys);
	grown.values = arena_alloc(arena, grown.capacity * sizeof *grown.values);
	if (!grown.keys || !grown.values)
		return false;
	for (size_t i = 0; i < old.capacity; i++)
		if (old.values[i])
			set(&grown, old.keys[i], old.values[i]);
	arena_free(arena, old.keys, old.capacity * sizeof *old.keys);
	arena_free(arena, old.values, old.capacity * sizeof *old.values);
	*map = grown;
	return true;
}

bool address_map_put(struct address_map *map, struct arena *arena, uint64_t address, uint64_t value)
{
	if (map->used_count * 2 >= map->capacity && !grow(map, arena))
		return false;
	set(map, address, value);
	return true;
}
