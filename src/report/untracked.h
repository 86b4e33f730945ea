/* What the device says is in use beyond what was traced: rows of the summary, the list of its jumps,
 * and the same in JSON. */
#ifndef MT_REPORT_UNTRACKED_H
#define MT_REPORT_UNTRACKED_H

#include "base/text.h"
#include "model/model.h"
#include "report/json_text.h"
#include "report/layout.h"
#include "trace/defs.h"

#define UNTRACKED_PEAK_COLUMN 57
#define UNTRACKED_EXIT_COLUMN 70

/* Rows under a device's own ones; none if nobody asked the device. */
void untracked_add_rows(struct text *, const struct model_device *);
/* A table of the jumps of all devices, largest first, at most `limit` (0: all); unless `is_full`
 * nothing if there is only the first one, or several devices. */
void untracked_add_jumps(struct text *, const struct model *, const struct defs *, size_t limit,
			 bool is_full, bool ascii);

struct model_oom;
/* Bytes of other processes when memory ran out; false: unknown. */
bool untracked_others_at_oom(const struct model_oom *, uint64_t *bytes);

/* Keys of a device: in_use_bytes, other_processes_bytes, untracked_bytes and what goes with it. */
void untracked_add_json(struct json *, const struct defs *, const struct model_device *);

#endif
