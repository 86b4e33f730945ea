/* The events of a snapshot that is made while the program runs, when those that led to it are not at hand: what is
 * live, in the order in which it came. Owns that order. Must never call qsort (glibc's may call malloc). */
#include <errno.h>

#include "report/snapshot.h"

static void sift_down(const struct segment_block **heap, size_t root, size_t count)
{
	for (size_t child; (child = 2 * root + 1) < count; root = child) {
		if (child + 1 < count && heap[child + 1]->born > heap[child]->born)
			child++;
		if (heap[root]->born >= heap[child]->born)
			return;
		const struct segment_block *swap = heap[root];
		heap[root] = heap[child];
		heap[child] = swap;
	}
}

static void sort_by_birth(const struct segment_block **blocks, size_t count)
{
	for (size_t root = count / 2; root-- > 0;)
		sift_down(blocks, root, count);
	for (size_t end = count; end-- > 1;) {
		const struct segment_block *swap = blocks[0];
		blocks[0] = blocks[end];
		blocks[end] = swap;
		sift_down(blocks, 0, end);
	}
}

/* Those in segments: memory_viz takes no others. */
static size_t collect(const struct segment_map *map, const struct segment_block **blocks)
{
	size_t count = 0;
	for (size_t i = 0; i < map->segment_count; i++)
		for (uint32_t j = 0; j < map->segments[i].block_count; j++)
			blocks[count++] = &map->blocks[map->segments[i].first_block + j];
	sort_by_birth(blocks, count);
	return count;
}

static struct snapshot_event describe(const struct model *model, const struct segment_block *block)
{
	return (struct snapshot_event){
		.address = block->address,
		.bytes = block->bytes,
		.stream = block->stream,
		.category = model_category_name(model_label_category(model, block->label)),
		.stack = block->stack,
		.action = SNAPSHOT_ALLOC,
	};
}

static int write_sorted(const struct snapshot *of, struct arena *arena, const struct segment_map *map,
			pickle_take *take, void *context)
{
	struct snapshot whole = *of;
	const struct segment_block **blocks = arena_alloc(arena, map->block_count * sizeof *blocks);
	size_t count = blocks ? collect(map, blocks) : 0;
	size_t first = count > SNAPSHOT_EVENTS_MAX ? count - SNAPSHOT_EVENTS_MAX : 0;
	struct snapshot_event *events = arena_alloc(arena, (count - first) * sizeof *events);
	if (!blocks || !events)
		return -ENOMEM;
	for (size_t i = first; i < count; i++)
		events[i - first] = describe(of->model, blocks[i]);
	whole.events = events;
	whole.event_count = count - first;
	return snapshot_write(&whole, take, context);
}

int snapshot_write_live(const struct snapshot *of, pickle_take *take, void *context)
{
	const struct segment_map *map = model_segments_at_oom(of->model, of->index);
	struct arena *arena = map ? arena_create() : NULL;
	int error = map ? -ENOMEM : -ENODATA;
	if (arena) {
		error = write_sorted(of, arena, map, take, context);
		arena_release(arena);
	}
	return error;
}
