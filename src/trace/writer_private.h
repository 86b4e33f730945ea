/* What front.c and writer.c share. */
#ifndef MT_TRACE_WRITER_PRIVATE_H
#define MT_TRACE_WRITER_PRIVATE_H

#include "trace/writer.h"

#define WRITER_ZSTD_LEVEL 3
#define AREA_ALIGN 64 /* of chunks in a bounded trace: no header lies across two pages */

/* area.c: writes the chunk in scratch (header and content, `bytes` in all) where there is room for it. */
int area_store(struct writer *, size_t bytes);
/* A piece of a checkpoint was stored. */
void area_note_checkpoint(struct writer *, const struct memtrace_chunk *, bool is_first, bool is_last);

/* front.c: brings the trace's own copy of header and live page up to date, if the front is elsewhere. */
int front_copy_out(struct writer *);
/* All is in chunks: the trace stands alone from now on, and a front elsewhere is removed. */
int front_leave(struct writer *);

#endif
