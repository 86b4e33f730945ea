/* PyTorch's caching allocator: requests and frees. Owns the search for a free block, splitting and
 * joining, and the order in which memory is looked for when nothing fits. Must never depend on
 * anything but the settings, the limits and the sequence of calls. */
#include "model/allocator_private.h"

/* ---------- creation ---------- */

static void init_pools(struct allocator *allocator)
{
	for (unsigned i = 0; i < allocator->pool_count; i++)
		allocator->pools[i] = (struct pool){
			.free.breaks_ties_by_age = allocator->conf.breaks_ties_by_age,
			.class_index = i / 2,
			.is_small = i % 2,
		};
}

struct allocator *allocator_create(const struct allocator_conf *conf,
				   const struct allocator_limits *limits, unsigned class_count,
				   const bool *is_private)
{
	struct arena *arena = arena_create();
	struct allocator *allocator = arena ? arena_alloc(arena, sizeof *allocator) : NULL;
	struct pool *pools =
		allocator ? arena_alloc(arena, 2 * class_count * sizeof *pools) : NULL;
	if (!pools) {
		if (arena)
			arena_release(arena);
		return NULL;
	}
	*allocator = (struct allocator){.arena = arena,
					.conf = *conf,
					.limits = *limits,
					.counters.least_refused_bytes = UINT64_MAX,
					.pools = pools,
					.pool_count = 2 * class_count,
					.is_private = is_private};
	address_space_init(&allocator->space, limits->addresses_descend);
	init_pools(allocator);
	return allocator;
}

void allocator_release(struct allocator *allocator)
{
	arena_release(allocator->arena);
}

void allocator_change_conf(struct allocator *allocator, const struct allocator_conf *conf)
{
	allocator->conf = *conf;
}

const struct allocator_counters *allocator_counters(const struct allocator *allocator)
{
	return &allocator->counters;
}

bool allocator_failed(const struct allocator *allocator)
{
	return allocator->failed;
}

/* ---------- the driver ---------- */

bool allocator_has_room(struct allocator *allocator, uint64_t bytes)
{
	struct allocator_counters *counters = &allocator->counters;
	uint64_t used = counters->reserved_bytes + allocator->outside_bytes;
	uint64_t capacity = allocator->limits.capacity_bytes;
	if (capacity == ALLOCATOR_NO_LIMIT || (used <= capacity && bytes <= capacity - used))
		return true;
	if (used + bytes < counters->least_refused_bytes)
		counters->least_refused_bytes = used + bytes;
	return false;
}

static void note_used(struct allocator *allocator)
{
	struct allocator_counters *counters = &allocator->counters;
	uint64_t used = counters->reserved_bytes + allocator->outside_bytes;
	if (counters->reserved_bytes > counters->peak_reserved_bytes)
		counters->peak_reserved_bytes = counters->reserved_bytes;
	if (used > counters->peak_used_bytes)
		counters->peak_used_bytes = used;
}

void allocator_count_taken(struct allocator *allocator, uint64_t bytes)
{
	allocator->counters.reserved_bytes += bytes;
	allocator->counters.device_allocs++;
	note_used(allocator);
}

void allocator_take_outside(struct allocator *allocator, uint64_t bytes)
{
	allocator->outside_bytes += bytes;
	note_used(allocator);
}

void allocator_give_outside(struct allocator *allocator, uint64_t bytes)
{
	allocator->outside_bytes -= bytes < allocator->outside_bytes ? bytes
								     : allocator->outside_bytes;
}

struct segment *allocator_segment_create(struct allocator *allocator, struct pool *pool,
					 uint64_t bytes)
{
	struct segment *segment = arena_alloc(allocator->arena, sizeof *segment);
	if (!segment)
		return NULL;
	segment->address = address_space_take(&allocator->space, bytes);
	segment->bytes = bytes;
	segment->age = allocator->next_age++;
	segment->pool = pool;
	segment->first =
		piece_create(allocator->arena, segment, segment->address, segment->bytes);
	return segment->first ? segment : NULL;
}

