/* PyTorch's caching allocator as a model: which memory it would take from the driver for a sequence
 * of requests, under any settings, in the version that the settings name.
 *
 * A *class* is what never shares a segment with anything else: a stream, or a stream in a private
 * pool. Deterministic, no I/O; takes its memory from an arena of its own. Not thread-safe. */
#ifndef MT_MODEL_ALLOCATOR_H
#define MT_MODEL_ALLOCATOR_H

#include "model/allocator_conf.h"

struct allocator;
struct piece;

struct allocator_limits {
	uint64_t capacity_bytes; /* what the driver can give out in all; ALLOCATOR_NO_LIMIT */
	uint64_t total_bytes;	 /* of the device: what fractions are of; 0 unknown */
	uint64_t allowed_bytes;	 /* what PyTorch may reserve, beside the settings' fraction; 0: as much as there is */
	bool addresses_descend;	 /* the driver gives out ever lower addresses */
	bool fraction_only_collects; /* it limits nothing, and says only from where garbage is collected */
};

struct allocator_counters {
	uint64_t reserved_bytes, peak_reserved_bytes;
	uint64_t allocated_bytes, peak_allocated_bytes;
	uint64_t peak_used_bytes; /* reserved and outside together */
	/* The driver's memory that would have granted the smallest refusal, UINT64_MAX: none was refused. In any
	 * capacity from what was there to below this, nothing would have gone otherwise. */
	uint64_t least_refused_bytes;
	uint64_t device_allocs;	  /* PyTorch's num_device_alloc */
	uint64_t retries;	  /* num_alloc_retries: flushes of the cache for want of memory */
};

/* `is_private[class]`: a pool that keeps its free segments in a flush and from garbage collection; NULL: none.
 * It must outlive the allocator. NULL: out of memory. */
struct allocator *allocator_create(const struct allocator_conf *, const struct allocator_limits *,
				   unsigned class_count, const bool *is_private);
void allocator_release(struct allocator *);

/* NULL: the request cannot be met, or allocator_failed(). */
struct piece *allocator_alloc(struct allocator *, unsigned class_index, uint64_t asked_bytes);
/* The same without any limit: to go on after an OOM as if it had fitted. */
struct piece *allocator_alloc_unlimited(struct allocator *, unsigned class_index,
					uint64_t asked_bytes);
void allocator_free(struct allocator *, struct piece *);
/* A request that is freed before anything else happens. false: nothing cached fits, and nothing was done. */
bool allocator_alloc_briefly(struct allocator *, unsigned class_index, uint64_t asked_bytes);
/* empty_cache(); with `classes` only of those that it names. */
void allocator_release_cached(struct allocator *, const bool *classes);
/* From now on; what is cached stays. */
void allocator_change_conf(struct allocator *, const struct allocator_conf *);
/* Device memory that others took (give: they gave it back). */
void allocator_take_outside(struct allocator *, uint64_t bytes);
void allocator_give_outside(struct allocator *, uint64_t bytes);

const struct allocator_counters *allocator_counters(const struct allocator *);
bool allocator_failed(const struct allocator *); /* out of memory of our own: the figures are wrong */

#endif
