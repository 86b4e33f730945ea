/* The model itself, and what its files know of blocks, threads and failures; the rest of what they
 * share is in the headers included here. All are grouped by the file that defines it. Handlers of an
 * event return nothing: when memory is out they set model.failed and leave; from then on the model
 * refuses every event. */
#ifndef MT_MODEL_PRIVATE_H
#define MT_MODEL_PRIVATE_H

#include "model/attribution_private.h"
#include "model/blocks.h"
#include "model/figures_private.h"
#include "model/memory_private.h"
#include "model/model.h"
#include "model/table.h"

#define SLOT_UNKNOWN MODEL_DEVICES_MAX /* memory on a device that is not known */
#define SLOT_COUNT   (MODEL_DEVICES_MAX + 1)
#define SLOT_HOST    0xfe /* not device memory */

#define BYTES_MAX (1ull << 47) /* the address space of a process: no allocation is larger */

/* ---------- block.c ---------- */

struct block {
	uint64_t address, bytes, stream;
	uint64_t asked_bytes; /* 0 unknown */
	uint32_t stack;
	uint16_t thread; /* id; 0 unknown, or too large a number */
	uint8_t slot;
	struct block_facts facts;
};

struct block *block_find(const struct model *, uint64_t address); /* NULL: none is live there */
/* A new one at its address, in the table only. NULL: there is one, or no memory. */
struct block *block_restore(struct model *, uint64_t address);
void block_note_alloc(struct model *, const struct event *);
void block_note_free(struct model *, const struct event *);
void block_note_copy(struct model *, const struct event *);

/* ---------- thread.c: what a thread did lately; undo ---------- */

/* Since the thread's last block event: what may be the inside of one call of PyTorch's malloc. */
struct trial {
	bool is_active;
	uint8_t slot;
	bool has_obtained;         /* cache memory, after the last failure or free */
	bool is_beyond_collection; /* gave back what garbage collection would not */
	uint32_t failed_calls;     /* of PyTorch's */
	uint64_t driver_bytes;     /* of the last of them */
	uint32_t flush_stack, obtained_stack;
	uint64_t pending_bytes;              /* given back */
	uint64_t pending_cache_bytes;        /* of pytorch_reserved */
	uint64_t smallest_bytes, last_bytes; /* the smallest and the last that was given back */
	bool free_known;                     /* the device was asked */
	uint64_t free_bytes;                 /* less what was given back before it answered */
	uint64_t total_bytes;
	bool has_fitting;	  /* gave back a large segment without a block that the request would have got into … */
	uint64_t fitting_stream; /* … of this stream: that of the last of them */
};

struct undo { /* of the thread's last free */
	bool is_set;
	bool was_unknown; /* it freed nothing that we know */
	bool has_handle;
	bool has_reference; /* it closed external memory that is still open */
	uint8_t what;
	uint8_t space;
	uint64_t sequence, address, handle_born;
	struct region *region; /* what it removed */
	struct span *reservation;
	struct mapping *mappings;
	uint64_t pending_bytes, pending_cache_bytes;
};

struct suspect;

struct thread {
	uint64_t event_count;
	uint64_t last_block; /* sequence of the last block event */
	struct trial trial;
	struct suspect *suspect;
	struct undo undo;
	struct stepper *stepper;
	uint8_t loop; /* plus one; 0: it has not trained */
	uint8_t engine; /* 0 not looked at, 1 no, 2 yes */
};

/* Never NULL for the thread of an event that model_apply() took. */
struct thread *thread_of(struct model *, uint32_t id);
int threads_reserve(struct model *, uint32_t id);
struct undo *undo_begin(struct model *, const struct event *); /* of the free that is being noted */
void undo_note_failed(struct model *, const struct event *);
void note_unknown_free(struct model *, const struct event *);

/* ---------- trial.c: retries; oom.c: running out ---------- */

/* Memory was given back by the event's thread: in all, and of it (vmm: apart from it) reserved by
 * PyTorch. */
void trial_note_freed(struct model *, const struct memory *, uint64_t bytes, uint64_t cache_bytes,
		      const struct event *);
