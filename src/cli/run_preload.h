/* Puts libmemtrace.so into LD_PRELOAD. For `memtrace run` and `memtrace fit`. */
#ifndef MT_CLI_RUN_PRELOAD_H
#define MT_CLI_RUN_PRELOAD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Finds the library next to the tool or in ../lib/memtrace, and appends it. 0, or -1: the reason
 * was said. */
int run_preload(void);

/* The first of `places`, which count from the tool's own folder, that is there and that the loader
 * takes in LD_PRELOAD. False: it was said that `what` is missing, or what is wrong with its path. */
bool run_find_beside(const char *what, const char *const *places, size_t count,
		     char path[PATH_MAX]);

#endif
