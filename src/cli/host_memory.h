/* Did a program end for want of the host's memory, not of a GPU's? For `run` and `fit`. */
#ifndef MT_CLI_HOST_MEMORY_H
#define MT_CLI_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* How many processes the kernel has killed for want of memory since it was started, also in containers; 0 where it
 * does not tell. */
uint64_t host_kill_count(void);

/* A line about a program that ended with `wait_status`, if it was killed or the kernel has killed since there were
 * `kills_before`. False: neither. */
bool host_add_kill(struct text *, int wait_status, uint64_t kills_before);

/* A line about a simulated GPU for which the host had no addresses left. */
void host_add_shortage(struct text *);

#endif
