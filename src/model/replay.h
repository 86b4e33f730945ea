/* A recorded sequence under other settings of the allocator, or in other memory. */
#ifndef MT_MODEL_REPLAY_H
#define MT_MODEL_REPLAY_H

#include "model/allocator.h"
#include "model/script.h"
#include "trace/defs.h"

struct replay_choice {
	struct allocator_conf conf;
	struct allocator_limits limits;
	/* The texts of settings that the program changed while it ran: those changes apply too (the identity). NULL: not. */
	const struct defs *changes;
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

/* After an OOM the replay goes on as if it had fitted. 0 or -ENOMEM. May be called by several threads with one script. */
int replay_run(const struct script *, const struct replay_choice *, struct replay_result *);

/* The least device memory in which the run gets through, if need be by retries, in steps of 2 MiB: it fits, and with one step
 * less it does not. About, because more memory can make a run fail that less did not. A fraction is of a device that has
 * `other_bytes` more. `result` is of the run without limit. 0 or -ENOMEM. */
int replay_find_need(const struct script *, const struct replay_choice *, uint64_t other_bytes,
		     const struct replay_result *, uint64_t *need_bytes);

#endif
