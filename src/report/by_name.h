/* `memtrace report --by op|module|category`: the memory at a peak, put together by a name. Private to report/. */
#ifndef MT_REPORT_BY_NAME_H
#define MT_REPORT_BY_NAME_H

#include "report/by.h"
#include "report/sites.h"

/* A table: heading, at most `limit` rows (0: all), and one for the rest. */
void by_name_print(struct text *, const struct model *, const struct defs *, struct composition, enum by_kind,
		   size_t limit);

/* The operator that Python called, as PyTorch's profiler names it ("aten::linear"), or of a backward
 * pass its node ("MmBackward0"). False: the stack shows none. */
bool by_name_operator(struct text *, const struct defs *, uint32_t stack);
/* The innermost module whose forward() the stack is in, the program's own before a library's: its
 * frame; NULL: none. */
const struct def_python_frame *by_name_module(const struct defs *, uint32_t stack);

#endif
