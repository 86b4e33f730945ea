/* Folded stacks, as flamegraph.pl and speedscope read them: "outermost;…;innermost bytes". */
#ifndef MT_REPORT_FLAME_H
#define MT_REPORT_FLAME_H

#include "base/text.h"
#include "trace/defs.h"

/* One line: Python frames from the outermost in, then native frames from Python's evaluation loop
 * (or the start of the thread) in. Semicolons, control bytes and backslashes in names are written
 * \xNN. */
void flame_add(struct text *, const struct defs *, uint32_t stack, uint64_t bytes);

#endif
