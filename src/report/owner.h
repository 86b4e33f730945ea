/* Who asked, by the name that the model's owners have. */
#ifndef MT_REPORT_OWNER_H
#define MT_REPORT_OWNER_H

#include "model/owner_name.h"
#include "trace/defs.h"
#include "trace/event.h"

/* "pytorch", "nccl", "program", "libfoo.so": in `buffer`, or NULL if unknown. */
const char *owner_of_event(const struct defs *, const struct event *,
			   char buffer[OWNER_NAME_BYTES]);

#endif
