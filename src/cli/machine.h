/* The simulated machine that the processes of one run share: what one of them has in use on a card, the others
 * cannot have. For `run --simulate` and for each run of `fit`. */
#ifndef MT_CLI_MACHINE_H
#define MT_CLI_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "simgpu/sim_machine.h"

struct machine {
	char path[128];
	const char *name; /* for SIMGPU_MACHINE, in `path`; NULL: none, each process has a machine of its own */
	int descriptor;
};

struct machine_peak {
	uint64_t bytes, process_count;
};

/* `id`: letters, digits, - _ . that no other run has. What runs that were killed left behind goes. False:
 * it cannot be had, and it was said why. */
bool machine_open(struct machine *, const char *id);
/* The most that all processes together had in use on a device; false: nothing is known. */
bool machine_peak(const struct machine *, unsigned device, struct machine_peak *);
/* Did the host have no addresses left for it? */
bool machine_is_host_short(const struct machine *);
/* Removes it. Nothing happens to one that was never opened: all zeros. */
void machine_close(struct machine *);

#endif
