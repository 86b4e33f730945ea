/* A recorded sequence made ready for many replays: what every setting of the allocator has to answer, in 16
 * bytes each. What follows from the limits of the recorded run (its retries) is not in it. */
#ifndef MT_MODEL_SCRIPT_H
#define MT_MODEL_SCRIPT_H

#include "model/layout.h"

enum act_kind {
	ACT_ALLOC,   /* bytes asked; slot: where the block is kept until it is freed */
	ACT_BRIEF,   /* the same, and the next act is the ACT_FREE of it */
	ACT_FREE,    /* slot */
	ACT_TRY,     /* the recorded run gave up on these bytes */
	ACT_TAKE,    /* others took bytes from the driver */
	ACT_GIVE,    /* and gave them back */
	ACT_EMPTY,   /* the program's empty_cache() */
	ACT_RELEASE, /* slot: which classes gave back what they had */
	ACT_STEP,
	ACT_SETTINGS, /* slot: string id of the new settings */
};

struct act {
	uint64_t bytes;
	uint32_t slot;
	uint16_t class_index;
	uint8_t kind; /* enum act_kind */
};

struct script {
	struct arena *arena;
	struct act *acts;
	size_t act_count;
	uint64_t *sequences; /* of each act's event */
	uint32_t slot_count;
	uint64_t largest_bytes; /* asked at once */
	uint64_t least_bytes;	/* the most that was asked for and live: no setting can do with less */
	bool has_changes;	/* of the settings */
	bool (*releases)[CLASSES_MAX]; /* by class */
	uint32_t release_count, release_capacity;
	const struct classes *classes;
};

/* Of a sequence whose classes are known. It must not outlive `classes`. NULL: out of memory. */
struct script *script_create(const struct sequence *, const struct classes *);
void script_release(struct script *);

#endif
