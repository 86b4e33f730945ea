/* What front.c and writer.c share. */
#ifndef MT_TRACE_WRITER_PRIVATE_H
#define MT_TRACE_WRITER_PRIVATE_H

#define WRITER_ZSTD_LEVEL 3

#endif
