/* The model: from events in ticket order to what memory there is, whose it is, and what it was at the peak.
 *
 * Two levels, kept apart and reconciled. *Memory* is what the driver gave out: device allocations, physical
 * handles with their mappings, stream-ordered pools, managed, pinned host. *Blocks* are what PyTorch's
 * caching allocator handed out inside that memory. The same body of code runs in the traced program's dump
 * thread and in the tool: the same events give the same figures in both. It does no I/O, takes its memory
 * from an arena of its own, never exits, and costs O(1) an event (O(log n) in the number of driver regions).
 * Not thread-safe. */
#ifndef MT_MODEL_MODEL_H
#define MT_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/attribution.h"
#include "trace/defs.h"
#include "trace/event.h"

#define MODEL_DEVICES_MAX 64
#define MODEL_OOMS_MAX 4 /* that keep their composition; later ones are counted */

struct model;

/* `defs` must outlive the model and hold every definition used by an event that is applied. */
struct model *model_create(const struct defs *defs); /* NULL: out of memory */
void model_release(struct model *);

/* 0, or -ENOMEM: the model is then incomplete for good and model_failed() says so; never a lie, never a
 * crash on any event content (unknown frees, double allocations, impossible sizes are counted). */
int model_apply(struct model *, const struct event *);
bool model_failed(const struct model *);

/* Events, or definitions that events refer to, are missing, as the caller knows: no verdict is certain then, but on what a
 * single event shows. Of definitions the model finds out by itself. */
void model_note_gaps(struct model *);
/* Events were lost while the program ran, and after so many block events PyTorch's own total was another than that of
 * the blocks known: verdicts for which that may matter are not certain. */
void model_note_lost(struct model *, uint64_t lost_count, uint64_t disagreement_count);

/* To be called once after the last event: failures that were never followed by a success become OOMs
 * (see model_oom). */
void model_finish(struct model *);

struct model_counter { /* bytes and calls; current_bytes, allocations and frees frozen at the end of the program's own code */
	uint64_t current_bytes;
	uint64_t peak_bytes;
	uint64_t total_bytes;
	uint64_t allocations;
	uint64_t frees;
	uint64_t at_exit_frees; /* frees after that end */
};

struct model_share { /* a row of a composition */
	uint64_t bytes;
	uint64_t count;
	uint64_t largest_bytes; /* of its blocks, and of those that were its before or came after */
	uint32_t stack; /* id, 0 unknown */
	uint8_t category; /* enum model_category; of a whole stack: that of most of it */
	uint8_t detail;   /* enum model_detail, likewise */
	bool is_provisional;
};

struct model_owner { /* who obtained driver memory: "pytorch", "nccl", "cublas", "cudnn", "program", or a module name */
	const char *name;
	uint64_t current_bytes;
	uint64_t peak_bytes;    /* its own highest */
	uint64_t at_peak_bytes; /* when the device's allocated was highest */
};

struct model_peak { /* the first instant of the highest `allocated`; all zero if nothing was allocated */
	uint64_t time_ns;
	uint64_t sequence;
	uint64_t allocated_bytes;
	uint64_t reserved_bytes;
	uint64_t pytorch_reserved_bytes;
	uint32_t stack;  /* of the event that reached it */
	uint32_t thread;
	uint64_t step; /* that was going on: the first is 1; 0: nothing has trained yet */
	uint8_t phase; /* enum model_phase, of the thread or its loop; valid if is_phase_known */
	bool is_phase_known; /* false: not a program whose phases we know */
	uint64_t pytorch_allocated_bytes;
	uint64_t releasable_bytes; /* of PyTorch's: segments, and pages of expandable ones, without a block */
	uint64_t internal_bytes;   /* of PyTorch's blocks: more than was asked for, as far as that is known */
	uint64_t unasked_bytes;    /* of PyTorch's blocks of which it is not */
};

struct model_fullest { /* the first instant of the highest pytorch_reserved, once the block it was for is there */
	uint64_t time_ns, sequence;
	uint64_t reserved_bytes, allocated_bytes, releasable_bytes; /* PyTorch's */
};

#define MODEL_JUMPS_MAX 16

