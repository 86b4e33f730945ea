/* The settings of PyTorch's caching allocator (PYTORCH_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF), and
 * the rules that differ between its versions. */
#ifndef MT_MODEL_ALLOCATOR_CONF_H
#define MT_MODEL_ALLOCATOR_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

#define ALLOCATOR_NO_LIMIT	UINT64_MAX
#define ALLOCATOR_DIVISIONS	16	    /* intervals of roundup_power2_divisions, from 1 MiB on */
#define ALLOCATOR_SMALL_BYTES	(1ull << 20) /* blocks up to this come from segments of 2 MiB */
#define ALLOCATOR_UNIT_BYTES	512	    /* every block is a multiple of this */

struct allocator_version { /* 0.0: unknown, taken as the newest */
	unsigned major, minor;
};

struct allocator_conf {
	struct allocator_version version;
	bool is_async; /* backend:cudaMallocAsync: none of the rest applies */
	bool is_expandable;
	bool breaks_ties_by_age; /* equal holes: the older segment first; else the lower address */
	bool full_fraction_is_no_limit;
	uint64_t max_split_bytes; /* ALLOCATOR_NO_LIMIT: none */
	uint64_t max_non_split_rounding_bytes;
	uint64_t large_segment_bytes;
	double gc_threshold;	/* 0: none */
	double memory_fraction; /* of the device that the process may reserve, 0: none */
	uint64_t divisions[ALLOCATOR_DIVISIONS];
};

/* "torch 2.15.0+cu132"; NULL or anything else: unknown. */
struct allocator_version allocator_version_of(const char *framework);

void allocator_conf_init(struct allocator_conf *, struct allocator_version);

/* Applies "key:value,key:value" to what is set already, as PyTorch does at its start or at run time. 0, or -EINVAL:
 * then `reason` says in words which key or value is wrong, and the settings are as they were. */
int allocator_conf_parse(struct allocator_conf *, const char *text, struct text *reason);

/* Takes out what can make no difference on any device, for requests of at most `largest_bytes`. */
void allocator_conf_simplify(struct allocator_conf *, uint64_t largest_bytes);
bool allocator_conf_is_same(const struct allocator_conf *, const struct allocator_conf *);

/* The process may reserve only a part of the device; from a part of that on garbage may be collected. */
bool allocator_conf_has_fraction(const struct allocator_conf *);

/* What a request becomes, and the segment that is taken for it when nothing cached fits. */
uint64_t allocator_round(const struct allocator_conf *, uint64_t asked_bytes);
uint64_t allocator_segment_bytes(const struct allocator_conf *, uint64_t block_bytes);

/* max_split_size: the smallest free piece that is large enough is not taken, and so none is. */
bool allocator_refuses_piece(const struct allocator_conf *, uint64_t block_bytes, uint64_t piece_bytes);

#endif
