/* What memory is for: categories, phases of a training loop, steps. Told from Python stacks, thread
 * names, a few native symbols and lifetimes; nothing in the program is asked.
 *
 * A label is provisional while the block lives in the phase that decides it, and final afterwards;
 * what was recorded at a peak, an OOM or a moment of a step follows every later change, so the sum
 * over the categories is always exactly the allocated bytes. Same thread rules as model.h. */
#ifndef MT_MODEL_ATTRIBUTION_H
#define MT_MODEL_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model;

enum model_category {
	MODEL_UNKNOWN,     /* no rule applies: not PyTorch's, or no stack */
	MODEL_PARAMETERS,  /* and buffers */
	MODEL_GRADIENTS,
	MODEL_OPTIMIZER_STATE,
	MODEL_ACTIVATIONS, /* saved for backward, or held by the program until it */
	MODEL_INPUT,
	MODEL_WORKSPACE,   /* cuBLAS, cuDNN */
	MODEL_TEMPORARY,
	MODEL_COMMUNICATION,
	MODEL_OTHER,       /* what the program keeps: outputs, caches, lists, copies */
	MODEL_CATEGORY_COUNT
};

enum model_detail { /* what more is known of memory in a category */
	MODEL_DETAIL_NONE,
	MODEL_DETAIL_RECOMPUTED,      /* activation made again inside backward */
	MODEL_DETAIL_HELD,            /* activation kept by Python, not by the graph */
	MODEL_DETAIL_RETAINED_GRAPH,  /* activation older than an iteration */
	MODEL_DETAIL_DROPPED_GRAPH,   /* activation that no backward ever used */
	MODEL_DETAIL_COPY,            /* other: a copy of a parameter */
	MODEL_DETAIL_NO_GRAD_OUTPUT,  /* other: what a module returned without a graph */
	MODEL_DETAIL_KEPT,            /* other: made by the program, older than an iteration */
	MODEL_DETAIL_OPTIMIZER,       /* temporary: of an optimizer's step */
	MODEL_DETAIL_BACKWARD,        /* temporary: of a backward pass */
	MODEL_DETAIL_AUTOCAST_COPY,   /* in another precision; in any category */
	MODEL_DETAIL_AUTOCAST_HELD,   /* the same, as activation that no backward took */
	MODEL_DETAIL_AUTOCAST_WEIGHT, /* … of a parameter, that a backward took */
	MODEL_DETAIL_COUNT
};

/* The key in `memtrace report --json`; never NULL. */
const char *model_category_name(enum model_category);
/* Words for people; NULL for MODEL_DETAIL_NONE. */
const char *model_detail_name(enum model_detail);

struct model_categories {
	uint64_t bytes[MODEL_CATEGORY_COUNT];
	uint64_t provisional_bytes[MODEL_CATEGORY_COUNT]; /* of these: may still change */
};

/* They add up to the allocated bytes of that moment. False: no such device or OOM; all zero. */
bool model_categories_at_peak(const struct model *, unsigned ordinal, struct model_categories *);
bool model_categories_now(const struct model *, unsigned ordinal, struct model_categories *);
bool model_categories_at_oom(const struct model *, size_t index, struct model_categories *);

/* The most parameters that there were at once whose memory is of this size; of very many sizes some are not
 * counted. */
uint64_t model_parameters_of_size(const struct model *, uint64_t bytes);
bool model_has_parameter_of(const struct model *, uint64_t least_bytes, uint64_t most_bytes); /* linear in sizes */

enum model_phase {
	MODEL_PHASE_OTHER, /* outside of all modules and passes: data, evaluation code, set-up */
	MODEL_PHASE_FORWARD,
	MODEL_PHASE_BACKWARD,
	MODEL_PHASE_OPTIMIZER,
	MODEL_PHASE_COUNT
};
const char *model_phase_name(enum model_phase); /* as in the JSON */

enum model_moment_kind { MODEL_AFTER_FORWARD, MODEL_AFTER_BACKWARD, MODEL_AFTER_OPTIMIZER, MODEL_MOMENT_COUNT };

struct model_moment { /* a border between phases */
	bool is_known;
	uint64_t time_ns, sequence;
	uint64_t allocated_bytes;
	struct model_categories categories;
};

/* From the end of the step before to its own end; the work after the last step is one with is_open. */
struct model_step {
	uint64_t step; /* the n-th step of its training loop, from 1 */
	unsigned loop; /* which loop: threads that train at once have one each, from 0 */
	unsigned device;
	uint32_t thread; /* that leads the loop */
	bool is_open;
	uint64_t begin_ns, end_ns;
	uint64_t backwards; /* more than one: gradient accumulation, or several losses */
	uint64_t peak_bytes; /* of the device, as far as this loop's events and borders show it: other loops' blocks are in it */
	enum model_phase peak_phase;
	uint64_t phase_peak_bytes[MODEL_PHASE_COUNT]; /* the same of each phase alone, 0: nothing was allocated in it */
	struct model_moment after[MODEL_MOMENT_COUNT]; /* of several forwards and backwards the last */
};

struct model_step_totals { /* exact, whatever the number of records kept */
	uint64_t steps, backwards;
	uint64_t forwards; /* outermost module calls */
};

/* Of all loops together. */
void model_step_totals(const struct model *, struct model_step_totals *);
/* Steps that the device's loop had completed at an event; of very many steps some are not told apart. */
uint64_t model_steps_before(const struct model *, unsigned ordinal, uint64_t sequence);
/* Records in order of their end; of very many steps the first and the last ones are kept, the gap shows
 * in `step`. False past the last. */
bool model_step(const struct model *, size_t index, struct model_step *);

/* Told while events are applied: a step ended before event `sequence`. */
struct model_step_observer {
	void (*ended)(struct model_step_observer *, uint64_t sequence);
};
void model_observe_steps(struct model *, struct model_step_observer *); /* before the first event */

/* ---------- the label of single blocks ---------- */

/* Told while events are applied: the memory that came to be with event `born` has `label` from now
 * on (the last one told counts); it went with event `died`. Labels mean something only to
 * model_label_category(), after the last event. */
struct model_observer {
	void (*labelled)(struct model_observer *, uint64_t born, uint8_t label);
	void (*freed)(struct model_observer *, uint64_t born, uint64_t died);
};
void model_observe(struct model *, struct model_observer *); /* before the first event */
enum model_category model_label_category(const struct model *, uint8_t label);
enum model_detail model_label_detail(const struct model *, uint8_t label);

#endif
