/* Segments cut into pieces: what the allocator's model and the mirror of a recorded layout have in
 * common. */
#ifndef MT_MODEL_PIECES_H
#define MT_MODEL_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct segment;
struct pool;

/* A part of a segment: a live block, a hole, or (expandable) a part with no memory behind it. */
struct piece {
	uint64_t address, bytes;
	struct piece *previous, *next; /* neighbours in the segment */
	struct segment *segment;
	uint64_t freed_at; /* the pool's count of searches then */
	bool is_live, is_mapped;
};

struct segment {
	uint64_t address, bytes;
	uint64_t page_bytes; /* of an expandable segment; 0: obtained whole */
	uint64_t age;	     /* grows: an older segment has a lower one */
	struct piece *first;
	struct segment *next; /* in the list of its owner */
	struct pool *pool;
	unsigned class_index;
	bool is_small, is_known;
};

static inline bool piece_is_split(const struct piece *piece)
{
	return piece->previous || piece->next;
}

struct piece *piece_create(struct arena *, struct segment *, uint64_t address, uint64_t bytes);
/* Cuts the piece at `bytes`: the new one behind it is like it. NULL: out of memory. */
struct piece *piece_split(struct arena *, struct piece *, uint64_t bytes);
/* `other`, a neighbour, becomes a part of `piece` and is gone. */
void piece_swallow(struct arena *, struct piece *piece, struct piece *other);
void piece_drop(struct arena *, struct piece *);

#endif
