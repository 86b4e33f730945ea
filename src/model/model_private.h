/* What the files of the model share, grouped by the file that defines it. Handlers of an event
 * return nothing: when memory is out they set model.failed and leave; from then on the model
 * refuses every event. */
#ifndef MT_MODEL_PRIVATE_H
#define MT_MODEL_PRIVATE_H

#include "model/attribution_private.h"
#include "model/blocks.h"
#include "model/model.h"
#include "model/ranges.h"
#include "model/reconcile.h"
#include "model/segments.h"
#include "model/table.h"

#define SLOT_UNKNOWN MODEL_DEVICES_MAX /* memory on a device that is not known */
#define SLOT_COUNT   (MODEL_DEVICES_MAX + 1)
#define SLOT_HOST    0xfe /* not device memory */

#define BYTES_MAX (1ull << 47) /* the address space of a process: no allocation is larger */

/* ---------- meter.c: bytes and calls ---------- */

enum change {
	CHANGE_OBTAINED,
	CHANGE_GIVEN_BACK,
	CHANGE_KEPT,     /* a free that was noted has failed */
	CHANGE_WITHDRAWN /* it should never have been counted here */
};

struct meter {
	uint64_t live_bytes, peak_bytes, total_bytes;
	uint64_t allocations, frees;
};

void meter_change(struct meter *, enum change, uint64_t bytes);
/* `bytes` after `change`. */
uint64_t bytes_change(uint64_t bytes, enum change, uint64_t by);

/* ---------- composition.c: a sum by stack and label, now and at its peak ---------- */

struct share { /* what one stack holds under one label */
	uint64_t bytes, count;
	uint64_t peak_bytes, peak_count; /* at the peak: valid if epoch is the composition's */
	uint64_t epoch;
	uint32_t stack;
	uint32_t next; /* share of the same stack, plus one */
	uint8_t label;
};

struct composition {
	struct meter meter; /* the sum */
	struct share *shares;
	uint32_t *index_of_stack; /* its newest in shares, plus one; 0: the stack has none */
	uint32_t share_count, share_capacity, stack_capacity;
	uint64_t epoch; /* counts the peaks */
	struct model_peak peak, previous_peak;
	uint64_t label_bytes[LABEL_COUNT]; /* now */
	const void *revocable; /* the memory that made the peak, while nothing has changed since */
};

struct snapshot_row {
	uint64_t bytes, count;
};

struct snapshot { /* a copy of the shares at one moment, that follows later changes of labels */
	const struct composition *of;
	struct snapshot_row *rows; /* by share */
	uint32_t count; /* at least that of the shares then */
	uint64_t sequence;
	struct snapshot *before, *next; /* of all in the model */
};

void composition_change(struct model *, struct composition *, enum change, uint32_t stack, uint8_t label,
			uint64_t bytes);
/* One item of `bytes` has another label, now or at the peak or both. */
void composition_move(struct model *, struct composition *, uint32_t stack, uint8_t from, uint8_t to,
		      uint64_t bytes, bool now, bool at_peak);
struct snapshot_row share_at_peak(const struct composition *, const struct share *);
bool composition_is_at_peak(const struct composition *); /* higher than ever before */
/* `memory` may turn out not to belong here at the next event; NULL: cannot. */
void composition_set_peak(struct composition *, const struct model_peak *, const void *memory);
/* Undoes set_peak if that is still possible. */
void composition_revoke(struct composition *, const void *memory);
/* The snapshot must stay where it is until it is released. */
void composition_snapshot(struct model *, const struct composition *, uint64_t sequence,
			  struct snapshot *);
/* What was saved: a share with its values, and a snapshot that has no rows yet. */
int composition_restore(struct model *, struct composition *, const struct share *); /* 0 or -ENOMEM */
void snapshot_restore(struct model *, struct snapshot *, const struct snapshot *saved);
/* The row of a share, made if there is none; NULL: out of memory. */
struct snapshot_row *snapshot_row(struct model *, struct snapshot *, uint32_t index);
void snapshot_move(struct model *, struct snapshot *, uint32_t stack, uint8_t from, uint8_t to,
		   uint64_t bytes);
void snapshot_release(struct model *, struct snapshot *);

/* ---------- rows.c: the largest rows of a composition, without memory of its own ---------- */

struct picker {
	struct model_share *rows;
	size_t capacity, used, count; /* count: of all that were offered */
};