void trial_note_obtained(struct model *, const struct memory *, const struct event *);
void trial_note_failure(struct model *, const struct event *);
void trial_note_meminfo(struct model *, const struct event *);
bool trial_was_retry(const struct model *, const struct trial *, uint8_t slot,
		     uint64_t block_bytes);
/* Of a retry for this block: memory was idle that it would have got into, but for an event of another stream. */
bool trial_has_waited(const struct model *, const struct trial *, const struct event *);
bool trial_was_single(const struct trial *); /* one that failed, without a second attempt */
void trial_end(struct thread *, const struct event *); /* at a block event */

struct outside { /* what one owner had past PyTorch; 0 bytes: nobody had any that was traced */
	uint32_t owner; /* an index of owner_names */
	uint32_t stack; /* by which most of it was obtained */
	uint64_t bytes;
};

/* outside.c: the one who has most of what is live, and was obtained up to the event with sequence `end` */
struct outside outside_of(struct model *, uint8_t slot, uint64_t end);

struct suspect { /* a failure that may be an OOM; later one that is */
	struct model_oom oom;
	struct snapshot stacks;
	struct segment_map *map; /* after the flush */
	struct trend *trend;
	struct work work;
	struct outside outside;
	uint64_t deadline; /* in events of the thread */
	bool is_async;     /* by PyTorch's cudaMallocAsync backend */
};

void suspect_release(struct model *, struct suspect *); /* may be NULL */
void oom_note_failure(struct model *, const struct event *);
void oom_note_block(struct model *, const struct event *);
void oom_note_meminfo(struct model *, const struct event *);
/* What this process has untracked is told apart for the first time: it had about that when memory ran out before. */
void oom_note_untracked(struct model *, const struct device *);
void oom_note_success(struct model *, const struct event *);
void oom_check_deadline(struct model *, struct thread *);
void oom_finish(struct model *);

/* ---------- witness.c: what CUPTI tells beside the hooks ---------- */

struct seen { /* an address at which hooks and witness are not even */
	uint64_t address;
	uint64_t bytes;       /* of what the witness saw there last */
	int64_t allocations;  /* that the witness saw and the hooks did not; negative: the reverse */
	int64_t frees;
	uint8_t space;
	UT_hash_handle hh;
};

struct witness {
	struct model_witness told;
	bool is_looked_for;
	struct seen *uneven;
};

/* At every event: does nothing unless the trace has a witness. */
void witness_note(struct model *, const struct event *);
int witness_restore(struct model *, const struct seen *); /* 0 or -1: no memory */

/* ---------- model.c ---------- */

struct model {
	struct arena *arena;
	const struct defs *defs;
	bool failed, is_frozen, has_gaps;
	uint64_t lost_count, disagreement_count;
	struct model_totals totals, frozen_totals, shown_totals;
	struct device *devices[SLOT_COUNT];
	struct causes causes[SLOT_COUNT];
	struct composition pinned; /* page-locked host memory */
	struct regions regions;
	struct handles handles;
	struct blocks blocks;
	struct pool *pools;
	struct graph *graphs, *execs;
	struct witness witness;
	struct thread *threads;
	uint32_t thread_capacity;
	struct stack_facts *stack_facts;
	uint32_t stack_capacity;
	struct element_units *elements; /* by stack */
	uint32_t element_capacity;
	uint16_t *owner_of_module; /* plus one; 0: not looked at yet */
	uint32_t module_capacity;
	const char **owner_names;
	uint32_t owner_count, owner_capacity;
	struct suspect *ooms[MODEL_OOMS_MAX];
	uint32_t oom_count;
	struct snapshot *snapshots;
	struct attribution *attribution;
};

void *model_new(struct model *, size_t bytes); /* NULL: failed */
/* Makes an array hold index `wanted`, at least doubling; new entries are zero. 0 or -ENOMEM
 * (failed). */
int model_grow(struct model *, void *array, uint32_t *capacity, uint32_t wanted,
	       size_t entry_bytes);

#endif
