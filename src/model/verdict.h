/* Why memory ran out, and what is wrong with a run that did not run out: a cause, how certain it is, the
 * numbers that show it, what speaks against it, and what helps or does not. Settings of PyTorch's allocator
 * are never named as a cure here: only a replay of the whole run knows (see the tool). */
#ifndef MT_MODEL_VERDICT_H
#define MT_MODEL_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/attribution.h"

struct model;

#define VERDICT_CAUSES(X)                                                                                 \
	X(UNKNOWN, "unknown")                                                                             \
	X(IMPOSSIBLE_REQUEST, "impossible_request")                                                       \
	X(LIMIT, "limit")                                                                                 \
	X(OTHER_PROCESS, "other_process")                                                                 \
	X(OUTSIDE_PYTORCH, "outside_pytorch")                                                             \
	X(FRAGMENTATION, "fragmentation")                                                                 \
	X(LEAK, "leak")                                                                                   \
	X(DUPLICATE, "duplicate")                                                                         \
	X(SPIKE, "spike")                                                                                 \
	X(TOO_BIG, "too_big")                                                                             \
	X(HOST_PINNED, "host_pinned")                                                                     \
	/* only findings */                                                                               \
	X(NEAR_LIMIT, "near_limit")                                                                       \
	X(AUTOCAST_COPIES, "autocast_copies")                                                             \
	X(IDLE_CACHE, "idle_cache")                                                                       \
	X(UNUSED_GRAPH, "unused_graph")                                                                   \
	X(KEPT_GRAPH, "kept_graph")

#define VERDICT_KINDS(X)                                                                                  \
	X(NONE, NULL)                                                                                     \
	X(PINNED, "pinned")                                                                               \
	X(SIZE_CLASS, "size_class")                                                                       \
	X(OTHER_STREAM, "other_stream")                                                                   \
	X(PRIVATE_POOL, "private_pool")                                                                   \
	X(PENDING_FREE, "pending_free")                                                                   \
	X(GRAPH, "graph")                                                                                 \
	X(LIST, "list")                                                                                   \
	X(CACHE, "cache")                                                                                 \
	X(CYCLE, "cycle")                                                                                 \
	X(PER_THREAD, "per_thread")                                                                       \
	X(FIRST_STEP, "first_step")                                                                       \
	X(OPTIMIZER, "optimizer")                                                                         \
	X(EVALUATION, "evaluation")                                                                       \
	X(LOAD, "load")                                                                                   \
	X(BACKWARD, "backward")                                                                           \
	X(DRIVER, "driver")

enum verdict_cause {
#define X(id, name) VERDICT_##id,
	VERDICT_CAUSES(X)
#undef X
	VERDICT_CAUSE_COUNT
};

enum verdict_kind {
#define X(id, name) VERDICT_KIND_##id,
	VERDICT_KINDS(X)
#undef X
	VERDICT_KIND_COUNT
};

const char *verdict_cause_name(enum verdict_cause);
const char *verdict_kind_name(enum verdict_kind); /* NULL: none */

enum verdict_advice {
	ADVICE_CHECK_SHAPES,
	ADVICE_RAISE_LIMIT,
	ADVICE_END_OTHERS,
	ADVICE_LESS_OUTSIDE,
	ADVICE_EMPTY_CACHE, /* … before the library that asks */
	ADVICE_WHATIF,
	ADVICE_FREE_PINNERS,
	ADVICE_ONE_STREAM,
	ADVICE_DROP_POOL,
	ADVICE_WAIT_STREAM,
	ADVICE_DETACH,
	ADVICE_CLEAR_LIST,
	ADVICE_BOUND_CACHE,
	ADVICE_BREAK_CYCLE,
	ADVICE_FIXED_THREADS,
	ADVICE_DROP_COPY,
	ADVICE_DROP_LOADED,
	ADVICE_IN_PLACE,
	ADVICE_SMALLER_STATE,
	ADVICE_SHARD_STATE,
	ADVICE_NO_FOREACH,
	ADVICE_SMALLER_BATCH,
	ADVICE_CHECKPOINT,
	ADVICE_NO_GRAD,
	ADVICE_NO_GRAD_IF, /* it is not known whether it is so already */
	ADVICE_SMALLER_EVAL,
	ADVICE_LOAD_CPU,
	ADVICE_SMALLER_MODEL,
	ADVICE_LESS_PINNED,
	ADVICE_CLEAR_AUTOCAST,
	ADVICE_EMPTY_ONCE,
	ADVICE_NO_TRIAL,
	ADVICE_SHORTER_SEGMENTS,
	ADVICE_SPARSE_EMBEDDING,
	ADVICE_LARGEST_FIRST,
	ADVICE_CUT_BATCH,
	ADVICE_BACKWARD_EACH,
	ADVICE_KEEP_TEXT,
	ADVICE_FIND_LIMIT,
	ADVICE_HALF_WEIGHTS,
	ADVICE_LEAVE_EXCEPT,
	ADVICE_DROP_GRAPH,
	ADVICE_RAISE_SETTING,
	ADVICE_SAVE_FOR_BACKWARD,
	ADVICE_SHORTER_CACHE,
	ADVICE_STEP_PIECES,
	ADVICE_COLLECT,
	ADVICE_CLONE_SLICE,
	ADVICE_COUNT
};

