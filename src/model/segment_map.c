/* The map of PyTorch's segments at one moment. Owns how it is made: the live blocks sorted by address,
 * then one walk over the driver's memory. Must never call qsort (glibc's may call malloc), nor make a map
 * of more than BLOCKS_MAX blocks: this runs in the traced program. */
#include <string.h>

#include "model/model_private.h"

#define BLOCKS_MAX (1u << 20)
#define SMALL_SEGMENT_BYTES (2u << 20)

struct maker {
	const struct device *device;
	struct segment_map *map;
	size_t segment_capacity, next_block;
	struct segment *open; /* a run of pages that may go on */
	bool failed;
};

/* ---------- blocks, by address ---------- */

static void merge_runs(const struct segment_block *from, struct segment_block *to, size_t count, size_t width)
{
	for (size_t start = 0; start < count; start += 2 * width) {
		size_t middle = start + width < count ? start + width : count;
		size_t end = middle + width < count ? middle + width : count;
		for (size_t a = start, b = middle, at = start; at < end; at++)
			to[at] = a < middle && (b == end || from[a].address <= from[b].address) ? from[a++] :
												  from[b++];
	}
}

static bool sort_blocks(struct segment_map *map)
{
	struct segment_block *from = map->blocks;
	struct segment_block *to = arena_alloc(map->arena, map->block_count * sizeof *to), *swap;
	if (!to)
		return false;
	for (size_t width = 1; width < map->block_count; width *= 2) {
		merge_runs(from, to, map->block_count, width);
		swap = from;
		from = to;
		to = swap;
	}
	map->blocks = from;
	arena_free(map->arena, to, map->block_count * sizeof *to);
	return true;
}

struct segment_block segment_block_of(const struct block *block)
{
	return (struct segment_block){
		.address = block->address,
		.bytes = block->bytes,
		.asked_bytes = block->asked_bytes,
		.born = block->facts.born,
		.stream = block->stream,
		.stack = block->stack,
		.thread = block->thread,
		.label = block->facts.label,
	};
}

static bool collect_blocks(const struct model *m, const struct device *d, const struct let_go *gone, struct segment_map *map)
{
	size_t count = gone->count;
	const struct block *block;
	for (size_t place = 0; (block = blocks_next(&m->blocks, &place));)
		count += block->slot == d->slot;
	map->blocks = count <= BLOCKS_MAX ? arena_alloc(map->arena, count * sizeof *map->blocks) : NULL;
	if (!map->blocks)
		return false;
	for (size_t place = 0; (block = blocks_next(&m->blocks, &place));)
		if (block->slot == d->slot)
			map->blocks[map->block_count++] = segment_block_of(block);
	for (uint32_t i = 0; i < gone->count; i++)
		map->blocks[map->block_count++] = gone->blocks[i];
	return sort_blocks(map);
}

/* ---------- segments ---------- */

static struct segment *add_segment(struct maker *maker)
{
	struct segment_map *map = maker->map;
	if (map->segment_count == maker->segment_capacity) {
		size_t bytes = maker->segment_capacity * sizeof *map->segments;
		struct segment *segments = arena_resize(map->arena, map->segments, bytes, 2 * bytes);
		if (!segments) {
			maker->failed = true;
			return NULL;
		}
		map->segments = segments;
		maker->segment_capacity *= 2;
	}
	return &map->segments[map->segment_count++];
}

static void begin_segment(struct maker *maker, const struct span *span, const struct memory *memory)
{
	struct segment *segment = maker->failed ? NULL : add_segment(maker);
	maker->open = NULL;
	if (!segment)
		return;
	*segment = (struct segment){
		.address = span->start,
		.bytes = span->end - span->start,
		.stream = memory->stream,
		.stack = memory->stack,
		.is_expandable = span->kind == SPAN_MAPPING,
		.is_small = span->end - span->start <= SMALL_SEGMENT_BYTES,
		.is_captured = memory->is_captured,
	};
	maker->open = segment;
}

static void walk_region(struct maker *maker, const struct region *region)
{
	const struct memory *memory = &region->memory;
	bool is_segment = memory->role == ROLE_CACHE && memory->slot == maker->device->slot;
	maker->open = NULL;
	if (!is_segment)
		return;
	begin_segment(maker, &region->span, memory);
	if (maker->open && !memory->block_count)
		maker->open->releasable_bytes = region->memory.bytes;
	maker->open = NULL;
}

