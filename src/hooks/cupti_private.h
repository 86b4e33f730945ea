/* What the files about CUPTI share. */
#ifndef MT_HOOKS_CUPTI_PRIVATE_H
#define MT_HOOKS_CUPTI_PRIVATE_H

#include <cupti.h>
#include <stdbool.h>
#include <stdint.h>

struct record;

/* Functions of CUPTI, by the one name that they have in all versions. */
#define CUPTI_FUNCTIONS(X)                                                                                       \
	X(cuptiSubscribe)                                                                                        \
	X(cuptiUnsubscribe)                                                                                      \
	X(cuptiActivityRegisterCallbacks)                                                                        \
	X(cuptiActivityEnable)                                                                                   \
	X(cuptiActivityDisable)                                                                                  \
	X(cuptiActivityFlushAll)                                                                                 \
	X(cuptiActivityGetNextRecord)                                                                            \
	X(cuptiActivityGetNumDroppedRecords)                                                                     \
	X(cuptiGetTimestamp)                                                                                     \
	X(cuptiGetContextId)                                                                                     \
	X(cuptiGetResultString)

struct cupti {
#define X(name) __typeof__(name) *name;
	CUPTI_FUNCTIONS(X)
#undef X
};

/* cupti_open.c: NULL, or why it cannot be had. A name that the loader knows is tried first: what is loaded already. */
const char *cupti_open(struct cupti *);
/* Are our wrappers in front of CUDA's functions, or did the driver open us? */
bool cupti_is_preloaded(void);

/* cupti_records.c: what CUPTI's records say, as events. `offset_ns` is CLOCK_MONOTONIC less CUPTI's clock. */
struct cupti_reading {
	bool as_witness;
	bool has_pools; /* records of pools are wanted too */
	int64_t offset_ns;
};
/* False: nothing that is told. */
bool cupti_read_record(const CUpti_Activity *, const struct cupti_reading *, struct record *);
void cupti_know_context(CUcontext, uint32_t id);
void cupti_forget_contexts(void);

#endif