static struct piece *obtain_segment(struct allocator *allocator, struct pool *pool, uint64_t bytes)
{
	if (!allocator_has_room(allocator, bytes))
		return NULL;
	struct segment *segment = allocator_segment_create(allocator, pool, bytes);
	allocator->failed |= !segment;
	if (!segment)
		return NULL;
	allocator_count_taken(allocator, bytes);
	return segment->first;
}

static bool is_above_fraction(const struct allocator *allocator, uint64_t bytes)
{
	double total = (double)allocator->limits.total_bytes;
	uint64_t allowed_bytes = allocator->limits.allowed_bytes;
	if (allowed_bytes && allocator->counters.reserved_bytes + bytes > allowed_bytes)
		return true;
	return release_has_fraction(allocator) && !allocator->limits.fraction_only_collects &&
	       allocator->counters.reserved_bytes + bytes >
		       (uint64_t)(allocator->conf.memory_fraction * total);
}

static struct piece *obtain(struct allocator *allocator, struct pool *pool, uint64_t bytes)
{
	uint64_t segment_bytes = allocator_segment_bytes(&allocator->conf, bytes);
	if (is_above_fraction(allocator, segment_bytes))
		return NULL;
	return allocator->conf.is_expandable ? expandable_grow(allocator, pool, bytes)
					     : obtain_segment(allocator, pool, segment_bytes);
}

/* ---------- free pieces ---------- */

void allocator_put_free(struct allocator *allocator, struct pool *pool, struct piece *piece)
{
	piece->freed_at = pool->searches;
	allocator->failed |= !free_list_add(&pool->free, allocator->arena, piece);
}

static void merge_with(struct allocator *allocator, struct pool *pool, struct piece *piece,
		       struct piece *other)
{
	if (!other || other->is_live || other->is_mapped != piece->is_mapped)
		return;
	if (other->is_mapped)
		free_list_remove(&pool->free, other);
	piece_swallow(allocator->arena, piece, other);
}

void allocator_merge(struct allocator *allocator, struct pool *pool, struct piece *piece)
{
	merge_with(allocator, pool, piece, piece->previous);
	merge_with(allocator, pool, piece, piece->next);
}

/* Among expandable pieces one that borders on unmapped space counts as large as it can grow, and so
 * is taken last. */
static struct piece *least_reaching(struct free_list *list, struct piece *piece)
{
	struct piece *next = free_list_after(list, piece);
	while (next && expandable_reach(next) < expandable_reach(piece)) {
		piece = next;
		next = free_list_after(list, piece);
	}
	return piece;
}

static struct piece *choose_free(const struct allocator *allocator, struct pool *pool,
				 uint64_t bytes)
{
	struct piece *piece = free_list_find(&pool->free, bytes);
	if (!piece)
		return NULL;
	if (piece->segment->page_bytes)
		piece = least_reaching(&pool->free, piece);
	return allocator_refuses_piece(&allocator->conf, bytes, piece->bytes) ? NULL : piece;
}

static void count_search(const struct allocator *allocator, struct pool *pool)
{
	if (release_can_collect(allocator))
		pool->searches++;
}

static struct piece *find_free(struct allocator *allocator, struct pool *pool, uint64_t bytes)
{
	struct piece *piece = choose_free(allocator, pool, bytes);
	count_search(allocator, pool);
	if (piece)
		free_list_remove(&pool->free, piece);
	return piece;
}

/* ---------- requests ---------- */

static struct piece *look_everywhere(struct allocator *allocator, struct pool *pool,
				     uint64_t bytes)
{
	struct piece *piece = find_free(allocator, pool, bytes);
	if (piece)
		return piece;
	if (release_can_collect(allocator))
		release_collect(allocator);
	piece = obtain(allocator, pool, bytes);
	if (!piece && release_oversize(allocator, pool, bytes))
		piece = obtain(allocator, pool, bytes);
	if (!piece && !allocator->failed) {
		release_flush(allocator, NULL);
		allocator->counters.retries++;
		piece = obtain(allocator, pool, bytes);
	}
	return piece;
}

