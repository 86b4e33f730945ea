/* What the files of the allocator's model share, grouped by the file that defines it. */
#ifndef MT_MODEL_ALLOCATOR_PRIVATE_H
#define MT_MODEL_ALLOCATOR_PRIVATE_H

#include "model/address_space.h"
#include "model/allocator.h"
#include "model/free_list.h"

struct pool { /* the large or the small blocks of a class */
	struct free_list free;
	struct segment *ranges; /* expandable, oldest first */
	uint64_t searches;
	unsigned class_index;
	bool is_small;
};

struct allocator {
	struct arena *arena;
	struct allocator_conf conf;
	struct allocator_limits limits;
	struct allocator_counters counters;
	struct address_space space;
	struct pool *pools; /* class * 2 + is_small */
	unsigned pool_count;
	const bool *is_private;
	uint64_t outside_bytes;
	uint64_t next_age;
	bool failed;
};

/* allocator.c */
bool allocator_has_room(struct allocator *, uint64_t bytes);
void allocator_count_taken(struct allocator *, uint64_t bytes); /* one call of the driver */
struct segment *allocator_segment_create(struct allocator *, struct pool *, uint64_t bytes);
void allocator_put_free(struct allocator *, struct pool *, struct piece *);
/* Joins a free piece, in no list, with its free neighbours of the same kind. */
void allocator_merge(struct allocator *, struct pool *, struct piece *);

/* allocator_expandable.c */
/* A piece of at least `bytes` in an expandable segment, in no list; NULL: no memory. */
struct piece *expandable_grow(struct allocator *, struct pool *, uint64_t bytes);
/* How much the piece could hold if what is unmapped behind it were mapped. */
uint64_t expandable_reach(const struct piece *);
/* Gives back the whole pages of a free piece. */
void expandable_unmap(struct allocator *, struct pool *, struct piece *);

/* allocator_release.c */
bool release_has_fraction(const struct allocator *);
static inline bool release_can_collect(const struct allocator *allocator)
{
	return allocator->conf.gc_threshold > 0 && release_has_fraction(allocator);
}
void release_collect(struct allocator *); /* garbage_collection_threshold */
/* Oversize blocks, for a request that max_split_size concerns; false: not enough. */
bool release_oversize(struct allocator *, struct pool *, uint64_t bytes);
void release_flush(struct allocator *, const bool *classes); /* NULL: all that are not private */

#endif
