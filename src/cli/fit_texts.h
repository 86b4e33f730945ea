/* Lines that `memtrace fit` reads from files that others wrote. Pure. */
#ifndef MT_CLI_FIT_TEXTS_H
#define MT_CLI_FIT_TEXTS_H

#include <stdbool.h>
#include <stdint.h>

/* MemAvailable, from a line of /proc/meminfo. */
bool fit_text_available(const char *line, uint64_t *bytes);

#endif
