/* Device addresses as a driver gives them out: the lowest hole that fits, or ever lower ones. Before
 * 2.13 PyTorch takes the lower of two equal holes, so its choices depend on them. */
#ifndef MT_MODEL_ADDRESS_SPACE_H
#define MT_MODEL_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct address_hole {
	uint64_t address, bytes;
};

struct address_space {
	uint64_t next;
	bool descends;
	struct address_hole *holes; /* by address */
	size_t hole_count, hole_capacity;
};

void address_space_init(struct address_space *, bool descends);
uint64_t address_space_take(struct address_space *, uint64_t bytes);
bool address_space_give(struct address_space *, struct arena *, uint64_t address, uint64_t bytes);

#endif