enum verdict_not_advised {
	NOT_SMALLER_BATCH,
	NOT_SETTINGS,
	NOT_EMPTY_CACHE,
	NOT_MORE_MEMORY,
	NOT_SMALLER_MODEL,
	NOT_ADVISED_COUNT
};

struct verdict_action {
	enum verdict_advice advice;
	bool is_known; /* what it saves */
	uint64_t saves_bytes;
};

/* What showed it. All of the moment of the OOM, or of the end; UINT64_MAX: unknown. */
struct verdict_evidence {
	uint64_t asked_bytes, segment_bytes; /* rounded by PyTorch; what the driver was asked for */
	uint64_t total_bytes, free_bytes;    /* before the cache was flushed */
	uint64_t others_bytes;		     /* of other processes, as far as they are told apart */
	uint64_t untracked_bytes;
	bool has_pytorch;	  /* in this process */
	uint64_t outside_bytes;	  /* of this process, not PyTorch's */
	uint64_t live_bytes, idle_bytes, releasable_bytes, pinned_bytes, largest_hole_bytes;
	uint64_t missing_bytes; /* segment_bytes less what was free after the flush */
	uint64_t short_bytes;	/* what no rearrangement of PyTorch's memory could give */
	uint64_t holes_bytes[4]; /* after the flush, by kind: pinned, size_class, other_stream, private_pool */
	struct model_categories categories;
	uint64_t pass_bytes;   /* of these, what a pass that goes on has made, not decided yet: its graph, most likely */
	uint64_t batch_bytes;  /* of these, what is made anew for each batch; set where it is too much */
	uint64_t training_bytes; /* what parameters, gradients and Adam's state take, before a first step, if that is more than there is; else 0 */
	uint64_t held_bytes; /* of these, what a try that ran out before has left */
	uint64_t next_bytes; /* what the step after the first one of an optimizer needs, if that is more than there is; else 0 */
	uint64_t step_most_bytes; /* the peak of the steps before, where this one is far above it; else 0 */
	uint64_t steps;	       /* completed */
	uint64_t growth_bytes; /* of the live minimum */
	uint64_t growth_periods;
	uint64_t growth_each_bytes; /* a period, as it mostly was */
	bool growth_is_by_step; /* a period is a step; else a stretch of block events */
	bool was_let_go; /* what is blamed: the evidence is of just before; at the program's end, unless … */
	bool went_on;	 /* … it went on after that */
	uint64_t periods_left;	/* until memory would run out */
	uint64_t count, bytes;	/* of what is blamed: survivors, copies, pinners */
	const char *owner;	/* who has most of what was obtained past PyTorch, as owners are named; NULL: none was traced */
	uint64_t owner_bytes;
	uint64_t peak_bytes;	/* of copies that are blamed, what was there at the device's peak */
	uint64_t copied_bytes;	/* parameters without the copies of them that are blamed */
	uint64_t left_bytes;	/* live without the copies that are blamed; of a graph, the peak without it */
	uint32_t stack;		/* the largest of them, 0 none */
	uint64_t retries;
	uint64_t waits; /* of these, for memory that another stream still used */
};

enum { VERDICT_ACTIONS_MAX = 3, VERDICT_NOT_MAX = 3 };

struct verdict {
	unsigned device;
	enum verdict_cause cause;
	enum verdict_kind kind;
	bool is_certain; /* else likely */
	struct verdict_evidence evidence;
	enum verdict_cause counter; /* what speaks for another cause, UNKNOWN: nothing does */
	uint64_t counter_bytes;
	struct verdict_action actions[VERDICT_ACTIONS_MAX]; /* by bytes gained */
	size_t action_count;
	enum verdict_not_advised not_advised[VERDICT_NOT_MAX];
	size_t not_advised_count;
};

/* Of the OOM `index`. False: there is none. */
bool model_verdict(const struct model *, size_t index, struct verdict *);

/* After model_finish(): what is wrong although, or because, the run came to its end. Returns how many there are, at
 * most `capacity`. */
size_t model_findings(const struct model *, struct verdict *, size_t capacity);

#endif
