/* How old what was live at an OOM was, in steps. Private to report/. */
#ifndef MT_REPORT_AGES_H
#define MT_REPORT_AGES_H

#include "base/arena.h"
#include "model/model.h"
#include "model/segments.h"

struct births { /* of live blocks, by stack: sequences */
	struct birth {
		uint64_t oldest, newest; /* 0: none */
	} *of_stack;
	uint32_t count;
};

/* Of PyTorch's blocks at that OOM, in memory of `arena`; none where there is no map of them. */
struct births births_at_oom(const struct model *, size_t index, struct arena *);
struct birth births_of_stack(const struct births *, uint32_t stack);

struct ages {
	const struct model *model;
	unsigned ordinal;
	uint64_t steps; /* completed when memory ran out; 0: there are no ages to tell */
};
struct ages ages_at_oom(const struct model *, size_t index);
/* In completed steps; 0: born in the step that went on. */
uint64_t age_of(const struct ages *, uint64_t born);

#endif