struct model_jump { /* untracked memory changed by more than 1 MiB */
	uint64_t time_ns, sequence; /* of the reading that showed it */
	uint64_t before_bytes, after_bytes;
	uint32_t contexts, modules, graphs; /* made or ended since the jump before */
	uint32_t stack;    /* of the last of these, 0: there was none */
	const char *owner; /* whose that stack is; NULL: unknown */
};

struct model_device {
	unsigned ordinal;
	bool has_blocks; /* block events were seen: allocated is PyTorch's live blocks + what others hold */
	bool has_async;  /* stream-ordered memory was used by PyTorch's cudaMallocAsync backend */
	struct model_counter allocated; /* blocks + device memory obtained by others than a caching allocator */
	struct model_counter reserved;  /* driver memory: device, managed, arrays, handles, pools */
	struct model_counter pytorch_allocated; /* equal to torch.cuda.memory_stats() */
	struct model_counter pytorch_reserved;
	bool pytorch_reserved_known; /* false: cudaMallocAsync and the program never read its pool's figures */
	uint64_t pytorch_segments;
	uint64_t retries; /* num_alloc_retries */
	uint64_t ooms;    /* num_ooms, and failures of others that nothing followed */
	uint64_t total_bytes;      /* of the device, 0 unknown */
	uint64_t free_bytes_last;  /* what the program last read from the device */
	bool free_known;
	/* Of the last time that the device was asked, by the program or by us. */
	bool untracked_known;
	bool untracked_is_own;     /* of this process; else what other processes have in use is in it */
	uint64_t untracked_bytes;  /* in use less tracked */
	uint64_t untracked_at_peak_bytes; /* at the first reading after `reserved` was highest */
	bool in_use_known, others_known;
	uint64_t in_use_bytes;     /* on the device, by all */
	uint64_t others_bytes;     /* by other processes */
	const struct model_jump *jumps; /* of untracked, in the order of time: the largest */
	uint32_t jump_count, jumps_dropped;
	struct model_peak peak;
	struct model_fullest fullest;
};

struct model_totals {
	uint64_t events, block_events;
	uint64_t unknown_frees;     /* addresses that were not known as allocated */
	uint64_t double_allocations;/* an address given out again without a free seen: counted as freed first */
	uint64_t impossible_sizes;  /* events with a range that no process can have: left out */
	uint64_t pinned_current_bytes, pinned_peak_bytes; /* host memory, allocated and registered */
	uint64_t managed_current_bytes, managed_peak_bytes; /* of all devices; where it is, only the driver knows */
	uint64_t last_time_ns;
	uint64_t live_blocks, live_regions;
};

struct model_oom {
	unsigned device; /* MEMTRACE_DEVICE_HOST: page-locked host memory ran out */
	bool by_pytorch; /* PyTorch's own OOM call; else a failing driver call that nothing followed */
	uint64_t time_ns, sequence;
	uint64_t requested_bytes;  /* rounded by PyTorch */
	uint64_t driver_bytes;     /* what the failing driver call asked for, 0 when none failed (a limit) */
	uint64_t free_bytes;       /* on the device, before PyTorch flushed its cache; UINT64_MAX unknown */
	uint64_t total_bytes;      /* 0 unknown */
	uint64_t allocated_bytes, pytorch_allocated_bytes;
	uint64_t reserved_bytes;   /* before the flush */
	uint64_t pytorch_reserved_bytes; /* before the flush */
	uint64_t flushed_bytes;    /* what PyTorch gave back while it tried */
	bool untracked_known;      /* of this process alone */
	uint64_t untracked_bytes;
	uint64_t releasable_bytes; /* of PyTorch's, after that: segments and pages without a block */
	uint64_t retries; /* num_alloc_retries so far, this failure among them: each emptied the cache */
	uint32_t stack, thread;
};

const struct model_totals *model_totals(const struct model *);
/* Devices that saw an event, in ordinal order; NULL past the last. */
const struct model_device *model_device(const struct model *, unsigned index);
/* Owners of a device's driver memory, largest at_peak first; NULL past the last. */
const struct model_owner *model_owner(const struct model *, unsigned ordinal, unsigned index);

/* The composition of `allocated` by stack. Fills up to `capacity` rows, largest first (ties: lower stack id, lower category),
 * and returns how many there are; the sum over all rows is exactly the allocated bytes of that moment. */
