/*
 * A sorted set of free address ranges.  Owns the array and nothing else; knows neither blocks nor
 * devices.  Lowest address first, so that freed addresses come back soon, as a driver's do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* Index of the first range that ends at or behind `address`. */
static size_t lower_bound(const struct range_set *set, uintptr_t address)
{
	size_t low = 0, high = set->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (set->ranges[middle].end < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int make_room(struct range_set *set)
{
	if (set->count < set->room)
		return 0;
	size_t room = set->room ? 2 * set->room : 64;
	struct range *ranges = realloc(set->ranges, room * sizeof(*ranges));
	if (ranges == NULL)
		return -ENOMEM;
	set->ranges = ranges;
	set->room = room;
	return 0;
}

static int insert_at(struct range_set *set, size_t index, struct range range)
{
	int error = make_room(set);
	if (error != 0)
		return error;
	struct range *at = set->ranges + index;
	memmove(at + 1, at, (set->count - index) * sizeof(*at));
	*at = range;
	set->count++;
	return 0;
}

static void remove_at(struct range_set *set, size_t index)
{
	struct range *at = set->ranges + index;

	set->count--;
	memmove(at, at + 1, (set->count - index) * sizeof(*at));
}

int range_set_add(struct range_set *set, uintptr_t start, uintptr_t end)
{
	size_t index = lower_bound(set, start);
	struct range *at = set->ranges + index;
	bool joins_left = index < set->count && at->end == start;
	size_t right = index + joins_left;
	bool joins_right = right < set->count && set->ranges[right].start == end;

	if (joins_left && joins_right) {
		at->end = set->ranges[right].end;
		remove_at(set, right);
	} else if (joins_left) {
		at->end = end;
	} else if (joins_right) {
		set->ranges[right].start = start;
	} else {
		return insert_at(set, index, (struct range){start, end});
	}
	return 0;
}

/* Take [start, end) out of the range at `index`, which holds it. */
static int cut(struct range_set *set, size_t index, uintptr_t start, uintptr_t end)
{
	struct range *at = set->ranges + index;

	if (at->start == start && at->end == end) {
		remove_at(set, index);
	} else if (at->start == start) {
		at->start = end;
	} else if (at->end == end) {
		at->end = start;
	} else {
		struct range behind = {end, at->end};
		if (insert_at(set, index + 1, behind) != 0)
			return -ENOMEM;
		set->ranges[index].end = start;
	}
	return 0;
}

uintptr_t range_set_take(struct range_set *set, size_t bytes, size_t alignment)
{
	for (size_t index = 0; index < set->count; index++) {
		struct range range = set->ranges[index];
		uintptr_t start = sim_round_up(range.start, alignment);
		if (start >= range.end || range.end - start < bytes)
			continue;
		return cut(set, index, start, start + bytes) == 0 ? start : 0;
	}
	return 0;
}
