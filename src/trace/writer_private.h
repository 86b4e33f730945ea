/* What front.c and writer.c share. */
#ifndef MT_TRACE_WRITER_PRIVATE_H
#define MT_TRACE_WRITER_PRIVATE_H

#define MEMTRACE_RELEASE "0.1.0"
#define WRITER_ZSTD_LEVEL 3

#endif
