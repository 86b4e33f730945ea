/* Expandable segments: a range of addresses for each pool, backed page by page. Owns where pages
 * are mapped and which are given back. Must never move a live piece. */
#include "model/allocator_private.h"

#define UNKNOWN_TOTAL_BYTES (1ull << 37) /* of a device whose size nobody told */

uint64_t expandable_reach(const struct piece *piece)
{
	const struct piece *next = piece->next;
	return piece->bytes + (next && !next->is_mapped ? next->bytes : 0);
}

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* Does a run of free pieces, mapped or not, from here on hold as much? */
static bool has_room_from(const struct piece *piece, uint64_t bytes)
{
	uint64_t room = 0;
	for (; piece && !piece->is_live && room < bytes; piece = piece->next)
		room += piece->bytes;
	return room >= bytes;
}

/* The lowest unmapped place with room; a free piece before it is a part of that room. */
static struct piece *find_place(struct pool *pool, uint64_t bytes)
{
	for (struct segment *range = pool->ranges; range; range = range->next)
		for (struct piece *piece = range->first; piece; piece = piece->next) {
			struct piece *before = piece->previous;
			struct piece *start = before && !before->is_live ? before : piece;
			if (!piece->is_mapped && has_room_from(start, bytes))
				return start;
		}
	return NULL;
}

static void append_range(struct pool *pool, struct segment *range)
{
	struct segment **link = &pool->ranges;
	while (*link)
		link = &(*link)->next;
	*link = range;
}

static struct piece *create_range(struct allocator *allocator, struct pool *pool)
{
	uint64_t page = pool->is_small ? 2 * ALLOCATOR_SMALL_BYTES
				       : allocator->conf.large_segment_bytes;
	uint64_t total = allocator->limits.total_bytes ? allocator->limits.total_bytes
						       : UNKNOWN_TOTAL_BYTES;
	struct segment *range =
		allocator_segment_create(allocator, pool, round_up(total + total / 8, page));
	allocator->failed |= !range;
	if (!range)
		return NULL;
	range->page_bytes = page;
	range->first->is_mapped = false;
	append_range(pool, range);
	return range->first;
}

/* Backs the front of an unmapped piece, so that it holds `bytes` or all that it can; it joins what is free
 * beside it and is put into the list. */
static bool map_pages(struct allocator *allocator, struct pool *pool, struct piece *piece,
		      uint64_t bytes)
{
	uint64_t wanted = bytes < piece->bytes ? bytes : piece->bytes;
	uint64_t mapped = round_up(wanted, piece->segment->page_bytes);
	if (mapped > piece->bytes)
		mapped = piece->bytes;
	if (!allocator_has_room(allocator, mapped))
		return false;
	if (mapped < piece->bytes && !piece_split(allocator->arena, piece, mapped)) {
		allocator->failed = true;
		return false;
	}
	piece->is_mapped = true;
	allocator_merge(allocator, pool, piece);
	allocator_put_free(allocator, pool, piece);
	allocator_count_taken(allocator, mapped);
	return true;
}

struct piece *expandable_grow(struct allocator *allocator, struct pool *pool, uint64_t bytes)
{
	struct piece *piece = find_place(pool, bytes);
	if (!piece)
		piece = create_range(allocator, pool);
	if (!piece || (!piece->is_mapped && !map_pages(allocator, pool, piece, bytes)))
		return NULL;
	while (piece->bytes < bytes) {
		struct piece *next = piece->next; /* unmapped: it swallows what is before it */
		if (!next || !map_pages(allocator, pool, next, bytes - piece->bytes))
			return NULL;
		piece = next;
	}
	free_list_remove(&pool->free, piece);
	return piece;
}

static void drop_range(struct allocator *allocator, struct pool *pool, struct segment *range)
{
	struct segment **link = &pool->ranges;
	while (*link != range)
		link = &(*link)->next;
	*link = range->next;
	allocator->failed |= !address_space_give(&allocator->space, allocator->arena,
						 range->address, range->bytes);
	piece_drop(allocator->arena, range->first);
	arena_free(allocator->arena, range, sizeof *range);
}

/* Cuts the piece so that it covers [from, to) of its range; what is cut off stays free. */
static bool trim(struct allocator *allocator, struct pool *pool, struct piece **piece,
		 uint64_t from, uint64_t to)
{
	uint64_t start = (*piece)->address;
	if (to < start + (*piece)->bytes) {
		struct piece *rest = piece_split(allocator->arena, *piece, to - start);
		if (!rest)
			return false;
		allocator_put_free(allocator, pool, rest);
	}
	if (from > start) {
		struct piece *whole = piece_split(allocator->arena, *piece, from - start);
		if (!whole)
			return false;
		allocator_put_free(allocator, pool, *piece);
		*piece = whole;
	}
	return true;
}

void expandable_unmap(struct allocator *allocator, struct pool *pool, struct piece *piece)
{
	struct segment *range = piece->segment;
	uint64_t page = range->page_bytes, start = piece->address - range->address;
	uint64_t from = round_up(start, page), to = (start + piece->bytes) / page * page;
	if (from >= to)
		return;
	free_list_remove(&pool->free, piece);
	if (!trim(allocator, pool, &piece, range->address + from, range->address + to)) {
		allocator->failed = true;
		return;
	}
	piece->is_mapped = false;
	allocator_merge(allocator, pool, piece);
	allocator->counters.reserved_bytes -= to - from;
	if (!piece_is_split(piece))
		drop_range(allocator, pool, range);
}
