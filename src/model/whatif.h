/* What another setting of PyTorch's allocator would have done to a recorded run. First the run itself is
 * replayed (the identity): how far the model is off there is how far it may be off elsewhere. */
#ifndef MT_MODEL_WHATIF_H
#define MT_MODEL_WHATIF_H

#include "model/replay.h"

#define WHATIF_SETTINGS_MAX 32
#define WHATIF_NAME_BYTES   256

struct whatif_setting {
	char conf[WHATIF_NAME_BYTES]; /* as in PYTORCH_ALLOC_CONF; "" the defaults */
	bool empties_each_step;
	bool is_recorded; /* what the run itself had */
	struct replay_result result;
	bool is_beyond; /* reserves more than the card has, where it may */
	uint64_t need_bytes; /* device memory beside the CUDA context, about */
	size_t twin; /* the first setting with the same effect, often this one */
};

/* Why the answer is no more than a hint. */
struct whatif_doubts {
	bool is_async;		/* backend:cudaMallocAsync: its pool is the driver's, nothing is modelled */
	bool has_private_pools; /* inferred: graphs, MemPool */
	bool adapts;		/* the program asked how much memory is free, and may act on it */
	bool conf_unknown;	/* the recorded settings have a word that is not known */
	bool is_partial;	/* blocks in memory that was not seen, or events lost */
	size_t contradictions;	/* choices that no classes explain */
	size_t ambiguous;	/* blocks whose request is known up to 1 MiB only */
};

struct whatif {
	struct sequence *sequence;
	const struct defs *defs;
	struct classes classes;
	struct script *script;
	struct allocator_version version;
	struct allocator_conf recorded_conf;
	char recorded_text[WHATIF_NAME_BYTES];
	struct allocator_limits limits; /* of every replay */
	uint64_t other_bytes; /* of the device that others hold: context, other processes; 0 unknown */
	struct replay_result identity;
	struct whatif_doubts doubts;
	struct whatif_setting settings[WHATIF_SETTINGS_MAX];
	size_t setting_count;
};

/* The caller keeps `sequence` (finished) and `defs`. `total_bytes` of the recorded device, 0 unknown; `other_bytes` of
 * it that PyTorch could not have. Replays the identity. 0 or -ENOMEM; whatif_end() either way. */
int whatif_start(struct whatif *, struct sequence *, const struct defs *, uint64_t total_bytes,
		 uint64_t other_bytes);
void whatif_end(struct whatif *);

/* Adds a setting: 0; -EINVAL: `reason` says what is wrong with it; -ENOSPC: too many. */
int whatif_add(struct whatif *, const char *conf, bool empties_each_step, struct text *reason);
void whatif_add_useful(struct whatif *); /* those worth trying, first the recorded one */

/* Three parts. Settings with the same effect are found. Then, a call a setting, by several threads if wished: the first
 * of those with one effect is replayed without limit, a fraction being one too, the need is searched for, and what
 * happens in a device of `memory_bytes` (0: not asked). 0 or -ENOMEM. At last all have results, and an order. */
void whatif_find_twins(struct whatif *);
int whatif_try(struct whatif *, size_t setting, uint64_t memory_bytes);
/* What runs out last, before it what retries, which what reserves more than `card_bytes` (0: any) would there; then by
 * need, then by peak reserved. */
void whatif_rank(struct whatif *, uint64_t card_bytes);

/* How much the identity is off: of peak reserved, as a part of the recorded. */
double whatif_error(const struct whatif *);

/* For an OOM that was recorded at event `sequence` in the device's capacity (what PyTorch and others beside it could have
 * got in all): writes those of the useful settings, best first, under which the run gets past that point, and
 * returns how many they are; -ENOMEM. Only `count_max` are written. With private pools a replay is good to a fifth: those
 * that get past it, but would not in a fifth less, are counted in `doubtful` instead. */
int whatif_settings_that_fit(struct whatif *, uint64_t sequence, uint64_t capacity_bytes,
			     const struct whatif_setting **fitting, size_t count_max, size_t *doubtful);

#endif
