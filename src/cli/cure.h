/* Whether a setting of PyTorch's allocator would have cured an OOM: what the traced program itself cannot know. */
#ifndef MT_CLI_CURE_H
#define MT_CLI_CURE_H

#include "cli/load.h"
#include "report/verdict.h"

/* A row for each OOM of the model. Replays nothing where the verdict leaves nothing to cure, or the trace not enough to
 * tell: was_replayed is false then. */
void cures_find(const struct loaded *, struct verdict_cure cures[MODEL_OOMS_MAX]);

#endif
