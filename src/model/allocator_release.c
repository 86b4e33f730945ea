/* What the caching allocator gives back to the driver: in a flush, by garbage collection, and
 * oversize blocks. Owns the choice. Must never give back a segment that holds a live block. */
#include "model/allocator_private.h"

static void release_segment(struct allocator *allocator, struct pool *pool, struct piece *piece)
{
	struct segment *segment = piece->segment;
	free_list_remove(&pool->free, piece);
	allocator->counters.reserved_bytes -= segment->bytes;
	allocator->failed |= !address_space_give(&allocator->space, allocator->arena,
						 segment->address, segment->bytes);
	piece_drop(allocator->arena, piece);
	arena_free(allocator->arena, segment, sizeof *segment);
}

static bool is_whole_segment(const struct piece *piece)
{
	return !piece->segment->page_bytes && !piece_is_split(piece);
}

/* Neither a flush nor garbage collection takes from such a pool. */
static bool is_private(const struct allocator *allocator, const struct pool *pool)
{
	return allocator->is_private && allocator->is_private[pool->class_index];
}

/* ---------- a flush ---------- */

static void flush_segments(struct allocator *allocator, struct pool *pool)
{
	struct piece *next, *piece = free_list_find(&pool->free, 0);
	for (; piece; piece = next) {
		next = free_list_after(&pool->free, piece);
		if (is_whole_segment(piece))
			release_segment(allocator, pool, piece);
	}
}

/* Unmapping changes the list: the pieces are noted first. */
static void flush_pages(struct allocator *allocator, struct pool *pool)
{
	size_t count = 0, bytes = pool->free.count * sizeof(struct piece *);
	struct piece **pieces = pool->ranges ? arena_alloc(allocator->arena, bytes) : NULL;
	if (!pieces) {
		allocator->failed |= pool->ranges != NULL;
		return;
	}
	struct piece *piece = free_list_find(&pool->free, 0);
	for (; piece; piece = free_list_after(&pool->free, piece))
		if (piece->segment->page_bytes)
			pieces[count++] = piece;
	for (size_t i = 0; i < count; i++)
		expandable_unmap(allocator, pool, pieces[i]);
	arena_free(allocator->arena, pieces, bytes);
}

void release_flush(struct allocator *allocator, const bool *classes)
{
	for (unsigned i = 0; i < allocator->pool_count; i++) {
		struct pool *pool = &allocator->pools[i];
		if (classes ? !classes[pool->class_index] : is_private(allocator, pool))
			continue;
		flush_segments(allocator, pool);
		flush_pages(allocator, pool);
	}
}

/* ---------- max_split_size ---------- */

static bool can_release_oversize(const struct piece *piece, uint64_t bytes)
{
	return piece && piece->bytes >= bytes && is_whole_segment(piece);
}

bool release_oversize(struct allocator *allocator, struct pool *pool, uint64_t bytes)
{
	uint64_t limit = allocator->conf.max_split_bytes, released = 0;
	if (limit == ALLOCATOR_NO_LIMIT)
		return false;
	uint64_t wanted = bytes < limit ? limit : bytes;
	struct piece *piece = free_list_find(&pool->free, wanted);
	if (can_release_oversize(piece, wanted)) {
		release_segment(allocator, pool, piece);
		return true;
	}
	while (released < wanted &&
	       can_release_oversize(piece = free_list_last(&pool->free), limit)) {
		released += piece->bytes;
		release_segment(allocator, pool, piece);
	}
	return released >= wanted;
}

/* ---------- garbage collection ---------- */

bool release_has_fraction(const struct allocator *allocator)
{
	return allocator->limits.total_bytes && allocator_conf_has_fraction(&allocator->conf);
}

static bool is_collectable(const struct allocator *allocator, const struct pool *pool)
{
	return !pool->is_small && !is_private(allocator, pool);
}

struct collection {
	uint64_t wanted_bytes, released_bytes;
	double age_sum; /* in searches of the piece's pool */
	uint64_t count;
};

static double age_of(const struct pool *pool, const struct piece *piece)
{
	return (double)(pool->searches - piece->freed_at);
}

static void count_collectable(struct allocator *allocator, struct collection *collection)
{
	for (unsigned i = 0; i < allocator->pool_count; i++) {
		struct pool *pool = &allocator->pools[i];
		const struct piece *piece = free_list_find(&pool->free, 0);
		for (; piece && is_collectable(allocator, pool); piece = free_list_after(&pool->free, piece)) {
			if (piece_is_split(piece))
				continue;
			collection->age_sum += age_of(pool, piece);
			collection->count++;
		}
	}
}

/* All of a pool that is not younger than `age`; false: there was nothing. */
static bool collect_pool(struct allocator *allocator, struct pool *pool, double age,
			 struct collection *collection)
{
	bool found = false;
	struct piece *next, *piece = free_list_find(&pool->free, 0);
	for (; piece; piece = next) {
		next = free_list_after(&pool->free, piece);
		if (!is_whole_segment(piece) || age_of(pool, piece) < age)
			continue;
		found = true;
		collection->released_bytes += piece->bytes;
		collection->age_sum -= age_of(pool, piece);
		collection->count--;
		release_segment(allocator, pool, piece);
	}
	return found;
}

void release_collect(struct allocator *allocator)
{
	const struct allocator_conf *conf = &allocator->conf;
	struct collection collection = {0};
	uint64_t limit = (uint64_t)(conf->gc_threshold * conf->memory_fraction *
				    (double)allocator->limits.total_bytes);
	bool found = true;
	if (allocator->counters.reserved_bytes <= limit)
		return;
	collection.wanted_bytes = allocator->counters.reserved_bytes - limit;
	count_collectable(allocator, &collection);
	while (collection.released_bytes < collection.wanted_bytes && found && collection.count) {
		double age = collection.age_sum / (double)collection.count;
		found = false;
		for (unsigned i = 0; i < allocator->pool_count; i++)
			if (is_collectable(allocator, &allocator->pools[i]))
				found |= collect_pool(allocator, &allocator->pools[i], age,
						      &collection);
	}
}
