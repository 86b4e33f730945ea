/* Who asked, by the name that the model's owners have. */
#ifndef MT_REPORT_OWNER_H
#define MT_REPORT_OWNER_H

#include "trace/defs.h"
#include "trace/event.h"

#define OWNER_NAME_BYTES 64

/* "pytorch", "nccl", "program", "libfoo.so": in `buffer`, or NULL if unknown. */
const char *owner_of_event(const struct defs *, const struct event *,
			   char buffer[OWNER_NAME_BYTES]);
const char *
owner_title(const char *owner); /* for people: "nccl" → "NCCL"; other names as they are */

#endif
