/* The environment in which a program runs on the simulated GPU: for `run --simulate` and `fit`. */
#ifndef MT_CLI_SIMULATE_H
#define MT_CLI_SIMULATE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "cli/machine.h"
#include "simgpu/sim_card.h"

struct simulation {
	struct sim_card card;
	uint64_t memory_bytes; /* instead of the card's; 0: the card's */
	uint64_t device_count; /* 1 … SIMULATE_DEVICES_MAX */
	bool has_values;       /* small whole numbers are computed on the CPU */
	bool is_late;	       /* work ends only when the program waits for it */
};

#define SIMULATE_DEVICES_MAX SIM_MACHINE_DEVICES

/* After run_preload(): the stand-ins behind libmemtrace.so in LD_PRELOAD, where a library that is
 * loaded already wins over every RPATH, and before everything in LD_LIBRARY_PATH; `has_values`: Python
 * finds its hook; `has_ranks`: it works inside the exchange of objects alone. False: it was said why. */
bool simulate_preload(bool has_values, bool has_ranks);

/* The card, its memory and count, and the machine if there is one, for children. False: out of memory. */
bool simulate_set_card(const struct simulation *, const struct machine *);

/* What of the figures is exact, what a lower bound, what assumed; which cards processes shared. */
void simulate_add_promise(struct text *, const struct simulation *, const struct machine *);

/* Why `program` did not reach the simulated GPU, as far as its Python tells: a PyTorch without CUDA
 * has it named, with what to install. False: nothing was found out. */
bool simulate_explain_silence(char *const *program);

/* What the program or what is installed for its Python needs of CUDA that the stand-ins lack, a line a library:
 * of a program that could not start. False: nothing is missing. */
bool simulate_explain_needs(char *const *program);

/* The folder of the stand-ins; false: it was said that there is none. */
bool simulate_find_stand_ins(char folder[PATH_MAX]);

/* What the Python that runs the program prints of a few lines, without memtrace in it. False: nothing, or none is
 * seen in the words and the first line of a script. */
bool simulate_ask_python(char *const *program, const char *question, char *answer, size_t bytes, char python[PATH_MAX]);

#endif
