/* From addresses to values, open addressing: no value is 0. */
#ifndef MT_MODEL_ADDRESS_MAP_H
#define MT_MODEL_ADDRESS_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct address_map { /* all zero: empty */
	uint64_t *keys;	/* 0: never used */
	uint64_t *values; /* 0: taken out */
	size_t capacity, used_count, count;
};

uint64_t address_map_get(const struct address_map *, uint64_t address); /* 0: none */
bool address_map_put(struct address_map *, struct arena *, uint64_t address, uint64_t value);
uint64_t address_map_take(struct address_map *, uint64_t address); /* and removes it */

#endif
