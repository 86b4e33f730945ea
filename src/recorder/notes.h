/* What the recorder writes beside the trace: facts about the process, reports at an OOM and at the end. */
#ifndef MT_RECORDER_NOTES_H
#define MT_RECORDER_NOTES_H

#include <memtrace/trace.h>
#include <stddef.h>

struct session;

/* argv, ranks, host, folder, allocator settings: definitions at the start of the trace. */
void notes_tell_process(struct session *);
/* PyTorch's and Python's version, once their libraries have been seen. For the draining thread. */
void notes_tell_framework(struct session *);
/* <base>.oomN.txt and its first block on stderr. */
void notes_report_oom(struct session *, size_t index);
/* <base>.txt and the same on stderr. */
void notes_report_summary(struct session *, enum memtrace_ended how, int status);

#endif
