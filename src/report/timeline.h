/* How much there was when, over the whole run, as a line of bars. */
#ifndef MT_REPORT_TIMELINE_H
#define MT_REPORT_TIMELINE_H

#include <stdbool.h>

#include "base/text.h"
#include "model/model.h"

/* Two lines a device; nothing of a run that is over at once. */
void timeline_print(struct text *, const struct model *, bool ascii);

#endif