void picker_offer(struct picker *, const struct model_share *);
size_t picker_finish(struct picker *); /* sorts */

/* ---------- owner.c: whose a stack is ---------- */

enum { OWNER_UNKNOWN, OWNER_PYTORCH };

struct stack_facts {
	uint16_t owner;
	bool known, has_empty_cache; /* a Python frame of that name */
};

int owners_init(struct model *);
uint16_t owner_restore(struct model *, const char *name); /* the index of a new owner */
const struct stack_facts *stack_facts(struct model *, uint32_t stack); /* never NULL */
/* True also if one is unknown. */
bool stacks_have_same_python(const struct model *, uint32_t, uint32_t);

/* ---------- trend.c: how the least live memory moves ---------- */

#define TREND_WINDOWS 48

struct trend_window {
	uint64_t begin; /* sequence of the event before it */
	uint64_t least_bytes;
	uint64_t allocations, frees;
};

struct trend_series {
	struct trend_window windows[TREND_WINDOWS], open;
	uint32_t count;	 /* of full windows */
	uint32_t stride; /* periods a window */
	uint32_t periods; /* of the open one */
	uint64_t total_periods;
};

struct trend { /* a period is a step, or a stretch of block events */
	struct trend_series steps, events;
	uint64_t event_count;
};

struct trend_growth {
	const struct trend_series *series;
	bool is_growing;
	uint32_t first, windows; /* of the rise */
	uint64_t begin;		 /* sequence */
	uint64_t bytes, periods, allocations, frees;
};

void trend_note(struct trend *, enum change, uint64_t live_bytes, uint64_t sequence);
void trend_end_step(struct trend *, uint64_t live_bytes, uint64_t sequence);
struct trend_growth trend_growth_of(const struct trend_series *);
uint32_t trend_window_of(const struct trend_growth *, uint64_t sequence);

struct work { /* what was going on at a moment that is judged */
	uint64_t steps, backwards;
	uint64_t call_begin; /* sequence at which the call of a module that goes on began; UINT64_MAX: none does */
	bool has_trained;
};

/* ---------- device.c: the figures of a device ---------- */

struct lazy { /* a value at the peak of a composition */
	uint64_t bytes, epoch;
};

struct owner_bytes {
	uint64_t live_bytes, peak_bytes, frozen_bytes;
	struct lazy at_peak[2]; /* of device.whole, device.allocated */
};

struct pool_reads { /* what the program read of the pool that PyTorch uses */
	bool has_used, has_used_high, has_reserved, has_reserved_high;
	uint64_t used_bytes, used_high_bytes, reserved_bytes, reserved_high_bytes;
};

struct spread { /* of PyTorch's memory, what is told beside reserved and allocated */
	uint64_t releasable_bytes; /* segments, and pages of expandable ones, that hold no block */
	uint64_t internal_bytes;   /* of live blocks: more than was asked for, as far as that is known */
	uint64_t unasked_bytes;    /* of live blocks of which it is not */
};

struct device_figures { /* what is frozen when the program's own code ends */
	struct spread spread;
	struct meter reserved, pytorch_allocated, pytorch_reserved;
	struct pool_reads reads;
	uint64_t segments;
};

struct device {
	uint8_t slot;
	bool has_blocks, has_async, free_known;
	bool has_phases;     /* of the last event: what its thread or loop was doing */
	uint8_t phase;
	uint64_t step;
	struct composition whole;     /* all driver memory: told as long as there are no blocks */
	struct composition allocated; /* blocks, and memory that is not a caching allocator's */
	struct device_figures now, frozen;
	struct meter frozen_allocated;
	struct snapshot frozen_stacks;
	struct owner_bytes *owners; /* by owner */
	uint32_t owner_capacity;
	uint64_t retries, ooms;
	uint64_t total_bytes, free_bytes;
	struct untracked untracked;
	struct model_fullest fullest;
	struct segment_map *frozen_map;
	struct trend trend, *frozen_trend;
	struct work frozen_work;
	struct model_device shown; /* made anew at every look */
	struct model_owner shown_owner;
};

struct device *device_of(struct model *, uint8_t ordinal); /* NULL: the host, or out of memory */
struct device *find_device(const struct model *, unsigned ordinal); /* NULL: it saw no event */
uint8_t device_slot(uint8_t ordinal);
void device_has_blocks(struct device *);                 /* from the first block event on */
struct composition *device_composition(struct device *); /* the one that is shown */
void device_change_owner(struct model *, struct device *, uint16_t owner, enum change,
			 uint64_t bytes);