size_t model_stacks_at_peak(const struct model *, unsigned ordinal, struct model_share *rows, size_t capacity);
size_t model_stacks_now(const struct model *, unsigned ordinal, struct model_share *rows, size_t capacity);
/* The same with a row for each category and detail that a stack has. */
size_t model_shares_at_peak(const struct model *, unsigned ordinal, struct model_share *rows, size_t capacity);
size_t model_shares_now(const struct model *, unsigned ordinal, struct model_share *rows, size_t capacity);
size_t model_shares_at_oom(const struct model *, size_t index, struct model_share *rows, size_t capacity);

/* Of those that are described, <= MODEL_OOMS_MAX, in the order in which they became certain: an index
 * never changes its meaning. */
size_t model_oom_count(const struct model *);
const struct model_oom *model_oom(const struct model *, size_t index);
size_t model_stacks_at_oom(const struct model *, size_t index, struct model_share *rows, size_t capacity);
/* The least that PyTorch's blocks took in each of the last stretches of *steps_each steps before it, oldest first;
 * returns how many, at most `capacity`. */
size_t model_lows_at_oom(const struct model *, size_t index, uint64_t *lows, size_t capacity, uint64_t *steps_each);

/* Whether that grew from step to step, and in which step memory runs out if it grows on (steps count from 1). */
struct model_forecast {
	bool is_known, grows; /* too few steps: neither */
	uint64_t each_bytes;  /* a step, as it mostly was */
	uint64_t over_steps;
	uint64_t now_step, end_step; /* that of the OOM; the first without room for what a step needs, about. 0 unknown */
};
struct model_forecast model_forecast_at_oom(const struct model *, size_t index);
size_t model_memory_bytes(const struct model *);

/* What CUPTI saw beside the hooks (MEMTRACE_CHECK=cupti), until it was asked for the last time. */
struct model_witness {
	bool is_there; /* the trace was made with it */
	bool is_over;  /* and it has told all it had */
	uint64_t allocations, frees, bytes; /* that CUPTI saw; bytes of the allocations */
	uint64_t unconfirmed; /* allocations of the hooks that it did not see (yet) */
};
struct model_witness model_witness(const struct model *);

#define MODEL_MISSED_ADDRESSES 4

struct model_missed { /* what CUPTI saw and the hooks did not, of one kind of memory */
	enum memtrace_space space;
	uint64_t allocations, frees;
	uint64_t bytes; /* of the allocations */
	uint64_t addresses[MODEL_MISSED_ADDRESSES]; /* some, lowest first; 0: no more */
};
/* Fills up to `capacity` rows, in the order of the spaces; returns how many there are. */
size_t model_missed(const struct model *, struct model_missed *rows, size_t capacity);

#define TIMELINE_BUCKETS 256

/* How much there was when: the highest of each stretch of time from the start of the trace on, to its last event. The
 * stretches are as many for a run of seconds as for one of days, so they are as wide as it takes: 2^20 ns times a
 * power of two, the same on all devices. */
struct model_timeline {
	uint64_t width_ns;
	uint32_t count;
	uint64_t allocated_bytes[TIMELINE_BUCKETS], reserved_bytes[TIMELINE_BUCKETS];
};
/* False: that device saw no event. */
bool model_timeline(const struct model *, unsigned ordinal, struct model_timeline *);

/* Of `bytes` of a stack's blocks, as the event_element() of their tensors: bytes[0] is unknown. By all blocks that the
 * stack ever made, so about. */
struct model_elements {
	uint64_t bytes[ELEMENT_COUNT];
};
struct model_elements model_elements(const struct model *, uint32_t stack, uint64_t bytes);

/* The stream that a live block was handed out on; false when there is no block at that address. */
bool model_block_stream(const struct model *, uint64_t address, uint64_t *stream);
/* PyTorch's live blocks on a device at this moment: goes on after the program's own code has ended. */
uint64_t model_pytorch_live_bytes(const struct model *, unsigned ordinal);
/* All driver memory that is tracked on it, likewise. */
uint64_t model_reserved_live_bytes(const struct model *, unsigned ordinal);

/* The invariants: the rows at the peak add up to its allocated_bytes, the owners to reserved, and a recount of all
 * tables gives the sums that are told. For tests and debugging: O(everything). */
bool model_is_consistent(const struct model *);

#endif
