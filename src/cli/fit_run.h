/* One run of the program for `memtrace fit`: with its values put in, on a simulated card, watched
 * until its verdict is known. */
#ifndef MT_CLI_FIT_RUN_H
#define MT_CLI_FIT_RUN_H

#include <limits.h>
#include <sys/types.h>

#include "cli/fit_search.h"
#include "cli/readbacks.h"
#include "cli/simulate.h"

#define FIT_ENDLESS_BYTES ((uint64_t)8 << 40) /* the card without an end */

struct fit_order {
	char *const *words; /* the program, values put in */
	struct simulation simulation;
	uint64_t steps;     /* of the optimizer, after which it is ended; 0: it runs to its own end */
};

struct fit_running {
	pid_t pid; /* of its keeper; 0: none */
	char folder[PATH_MAX]; /* of its traces, its output and its figures */
	uint64_t start_ns, next_look_ns, steps;
	uint64_t context_bytes, host_kills_before;
	struct machine machine; /* that its processes share, and no other run */
	bool is_stopped; /* by us: the verdict is known */
	uint64_t resident_bytes; /* of host memory, at its end */
};

enum fit_progress {
	FIT_RUNNING,
	FIT_ENDED, /* the outcome is filled in */
	FIT_BROKEN /* it failed for another reason than memory, or used no GPU; `why` is filled in */
};

/* Below `parent`, a folder. 0, or -errno. After simulate_preload(). */
int fit_run_start(struct fit_running *, const struct fit_order *, const char *parent,
		  unsigned number);
enum fit_progress fit_run_look(struct fit_running *, struct fit_outcome *, struct text *why);
/* What it read back from its GPU; before its folder is removed. */
void fit_run_readbacks(const struct fit_running *, struct readbacks *);
void fit_run_kill(struct fit_running *);
void fit_run_remove(struct fit_running *); /* its folder */

#endif
