/* Optional calls for a program that libmemtrace.so is preloaded into. They are weak: without it they are absent, and
 * nothing needs to be linked. From Python: ctypes.CDLL(None).memtrace_mark(b"step"), if it has that name. */
#ifndef MEMTRACE_MEMTRACE_H
#define MEMTRACE_MEMTRACE_H

#ifdef __cplusplus
extern "C" {
#endif

/* A step of the program ends: of its training loop, a request, an epoch. Any thread; costs an event. */
extern void memtrace_mark(const char *name) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif
