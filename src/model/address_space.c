/* Device addresses for the allocator's model. Owns the holes that given-back segments leave. Must
 * never matter to what is reserved, but through the order of addresses. */
#include "model/address_space.h"

#include <string.h>

#define UNIT_BYTES     (2ull << 20)
#define ASCEND_FROM    (1ull << 44)
#define DESCEND_FROM   (1ull << 46)
#define FIRST_CAPACITY 64

void address_space_init(struct address_space *space, bool descends)
{
	*space = (struct address_space){.next = descends ? DESCEND_FROM : ASCEND_FROM,
					.descends = descends};
}

static uint64_t whole_units(uint64_t bytes)
{
	return (bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
}

static void close_up(struct address_space *space, size_t at)
{
	struct address_hole *hole = &space->holes[at];
	memmove(hole, hole + 1, (--space->hole_count - at) * sizeof *hole);
}

uint64_t address_space_take(struct address_space *space, uint64_t bytes)
{
	bytes = whole_units(bytes);
	if (space->descends)
		return space->next -= bytes;
	for (size_t i = 0; i < space->hole_count; i++) {
		struct address_hole *hole = &space->holes[i];
		uint64_t address = hole->address;
		if (hole->bytes < bytes)
			continue;
		hole->address += bytes;
		hole->bytes -= bytes;
		if (!hole->bytes)
			close_up(space, i);
		return address;
	}
	space->next += bytes;
	return space->next - bytes;
}

static bool insert(struct address_space *space, struct arena *arena, size_t at,
		   struct address_hole hole)
{
	size_t capacity = space->hole_capacity;
	if (space->hole_count == capacity) {
		size_t wanted = capacity ? capacity * 2 : FIRST_CAPACITY;
		struct address_hole *grown = arena_resize(arena, space->holes,
							  capacity * sizeof hole,
							  wanted * sizeof hole);
		if (!grown)
			return false;
		space->holes = grown;
		space->hole_capacity = wanted;
	}
	struct address_hole *place = &space->holes[at];
	memmove(place + 1, place, (space->hole_count++ - at) * sizeof hole);
	*place = hole;
	return true;
}

bool address_space_give(struct address_space *space, struct arena *arena, uint64_t address,
			uint64_t bytes)
{
	size_t at = 0;
	bytes = whole_units(bytes);
	if (space->descends)
		return true;
	while (at < space->hole_count && space->holes[at].address < address)
		at++;
	struct address_hole *before = at ? &space->holes[at - 1] : NULL;
	struct address_hole *after = at < space->hole_count ? &space->holes[at] : NULL;
	bool joins_before = before && before->address + before->bytes == address;
	bool joins_after = after && address + bytes == after->address;
	if (!joins_before && !joins_after)
		return insert(space, arena, at, (struct address_hole){address, bytes});
	if (!joins_before) {
		after->address = address;
		after->bytes += bytes;
		return true;
	}
	before->bytes += bytes;
	if (joins_after) {
		before->bytes += after->bytes;
		close_up(space, at);
	}
	return true;
}
