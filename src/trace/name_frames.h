/* Names for native frames from the files of their modules: the same search in the traced program
 * when it ends, and in the tool for a trace whose program could not do it. */
#ifndef MT_TRACE_NAME_FRAMES_H
#define MT_TRACE_NAME_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/defs.h"

struct frame_namer {
	/* Takes what was found: the symbol is valid during the call, the offset is that of the
	 * return address in the function. False: stop. */
	bool (*take)(struct frame_namer *, uint32_t frame, const char *symbol, uint64_t offset);
	bool (*goes_on)(
		struct frame_namer *); /* asked before each file and each look-up; false: stop */
	bool any_build; /* also modules that have no build id: only where the file is surely the one
			   that ran */
};

/* Goes through the frames above `after` that have no name. False when it was stopped. */
bool name_frames(struct frame_namer *, const struct defs *, uint32_t after);

/* Names what it can in `defs` itself. */
void name_frames_here(struct defs *);

#endif
