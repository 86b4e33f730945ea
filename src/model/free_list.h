/* Free pieces by size, then by what decides between equals: the order in which the caching allocator
 * looks at them. */
#ifndef MT_MODEL_FREE_LIST_H
#define MT_MODEL_FREE_LIST_H

#include "model/pieces.h"

struct free_bucket;

struct free_list { /* all zero: empty */
	struct free_bucket *buckets; /* of like sizes; made with the first piece */
	uint64_t filled[4];	     /* a bit a bucket that has any */
	size_t count;
	uint32_t found_index, found_at; /* the bucket and the place in it of what was found last */
	bool breaks_ties_by_age;
};

uint64_t free_list_rank(const struct free_list *, const struct piece *);
bool free_list_add(struct free_list *, struct arena *, struct piece *); /* false: out of memory */
void free_list_remove(struct free_list *, struct piece *); /* one that was never added: nothing */

/* In order; NULL: there is none. */
struct piece *free_list_find(struct free_list *, uint64_t bytes); /* the first of at least this size */
struct piece *free_list_after(struct free_list *, const struct piece *);
struct piece *free_list_last(const struct free_list *);

#endif
