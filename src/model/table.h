/* uthash for tables keyed by a 64-bit number (an address, a handle). Every function that uses one
 * of its macros has the model as `m`: memory comes from the model's arena, and a table that could
 * not grow marks the model as failed instead of ending the program, which is uthash's default. */
#ifndef MT_MODEL_TABLE_H
#define MT_MODEL_TABLE_H

#include "base/arena.h"

#define HASH_NONFATAL_OOM         1
#define uthash_malloc(bytes)      arena_alloc(m->arena, bytes)
#define uthash_free(at, bytes)    arena_free(m->arena, at, bytes)
#define uthash_nonfatal_oom(item) (m->failed = true)

/* Addresses differ in their middle bits: the upper half of the product depends on all of them. */
#define HASH_FUNCTION(key, bytes, hash)                                  \
	do {                                                             \
		uint64_t _key;                                           \
		memcpy(&_key, key, sizeof _key);                         \
		(hash) = (unsigned)(_key * 0x9E3779B97F4A7C15ull >> 32); \
	} while (0)

#include <uthash.h>

#define TABLE_FIND(head, key, out)   HASH_FIND(hh, head, key, sizeof(uint64_t), out)
#define TABLE_ADD(head, field, item) HASH_ADD(hh, head, field, sizeof(uint64_t), item)

#endif
