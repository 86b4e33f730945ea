/* What the device says is in use, against what is tracked (reconcile.c). */
#ifndef MT_MODEL_RECONCILE_H
#define MT_MODEL_RECONCILE_H

#include "model/model.h"

struct device;

struct untracked { /* in use, and no memory that we know */
	bool is_known, in_use_is_known;
	bool is_own; /* by this process; else by all on the device */
	bool is_final;
	uint64_t bytes;
	uint64_t at_peak_bytes;   /* at the first reading after reserved was highest */
	uint64_t peak_seen_bytes; /* of reserved, at the last reading */
	uint64_t marked_bytes;    /* after the last jump */
	uint64_t in_use_bytes, others_bytes;
	uint64_t device_bytes; /* its size as NVML has it, 0 unknown */
	struct model_jump jumps[MODEL_JUMPS_MAX];
	uint32_t jump_count, jumps_dropped;
};

struct causes { /* events since the last jump that may explain the next one */
	uint32_t contexts, modules, graphs;
	uint32_t stack; /* of the last */
};

void reconcile_note_cause(struct model *, const struct event *);
void reconcile_note_meminfo(struct model *, const struct event *);
void reconcile_note_reading(struct model *, const struct event *);
void reconcile_describe(const struct device *, struct model_device *);

#endif
