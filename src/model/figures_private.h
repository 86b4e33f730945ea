/* Sums: by stack and label, by owner, by device, now and at their peak. Grouped by the file that defines
 * it. What the sums are of is in memory_private.h and block.c. */
#ifndef MT_MODEL_FIGURES_PRIVATE_H
#define MT_MODEL_FIGURES_PRIVATE_H

#include "model/attribution_private.h"
#include "model/model.h"
#include "model/reconcile.h"
#include "model/segments.h"

struct model;

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
	uint64_t largest_bytes;	/* of a block, ever */
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

/* ---------- element.c: how large elements of tensors are ---------- */

struct element_units {
	uint32_t units[ELEMENT_COUNT]; /* of 512 bytes, that a stack's blocks took; halved when they get too many */
};

void elements_note(struct model *, const struct event *); /* a block_alloc */
struct element_units *elements_of(struct model *, uint32_t stack); /* NULL: out of memory */

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
	bool is_growing, is_at_rest; /* neither: it never rose */
	uint32_t first, windows; /* of the rise */
	uint32_t stairs; /* equal rises, of which it consists; 0: none */
	uint64_t begin;		 /* sequence */
	uint64_t bytes, periods, allocations, frees;
	uint64_t steepest_bytes; /* the most that one window brought */
	uint64_t each_bytes; /* a period, as it mostly was: what only the first ones brought is not in it */
};

void trend_note(struct trend *, enum change, uint64_t live_bytes, uint64_t sequence);
void trend_end_step(struct trend *, uint64_t live_bytes, uint64_t sequence);
bool trend_is_long(const struct trend_series *); /* enough to tell whether it grows */
struct trend_growth trend_growth_of(const struct trend_series *);
struct trend_growth trend_growth_of_events(const struct trend *);
struct trend_growth trend_growth_since(const struct trend_series *, uint64_t sequence); /* no earlier than that */
/* It had risen like that before, and been given back. */
bool trend_fell_before(const struct trend_growth *);
uint32_t trend_window_of(const struct trend_growth *, uint64_t sequence);

/* ---------- casts.c: copies that autocast kept ---------- */

struct casts_burst { /* blocks that the end of an autocast region gave back at once */
	uint64_t bytes, count;
	uint64_t left_bytes; /* of PyTorch's, live after it */
	uint32_t stack;	     /* of the largest copy among them, 0 none */
};

struct casts {
	uint64_t bytes, count, copy_bytes; /* of the burst that goes on */
	uint64_t event_count;		   /* of the trend, at its last free */
	uint64_t last_end;		   /* sequence of that */
	uint32_t stack;
	struct casts_burst most;
};

/* ---------- bursts.c: blocks of one place that go all at once ---------- */

#define BURST_PLACES 32

struct burst_place {
	uint64_t burst;	   /* in which one of its blocks went last */
	uint64_t anywhere; /* sequence at which a second line had freed several at once, 0: none has */
	uint64_t handed;   /* sequence at which another thread than theirs had freed one, 0: none has */
	uint32_t birth;	   /* frame of the program's that made them */
	uint32_t first_site;
	uint32_t blocks; /* that went in that burst */
};

struct bursts {
	uint64_t number, event_count; /* of the burst that goes on; of the trend, at its last free */
	uint32_t site;		      /* frame of the program's that ran */
	uint32_t count;
	struct burst_place places[BURST_PLACES];
};

struct work { /* what was going on at a moment that is judged */
	uint64_t steps, backwards;
	uint64_t call_begin; /* sequence at which the call of a module that goes on began; UINT64_MAX: none does */
	uint64_t casts_end;  /* sequence at which an autocast region last gave memory back */
	uint64_t backward_end; /* of the loop's last one: sequence */
	uint64_t step_most_bytes; /* allocated at the peak of the largest of the steps before, as far as they are kept */
	uint32_t passes, passes_least; /* of the loop: forward passes since the last backward; the fewest before one */
	bool has_trained;
	bool is_without_grad; /* the call of a module that goes on: it keeps next to nothing of what it makes */
};

/* ---------- timeline.c: how much there was when ---------- */

#define TIMELINE_FIRST_SHIFT 20	  /* the first width is 2^20 ns, a multiple of what times in chunks are kept to */
#define TIMELINE_DOUBLINGS_MAX 36 /* any time fits into the buckets then */

struct timeline_sums {
	uint64_t allocated_bytes, reserved_bytes;
};

