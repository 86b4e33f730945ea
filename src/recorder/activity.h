/* Records that are told later than they happen, and not in order (those of CUPTI), put in order. */
#ifndef MT_RECORDER_ACTIVITY_H
#define MT_RECORDER_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

#include "recorder/record.h"

#define ACTIVITY_RECENT 4096 /* so many may others take while a thread waits for its turn to ask after its own */

struct arena;

/* `record.at_ns` orders them: any clock, the same for all. */
struct activities {
	struct arena *arena;
	struct record *waiting; /* oldest first */
	size_t first, count, room;
	struct activity_recent { /* allocations that were taken last */
		uint64_t address, at_ns;
	} recent[ACTIVITY_RECENT];
	unsigned recent_next;
};

int activities_init(struct activities *); /* 0 or -ENOMEM */
int activities_add(struct activities *, const struct record *); /* 0, or -ENOMEM: it is not in */
/* Calls `take` for those not later than `until_ns`, but never for the `keep` latest, in order. A release that comes
 * after the address was given out again was that one's undoing already and is passed over. */
void activities_take(struct activities *, uint64_t until_ns, size_t keep,
		     void (*take)(const struct record *, void *), void *context);

/* Was an allocation at this address among the last that were taken? */
bool activities_knows(const struct activities *, uint64_t address);

#endif
