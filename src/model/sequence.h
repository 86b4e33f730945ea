/* What a program asked of PyTorch's caching allocator on one device, and what that asked of the
 * driver, in order: the input of a replay under other settings. Built from the events of a trace. */
#ifndef MT_MODEL_SEQUENCE_H
#define MT_MODEL_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/address_map.h"
#include "trace/defs.h"
#include "trace/event.h"

enum op_kind {
	OP_ALLOC,     /* a block was handed out; index: which life, region: where (NO_REGION: not seen) */
	OP_FREE,      /* and taken back */
	OP_OOM,	      /* PyTorch gave up: bytes */
	OP_OBTAIN,    /* memory from the driver; region */
	OP_GIVE_BACK, /* region */
	OP_MAP,	      /* a page at [address, +bytes) of a range; region: the range */
	OP_UNMAP,
	OP_REFUSED,  /* the driver had no memory */
	OP_STEP,     /* a step of the program ended */
	OP_SETTINGS, /* the program changed the allocator's settings; index: string id */
};

#define NO_REGION UINT32_MAX

struct op {
	uint64_t address;
	uint64_t bytes;
	uint64_t asked_bytes; /* 0: unknown */
	uint64_t sequence;    /* of the event */
	uint64_t stream;      /* what cannot share memory differs here: c10's stream, and captures */
	uint32_t index, region;
	uint16_t class_index;
	uint8_t kind; /* enum op_kind */
	bool is_exact; /* the request was the size, rounded; else up to 1 MiB less */
	bool is_emptied; /* of a release: the program called empty_cache() */
	bool is_retry;	 /* of a release: PyTorch's own, under a limit, where no call of the driver fails before it */
};

enum region_kind { REGION_SEGMENT, REGION_RANGE, REGION_PAGE };

struct sequence_region {
	uint64_t address, bytes;
	uint32_t range; /* of a page: where it was mapped */
	uint8_t kind;	/* enum region_kind */
	bool has_blocks; /* PyTorch's: a block lay in it */
};

struct sequence_counts { /* as recorded */
	uint64_t peak_reserved_bytes, final_reserved_bytes;
	uint64_t peak_allocated_bytes;
	uint64_t peak_used_bytes; /* with what others in the process took from the driver */
	uint64_t device_allocs;
	uint64_t refusals; /* by the driver */
	uint64_t blocks, asked_known, ooms, steps;
	/* What the program limits itself to (set_per_process_memory_fraction), if it met that limit: between these; 0: it did
	 * not. It shows in an OOM before which the driver refused nothing. */
	uint64_t limit_least_bytes, limit_below_bytes;
	uint64_t meminfo_calls; /* outside an OOM: the program may adapt to what is free */
	uint64_t unknown_blocks; /* that lie in no memory that was seen */
	uint64_t captured_blocks;
	bool has_async, has_ranges;
	bool steps_are_marked; /* by the program */
	bool steps_are_trained; /* told from its optimizer; neither: from the lows of allocated memory */
	bool addresses_descend;
};

struct sequence {
	struct arena *arena;
	struct op *ops;
	size_t op_count, op_capacity;
	struct sequence_region *regions;
	size_t region_count, region_capacity;
	uint32_t life_count;
	struct sequence_counts counts;
	bool failed;
	/* while it is built */
	unsigned device;
	const struct defs *defs;
	struct address_map lives;   /* address → life + 1 */
	struct address_map handles; /* handle → region + 1 */
	uint32_t *open; /* live segments and ranges, by address */
	size_t open_count, open_capacity;
	bool ended;
};

/* `defs` of the trace, or NULL: then no call of empty_cache() is recognised. NULL: out of memory. */
struct sequence *sequence_create(unsigned device, const struct defs *defs);
void sequence_release(struct sequence *);
/* Every event of the trace in order; those of other devices are skipped, and what comes after the end of the
 * program's own code. */
void sequence_add(struct sequence *, const struct event *);
/* A step of the program ends here; to be called between events. */
void sequence_mark_step(struct sequence *);
/* After the last event. `step_ends`, growing: the event before which each step of an optimizer ended; they count if the
 * program marked none, and with none of either, steps are looked for. 0 or -ENOMEM. */
int sequence_finish(struct sequence *, const uint64_t *step_ends, size_t count);

/* Is it memory of PyTorch's allocator? */
static inline bool sequence_is_torch(const struct sequence *sequence, uint32_t region)
{
	const struct sequence_region *at = &sequence->regions[region];
	if (at->kind == REGION_PAGE)
		return at->range != NO_REGION && sequence->regions[at->range].has_blocks;
	return at->has_blocks;
}

#endif