static bool is_worth_splitting(const struct allocator *allocator, const struct pool *pool,
			       uint64_t bytes, uint64_t rest)
{
	if (pool->is_small || allocator->conf.is_expandable)
		return rest >= ALLOCATOR_UNIT_BYTES;
	return bytes < allocator->conf.max_split_bytes && rest > ALLOCATOR_SMALL_BYTES;
}

static void note_allocated(struct allocator_counters *counters, uint64_t bytes)
{
	if (bytes > counters->peak_allocated_bytes)
		counters->peak_allocated_bytes = bytes;
}

static void hand_out(struct allocator *allocator, struct pool *pool, struct piece *piece,
		     uint64_t bytes)
{
	struct allocator_counters *counters = &allocator->counters;
	if (is_worth_splitting(allocator, pool, bytes, piece->bytes - bytes)) {
		struct piece *rest = piece_split(allocator->arena, piece, bytes);
		allocator->failed |= !rest;
		if (rest)
			allocator_put_free(allocator, pool, rest);
	}
	piece->is_live = true;
	counters->allocated_bytes += piece->bytes;
	note_allocated(counters, counters->allocated_bytes);
}

static struct pool *pool_of(struct allocator *allocator, unsigned class_index, uint64_t bytes)
{
	return &allocator->pools[class_index * 2 + (bytes <= ALLOCATOR_SMALL_BYTES)];
}

struct piece *allocator_alloc(struct allocator *allocator, unsigned class_index,
			      uint64_t asked_bytes)
{
	uint64_t bytes = allocator_round(&allocator->conf, asked_bytes);
	struct pool *pool = pool_of(allocator, class_index, bytes);
	struct piece *piece = look_everywhere(allocator, pool, bytes);
	if (piece)
		hand_out(allocator, pool, piece, bytes);
	return piece;
}

/* The free piece would be cut, handed out, and joined again with what was cut off: its place in the list and
 * its neighbours stay as they were. */
bool allocator_alloc_briefly(struct allocator *allocator, unsigned class_index,
			     uint64_t asked_bytes)
{
	struct allocator_counters *counters = &allocator->counters;
	uint64_t bytes = allocator_round(&allocator->conf, asked_bytes);
	struct pool *pool = pool_of(allocator, class_index, bytes);
	struct piece *piece = choose_free(allocator, pool, bytes);
	if (!piece)
		return false;
	if (!is_worth_splitting(allocator, pool, bytes, piece->bytes - bytes))
		bytes = piece->bytes;
	note_allocated(counters, counters->allocated_bytes + bytes);
	count_search(allocator, pool);
	piece->freed_at = pool->searches;
	return true;
}

struct piece *allocator_alloc_unlimited(struct allocator *allocator, unsigned class_index,
					uint64_t asked_bytes)
{
	uint64_t capacity = allocator->limits.capacity_bytes;
	double memory_fraction = allocator->conf.memory_fraction;
	allocator->limits.capacity_bytes = ALLOCATOR_NO_LIMIT;
	allocator->conf.memory_fraction = 0;
	struct piece *piece = allocator_alloc(allocator, class_index, asked_bytes);
	allocator->limits.capacity_bytes = capacity;
	allocator->conf.memory_fraction = memory_fraction;
	return piece;
}

void allocator_free(struct allocator *allocator, struct piece *piece)
{
	struct pool *pool = piece->segment->pool;
	allocator->counters.allocated_bytes -= piece->bytes;
	piece->is_live = false;
	allocator_merge(allocator, pool, piece);
	allocator_put_free(allocator, pool, piece);
}

void allocator_release_cached(struct allocator *allocator, const bool *classes)
{
	release_flush(allocator, classes);
}