/* To be called at the end of an event that added to a composition. */
void device_note_peak(struct device *, const struct event *, const void *memory);
void device_freeze(struct model *, struct device *, uint64_t sequence);
void device_describe(const struct model *, struct device *);
bool device_peak_owner(const struct device *, uint32_t owner, uint64_t *at_peak_bytes);

/* ---------- memory.c: what the driver gave out ---------- */

enum role {
	ROLE_OUTSIDE, /* not a caching allocator's: it is itself allocated */
	ROLE_CACHE,   /* a caching allocator hands out blocks in it */
	ROLE_TENSOR,  /* stream-ordered, one a tensor, of PyTorch's cudaMallocAsync backend */
	ROLE_EXTERNAL /* counted by whoever owns it, never here */
};

struct memory { /* what regions and handles have in common */
	uint64_t bytes;
	uint64_t born; /* sequence */
	uint32_t stack, thread;
	uint16_t owner;
	uint8_t slot, role;
	uint8_t space;
	uint8_t label;
	bool is_captured;     /* obtained while a stream was captured */
	uint32_t block_count; /* in a region: live blocks; in a handle: not used */
	uint64_t stream;      /* of the last block that was handed out in it */
};

void memory_init(struct model *, struct memory *, const struct event *);
bool memory_is_counted(const struct memory *); /* on a device, and not by someone else */
/* Every figure that a change of driver memory touches. Bytes of physical handles are no cache until
 * mapped. */
void memory_change(struct model *, struct memory *, enum change, const struct event *);
/* A block landed in it: it is the caching allocator's from now on. */
void memory_become_cache(struct model *, struct memory *);

/* ---------- segment.c: which of PyTorch's memory holds blocks ---------- */

struct block;
struct device;

/* `block` is handed out or taken back, at an address in `span` if that is not NULL: which segments and
 * pages hold none changes. */
void segment_note_block(struct model *, struct span *, const struct block *, enum change);
/* A segment or page without a block comes or goes. */
void segment_change_releasable(struct device *, enum change, uint64_t bytes);
/* To be called after every block was handed out: keeps the moment of the highest reserved. */
void segment_note_fullest(struct device *, const struct event *);

/* ---------- segment_map.c ---------- */

/* As it is now; NULL: no memory, or too many blocks. The map has an arena of its own. */
struct segment_map *segment_map_create(const struct model *, const struct device *);
void segment_map_release(struct segment_map *);

/* ---------- region.c: memory at an address ---------- */

enum span_kind { SPAN_REGION, SPAN_MAPPING, SPAN_RESERVATION };

struct region {
	struct span span;
	struct memory memory;
	uint64_t context;    /* of the program's own that it lives in, 0 a primary one */
	uint32_t references; /* of external memory: how often it was opened */
	uint8_t home;        /* the space whose addresses it has */
};

/* Spaces whose addresses have nothing to do with each other. */
struct regions {
	struct ranges device;  /* regions and mappings; a block may lie in any */
	struct ranges arrays;  /* their addresses are handles */
	struct ranges host;    /* pinned and registered */
	struct ranges imports; /* objects of other APIs: their addresses are handles */
};

struct ranges *region_index(struct model *, enum memtrace_space home);
void region_note_alloc(struct model *, const struct event *);
void region_note_free(struct model *, const struct event *);
void region_keep(struct model *, struct region *, const struct event *); /* its free has failed */
void region_drop(struct model *, struct region *); /* frees the struct of one that was removed */
/* Everything that lies in [start, end) of device addresses was freed without our seeing it. */
void regions_clear(struct model *, uint64_t start, uint64_t end, const struct event *);
struct span *regions_at(const struct model *, uint64_t address); /* what holds it; NULL: nothing */
void regions_note_landing(struct model *, struct span *); /* of a block */
void regions_note_context_end(struct model *, const struct event *);
/* The free of external memory that was opened more than once has failed. */
void region_reopen(struct model *, uint64_t address, enum memtrace_space);

/* ---------- handle.c, mapping.c: physical memory and where it shows ---------- */

