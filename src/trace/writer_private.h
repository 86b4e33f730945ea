/* What front.c and writer.c share. */
#ifndef MT_TRACE_WRITER_PRIVATE_H
#define MT_TRACE_WRITER_PRIVATE_H

#include "trace/writer.h"

#define WRITER_ZSTD_LEVEL 3

/* front.c: brings the trace's own copy of header and live page up to date, if the front is elsewhere. */
int front_copy_out(struct writer *);
/* All is in chunks: the trace stands alone from now on, and a front elsewhere is removed. */
int front_leave(struct writer *);

#endif
