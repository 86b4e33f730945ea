/* Puts libmemtrace.so into LD_PRELOAD. Private to `memtrace run`. */
#ifndef MT_CLI_RUN_PRELOAD_H
#define MT_CLI_RUN_PRELOAD_H

/* Finds the library next to the tool or in ../lib/memtrace, and appends it. 0, or -1: the reason
 * was said. */
int run_preload(void);

#endif
