/* Which events of a snapshot can have led to it. Owns a walk back from the end, as memory_viz makes it: segments
 * by address, pages of one stream that touch joined; the first event that does not fit ends it. */
#include <string.h>

#include "model/address_map.h"
#include "report/snapshot.h"

struct piece {
	uint64_t address, bytes, stream;
	uint64_t live_bytes; /* not kept of pages, which come apart */
	bool is_mapped;
};

struct walk {
	struct arena *arena;
	struct piece *pieces; /* by address */
	size_t piece_count, capacity;
	struct address_map blocks; /* live: address → bytes */
};

/* The index of the first that ends above the address. */
static size_t piece_at(const struct walk *walk, uint64_t address)
{
	size_t low = 0, high = walk->piece_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct piece *piece = &walk->pieces[middle];
		if (piece->address + piece->bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool holds(const struct walk *walk, size_t at, uint64_t address, uint64_t bytes)
{
	const struct piece *piece = &walk->pieces[at];
	return at < walk->piece_count && piece->address <= address &&
	       address - piece->address <= piece->bytes && bytes <= piece->bytes - (address - piece->address);
}

static bool insert(struct walk *walk, size_t at, struct piece piece)
{
	if (walk->piece_count == walk->capacity) {
		size_t bytes = walk->capacity * sizeof piece;
		struct piece *pieces = arena_resize(walk->arena, walk->pieces, bytes, 2 * bytes + 64 * sizeof piece);
		if (!pieces)
			return false;
		walk->pieces = pieces;
		walk->capacity = walk->capacity * 2 + 64;
	}
	memmove(walk->pieces + at + 1, walk->pieces + at, (walk->piece_count++ - at) * sizeof piece);
	walk->pieces[at] = piece;
	return true;
}

static void take_out(struct walk *walk, size_t at)
{
	memmove(walk->pieces + at, walk->pieces + at + 1, (--walk->piece_count - at) * sizeof *walk->pieces);
}

static bool add_block(struct walk *walk, uint64_t address, uint64_t bytes)
{
	size_t at = piece_at(walk, address);
	if (!bytes || !holds(walk, at, address, bytes) || address_map_get(&walk->blocks, address))
		return false;
	walk->pieces[at].live_bytes += bytes;
	return address_map_put(&walk->blocks, walk->arena, address, bytes);
}

/* ---------- what was not there before ---------- */

static bool undo_segment_alloc(struct walk *walk, struct snapshot_event *event)
{
	size_t at = piece_at(walk, event->address);
	const struct piece *piece = &walk->pieces[at];
	if (!holds(walk, at, event->address, event->bytes) || piece->bytes != event->bytes ||
	    piece->is_mapped || piece->live_bytes)
		return false;
	event->stream = piece->stream;
	take_out(walk, at);
	return true;
}

static bool undo_map(struct walk *walk, struct snapshot_event *event)
{
	size_t at = piece_at(walk, event->address);
	if (!event->bytes || !holds(walk, at, event->address, event->bytes) || !walk->pieces[at].is_mapped)
		return false;
	struct piece before = walk->pieces[at], after = before;
	event->stream = before.stream;
	after.address = event->address + event->bytes;
	after.bytes = before.address + before.bytes - after.address;
	before.bytes = event->address - before.address;
	take_out(walk, at);
	if (after.bytes && !insert(walk, at, after))
		return false;
	return !before.bytes || insert(walk, at, before);
}

static bool undo_alloc(struct walk *walk, const struct snapshot_event *event)
{
	size_t at = piece_at(walk, event->address);
	if (!event->bytes || address_map_take(&walk->blocks, event->address) != event->bytes ||
	    !holds(walk, at, event->address, event->bytes))
		return false;
	walk->pieces[at].live_bytes -= event->bytes;
	return true;
}

/* ---------- what was there before ---------- */

static bool is_vacant(const struct walk *walk, size_t at, const struct snapshot_event *event)
{
	return event->bytes && (at == walk->piece_count ||
				walk->pieces[at].address >= event->address + event->bytes);
}

static bool undo_segment_free(struct walk *walk, const struct snapshot_event *event)
{
	size_t at = piece_at(walk, event->address);
	struct piece piece = {.address = event->address, .bytes = event->bytes, .stream = event->stream};
	return is_vacant(walk, at, event) && insert(walk, at, piece);
}

static void join(struct walk *walk, size_t at)
{
	struct piece *left = &walk->pieces[at], *right = left + 1;
	if (at + 1 >= walk->piece_count || left->address + left->bytes != right->address ||
	    left->stream != right->stream || !left->is_mapped || !right->is_mapped)
		return;
	left->bytes += right->bytes;
	take_out(walk, at + 1);
}

static bool undo_unmap(struct walk *walk, struct snapshot_event *event)
{
	size_t at = piece_at(walk, event->address);
	if (!is_vacant(walk, at, event))
		return false;
	if (at && walk->pieces[at - 1].address + walk->pieces[at - 1].bytes == event->address)
		event->stream = walk->pieces[at - 1].stream;
	else if (at < walk->piece_count && walk->pieces[at].address == event->address + event->bytes)
		event->stream = walk->pieces[at].stream;
	struct piece piece = {event->address, event->bytes, event->stream, 0, true};
	if (!insert(walk, at, piece))
		return false;
	join(walk, at);
	if (at)
		join(walk, at - 1);
	return true;
}

/* ---------- the walk ---------- */

static bool undo(struct walk *walk, struct snapshot_event *event)
{
	switch (event->action) {
	case SNAPSHOT_ALLOC:
		return undo_alloc(walk, event);
	case SNAPSHOT_FREE:
		return add_block(walk, event->address, event->bytes);
	case SNAPSHOT_SEGMENT_ALLOC:
		return undo_segment_alloc(walk, event);
	case SNAPSHOT_SEGMENT_FREE:
		return undo_segment_free(walk, event);
	case SNAPSHOT_SEGMENT_MAP:
		return undo_map(walk, event);
	default:
		return undo_unmap(walk, event);
	}
}

static bool begin(struct walk *walk, const struct segment_map *map)
{
	for (size_t i = 0; i < map->segment_count; i++) {
		const struct segment *segment = &map->segments[i];
		struct piece piece = {segment->address, segment->bytes, segment->stream, 0, segment->is_expandable};
		if (!insert(walk, i, piece))
			return false;
		for (uint32_t j = 0; j < segment->block_count; j++) {
			const struct segment_block *block = &map->blocks[segment->first_block + j];
			if (!add_block(walk, block->address, block->bytes))
				return false;
		}
	}
	return true;
}

size_t snapshot_keep_sound(const struct segment_map *map, struct arena *arena, struct snapshot_event *events,
			   size_t count)
{
	struct walk walk = {.arena = arena};
	if (!begin(&walk, map))
		return count;
	while (count && undo(&walk, &events[count - 1]))
		count--;
	return count;
}