static void walk_mapping(struct maker *maker, const struct mapping *mapping)
{
	uint64_t bytes = mapping->span.end - mapping->span.start;
	bool is_segment = mapping->is_counted && mapping->handle->memory.slot == maker->device->slot;
	if (!is_segment) {
		maker->open = NULL;
		return;
	}
	if (maker->open && mapping->is_joined)
		maker->open->bytes += bytes;
	else
		begin_segment(maker, &mapping->span, &mapping->handle->memory);
	if (!maker->open)
		return;
	maker->open->releasable_bytes += mapping->block_count ? 0 : bytes;
	if (mapping->handle->memory.stream)
		maker->open->stream = mapping->handle->memory.stream;
}

static void walk(const struct model *m, struct maker *maker)
{
	const struct ranges *index = &m->regions.device;
	struct span *span = ranges_at(index, 0);
	for (span = span ? span : ranges_after(index, 0); span; span = ranges_after(index, span->start)) {
		if (span->kind == SPAN_REGION)
			walk_region(maker, (const struct region *)span);
		else
			walk_mapping(maker, (const struct mapping *)span);
	}
}

/* ---------- both ---------- */

static void take_blocks(struct segment_map *map, struct segment *segment, size_t *next)
{
	uint64_t address;
	for (; *next < map->block_count && map->blocks[*next].address < segment->address; ++*next)
		map->unplaced_bytes += map->blocks[*next].bytes;
	segment->first_block = (uint32_t)*next;
	for (; *next < map->block_count && map->blocks[*next].address < segment->address + segment->bytes; ++*next) {
		segment->block_count++;
		segment->live_bytes += map->blocks[*next].bytes;
	}
	for (uint32_t i = 0; i <= segment->block_count; i++) {
		uint64_t bytes = segment_hole(map, segment, i, &address);
		if (bytes > segment->largest_hole_bytes)
			segment->largest_hole_bytes = bytes;
	}
}

static void join_blocks(struct segment_map *map)
{
	size_t next = 0;
	for (size_t i = 0; i < map->segment_count; i++)
		take_blocks(map, &map->segments[i], &next);
	for (; next < map->block_count; next++)
		map->unplaced_bytes += map->blocks[next].bytes;
}

struct segment_map *segment_map_create(const struct model *m, const struct device *d)
{
	struct arena *arena = d->has_blocks ? arena_create() : NULL;
	struct segment_map *map = arena ? arena_alloc(arena, sizeof *map) : NULL;
	struct maker maker = {.device = d, .map = map, .segment_capacity = 64};
	static const struct let_go nothing;
	if (map) {
		map->arena = arena;
		map->segments = arena_alloc(arena, maker.segment_capacity * sizeof *map->segments);
	}
	maker.failed = !map || !map->segments || !collect_blocks(m, d, &nothing, map);
	if (!maker.failed)
		walk(m, &maker);
	if (maker.failed) {
		if (arena)
			arena_release(arena);
		return NULL;
	}
	join_blocks(map);
	return map;
}

struct segment_map *segment_map_of_blocks(const struct model *m, const struct device *d)
{
	struct arena *arena = arena_create();
	struct segment_map *map = arena ? arena_alloc(arena, sizeof *map) : NULL;
	if (map) {
		map->arena = arena;
		if (collect_blocks(m, d, &d->let_go, map))
			return map;
	}
	if (arena)
		arena_release(arena);
	return NULL;
}

void segment_map_release(struct segment_map *map)
{
	if (map)
		arena_release(map->arena);
}

const struct segment_map *model_segments_now(const struct model *m, unsigned ordinal)
{
	struct device *d = find_device(m, ordinal);
	if (!d || m->is_frozen)
		return d ? d->frozen_map : NULL;
	segment_map_release(d->frozen_map);
	d->frozen_map = segment_map_create(m, d);
	return d->frozen_map;
}

const struct segment_map *model_segments_at_oom(const struct model *m, size_t index)
{
	return index < m->oom_count ? m->ooms[index]->map : NULL;
}
