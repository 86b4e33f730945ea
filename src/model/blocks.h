/* An index of the live blocks by address: in it every event of a block looks once or twice. */
#ifndef MT_MODEL_BLOCKS_H
#define MT_MODEL_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct block;

struct blocks { /* all zero: empty */
	struct blocks_place {
		uint64_t address;
		struct block *block; /* NULL: nothing here */
	} *places;
	size_t count;
	unsigned bits; /* there are 2^bits places */
};

struct block *blocks_find(const struct blocks *, uint64_t address); /* NULL: none */
/* None may be at that address. 0 or -ENOMEM. */
int blocks_add(struct blocks *, struct arena *, uint64_t address, struct block *);
void blocks_remove(struct blocks *, uint64_t address); /* one that is there */
/* Each once, in no order that means anything, while none comes or goes: `place` starts as 0. NULL: no more. */
struct block *blocks_next(const struct blocks *, size_t *place);

#endif
