/* An index of disjoint address ranges, sorted: which one holds an address, and which are its
 * neighbours. */
#ifndef MT_MODEL_RANGES_H
#define MT_MODEL_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct span {                /* first member of what is indexed */
	uint64_t start, end; /* end is not in it; start == end is allowed */
	uint8_t kind;        /* the owner's */
};

struct ranges_leaf;

struct ranges {           /* all zero: empty */
	uint64_t *firsts; /* of each leaf its lowest start */
	struct ranges_leaf **leaves;
	size_t leaf_count, leaf_capacity;
	size_t count;
	uint64_t changes; /* insertions and removals ever: what was looked up before may be gone */
};

/* NULL when there is none. */
struct span *ranges_at(const struct ranges *, uint64_t start);       /* that starts there */
struct span *ranges_before(const struct ranges *, uint64_t address); /* last start <= address */
struct span *ranges_after(const struct ranges *, uint64_t address);  /* first start > address */

/* No span of the same start may be in it. 0 or -ENOMEM. */
int ranges_insert(struct ranges *, struct arena *, struct span *);
void ranges_remove(struct ranges *, struct arena *, struct span *);

#endif
