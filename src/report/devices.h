/* The table of the devices in a summary, and what else the figures of a device allow to say.
 * Private to report/. */
#ifndef MT_REPORT_DEVICES_H
#define MT_REPORT_DEVICES_H

#include "base/text.h"
#include "model/model.h"
#include "report/facts.h"

/* One device: all its rows. Several: one row each. None: a sentence. A blank line follows. */
void devices_print(struct text *, const struct model *, const struct defs *,
		   const struct summary_facts *);

/* "GPU 3", or "GPU (unknown)": memory of a program whose calls never said which device it works on. */
void devices_add_ordinal(struct text *, unsigned ordinal);
const char *devices_name(const struct defs *, const struct model_device *); /* "" unknown */

bool devices_is_pytorch(const struct model_device *); /* did PyTorch's allocator use it? */
/* What every report calls a device's "allocated": PyTorch's live blocks, as torch.cuda.memory_allocated()
 * has it; without PyTorch all that was taken from the driver. */
const struct model_counter *devices_allocated(const struct model_device *);
/* " (96 MiB of it outside PyTorch)", of a peak that has such memory beside PyTorch's blocks. */
void devices_add_outside(struct text *, const struct model_device *);
/* Does `reserved` have memory in it that others than PyTorch hold? */
bool devices_has_outsiders(const struct model_device *);
bool devices_knows_fragmentation(
	const struct model_device *); /* are reserved and allocated both known? */

#endif