struct timeline {
	uint32_t count;	    /* of buckets that have begun */
	uint32_t doublings; /* of the first width of a bucket */
	struct timeline_sums now; /* since the last change, which was in the last of them; not in `highest` yet */
	struct timeline_sums highest[TIMELINE_BUCKETS];
	const void *revocable; /* the memory that came with the last change, see composition_set_peak() */
};

/* The sums have changed, at a time that is not before the last one given. */
void timeline_note(struct timeline *, uint64_t time_ns, struct timeline_sums);
/* All of it, up to a moment. */
void timeline_get(const struct timeline *, uint64_t time_ns, struct model_timeline *);

/* ---------- let_go.c: what was given back since the last block was obtained ---------- */

struct let_go {
	struct segment_block *blocks;
	uint32_t count, capacity;
	uint64_t bytes;
	uint64_t since; /* sequence: when that one was obtained */
};

void let_go_note_alloc(struct let_go *, uint64_t sequence);
/* NULL: failed. */
struct segment_block *let_go_add(struct model *, struct let_go *, const struct segment_block *);

/* ---------- stage_end.c: what was let go while the program went on ---------- */

struct stage_end { /* the one that had grown most */
	struct suspect *moment; /* just before; NULL: there was none */
	uint64_t growth_bytes, low_bytes; /* what had grown; live when it was gone */
	uint64_t periods;		  /* steps until then */
	bool has_ended; /* the model went too: a training came to its end, no epoch of one */
	bool came_again; /* as much was let go once more, down to as low, some steps later */
};

/* Before a block that is obtained is counted. */
void stage_end_look(struct model *, struct device *);

/* ---------- device.c: the figures of a device ---------- */

struct lazy { /* a value at the peak of a composition */
	uint64_t bytes, epoch;
};

struct memory;

struct owner_bytes {
	uint64_t live_bytes, peak_bytes, frozen_bytes;
	struct lazy at_peak[2]; /* of device.whole, device.allocated */
	uint64_t raised_by, before_bytes; /* the memory (its `born`) that raised the peak last, and what it was */
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
	bool is_unwinding; /* PyTorch has run out, and obtained no block since */
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
	uint64_t waits; /* of the retries: for what another stream still used */
	uint64_t total_bytes, free_bytes;
	struct untracked untracked;
	struct model_fullest fullest;
	struct segment_map *frozen_map;
	struct let_go let_go; /* before the end of the program's own code */
	struct stage_end stage_end;
	struct trend trend, *frozen_trend;
	struct casts casts;
	struct bursts bursts;
	struct work frozen_work;
	struct timeline timeline;
	struct model_device shown; /* made anew at every look */
	struct model_owner shown_owner;
};

struct device *device_of(struct model *, uint8_t ordinal); /* NULL: the host, or out of memory */
struct device *find_device(const struct model *, unsigned ordinal); /* NULL: it saw no event */
uint8_t device_slot(uint8_t ordinal);
uint8_t slot_ordinal(unsigned slot); /* of device memory: MEMTRACE_DEVICE_UNKNOWN if it is not known which */
uint64_t device_capacity_bytes(const struct model *, const struct device *); /* 0: unknown */
void device_has_blocks(struct device *);                 /* from the first block event on */
struct composition *device_composition(struct device *); /* the one that is shown */
void device_change_owner(struct model *, struct device *, const struct memory *, enum change);
/* To be called at the end of an event that added to a composition. */
void device_note_peak(struct device *, const struct event *, const void *memory);
/* To be called when a sum has changed, for the timeline. `memory` as of composition_set_peak(). */
void device_has_changed(const struct model *, struct device *, const void *memory);
void device_freeze(struct model *, struct device *, uint64_t sequence);
void device_describe(const struct model *, struct device *);
bool device_peak_owner(const struct device *, uint32_t owner, uint64_t *at_peak_bytes);

/* The block was taken back, and is in no sum any more. */
void casts_note_free(struct model *, struct device *, const struct block *, const struct event *);
/* Likewise. */
void bursts_note_free(struct model *, struct device *, const struct block *, const struct event *);
/* Blocks that this frame made went several at once, at more than one line, before that event: as Python's collector
 * does it. */
bool bursts_were_anywhere(const struct device *, uint32_t birth, uint64_t before);
/* One of them was freed by another thread than had made it. */
bool bursts_were_handed(const struct device *, uint32_t birth, uint64_t before);

#endif