struct mapping {
	struct span span;
	uint32_t block_count;    /* live blocks that lie in it, even in part */
	bool is_counted;       /* in pytorch_reserved */
	bool was_counted;      /* when it was unmapped */
	bool is_joined;        /* it goes on where the mapping before it ends: one segment */
	struct handle *handle; /* NULL: unknown */
	struct mapping *previous, *next;      /* of the handle, or of struct undo */
	uint64_t handle_address, handle_born; /* to find it again after an unmap that failed */
};

struct handle {
	uint64_t address; /* its value */
	struct memory memory;
	uint64_t references, mapping_count;
	struct mapping *mappings;
	bool is_held; /* else a zombie */
	struct handle *zombie_previous, *zombie_next;
	UT_hash_handle hh;
};

struct handles {
	struct handle *table;
	struct handle *zombie_first, *zombie_last; /* oldest, newest */
	uint32_t zombie_count;
	struct ranges reservations;
};

void handle_note_alloc(struct model *, const struct event *);
void handle_note_free(struct model *, const struct event *);
void handle_note_retain(struct model *, const struct event *);
/* One that was saved, without mappings. 0 or -1: there is one of its value, or no memory. */
int handle_restore(struct model *, struct handle *);
void handle_keep(struct model *, uint64_t address, uint64_t born, const struct event *);
struct handle *handle_find(struct model *, uint64_t address);
void handle_forget_zombie(struct model *, uint64_t address);
/* After its references or mappings have changed. */
void handle_settle(struct model *, struct handle *, enum change, const struct event *);
void handle_become_cache(struct model *, struct handle *);

void mapping_note_map(struct model *, const struct event *);
void mapping_note_unmap(struct model *, const struct event *);
void mapping_keep(struct model *, struct mapping *, const struct event *);
/* From the tables; the struct stays until mapping_drop(). */
void mapping_remove(struct model *, struct mapping *, const struct event *);
void mapping_drop(struct model *, struct mapping *);
void mapping_detach(struct model *, struct mapping *, const struct event *); /* from its handle */
void mapping_count_cache(struct model *, struct mapping *, enum change);     /* and the segments */
void reservation_note_reserve(struct model *, const struct event *);
void reservation_note_release(struct model *, const struct event *);
void reservation_keep(struct model *, struct span *);

/* ---------- pool.c: stream-ordered pools ---------- */

struct pool {
	uint64_t address;
	uint8_t device;
	bool is_own; /* made by the program, not a device's default */
	bool is_destroyed;
	UT_hash_handle hh;
};

int pool_restore(struct model *, const struct pool *); /* 0 or -ENOMEM */
void pool_note(struct model *, const struct event *);
void pool_keep(struct model *, uint64_t address);          /* its destruction failed */
uint8_t pool_device(struct model *, const struct event *); /* of a stream-ordered allocation */
void pool_note_tensor(struct device *, enum change, uint64_t bytes);

/* ---------- graph.c: memory that launches of graphs obtain and give back ---------- */

struct graph_node { /* in the order in which they were added, which is one that they may run in */
	uint64_t address, bytes;
	uint32_t stack;
	uint8_t device;
	bool is_free;
};

struct graph { /* or an executable one, which has a copy of the nodes */
	uint64_t address;
	struct graph_node *nodes;
	uint32_t count, capacity;
	UT_hash_handle hh;
};

/* One of `table` that was saved, without nodes; and one more node. NULL: there is one, or no memory. */
struct graph *graph_restore(struct model *, struct graph **table, uint64_t address);
struct graph_node *graph_add_node(struct model *, struct graph *);
void graph_note_node(struct model *, const struct event *);
void graph_note_exec(struct model *, const struct event *);
void graph_note_launch(struct model *, const struct event *);
void graph_note_end(struct model *, const struct event *);

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
void trial_end(struct thread *, const struct event *); /* at a block event */

struct suspect { /* a failure that may be an OOM; later one that is */
	struct model_oom oom;
	struct snapshot stacks;
	struct segment_map *map; /* after the flush */
	struct trend *trend;
	struct work work;
	uint64_t deadline; /* in events of the thread */
	bool is_async;     /* by PyTorch's cudaMallocAsync backend */
};

void oom_note_failure(struct model *, const struct event *);
void oom_note_block(struct model *, const struct event *);
void oom_note_meminfo(struct model *, const struct event *);
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
	bool failed, is_frozen;
	struct model_totals totals, frozen_totals, shown_totals;
	struct device *devices[SLOT_COUNT];
	struct causes causes[SLOT_COUNT];
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
