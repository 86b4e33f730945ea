/* What the recorder takes from texts that others wrote. Pure: no state, no files. */
#ifndef MT_RECORDER_TEXTS_H
#define MT_RECORDER_TEXTS_H

#include <stdbool.h>

#include "base/text.h"

/* "torch VERSION" from what stands in PyTorch's version.py; false: no version stands there. */
bool texts_torch_version(const char *content, struct text *version);

/* The argument as it may be kept: itself, or in `kept` without a value that is secret. *hide_next, false before
 * the first argument, says that the next one is the value of a secret option. */
const char *texts_argument(const char *argument, bool *hide_next, struct text *kept);

#endif
