/* A recorded sequence under other settings of the allocator, or in other memory. */
#ifndef MT_MODEL_REPLAY_H
#define MT_MODEL_REPLAY_H

#include "model/allocator.h"
#include "model/layout.h"
#include "trace/defs.h"

struct replay_choice {
	struct allocator_conf conf;
	struct allocator_limits limits;
	bool keeps_settings;   /* changes of the settings while the program ran apply too: the identity */
	bool empties_each_step; /* empty_cache() after every step, and not where it was recorded */
	bool stops_at_oom;
};

struct replay_result {
	struct allocator_counters counters;
	uint64_t ooms;
	uint64_t oom_step; /* of the first: steps completed before it */
	uint64_t oom_sequence; /* of the event that did not fit */
	uint64_t oom_bytes;
	uint64_t steps;
};

/* `defs` has the texts of settings that changed; NULL: none did. After an OOM the replay goes on as if it had fitted.
 * 0 or -ENOMEM. */
int replay_run(const struct sequence *, const struct classes *, const struct defs *defs,
	       const struct replay_choice *, struct replay_result *);

/* The least device memory in which nothing fails, in steps of 2 MiB, found by halving: about, because more
 * memory can make a run fail that less did not. `result` is of the run without limit. 0 or -ENOMEM. */
int replay_find_need(const struct sequence *, const struct classes *, const struct defs *,
		     const struct replay_choice *, const struct replay_result *,
		     uint64_t *need_bytes);

#endif
