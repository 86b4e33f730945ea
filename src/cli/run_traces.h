/* The traces that the processes of one `memtrace run` left, and what is said of them. */
#ifndef MT_CLI_RUN_TRACES_H
#define MT_CLI_RUN_TRACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/readbacks.h"

struct tree {
	const char *id;    /* of MEMTRACE_TREE */
	uint64_t begin_ns; /* CLOCK_REALTIME before the first process */
	pid_t child;
	int signal; /* that killed the child, 0 none */
	struct readbacks *readbacks; /* to which those of all traces are added; NULL: not wanted */
};

/* Prints to stderr: nothing for a process that printed its own summary; the summary of one that
 * could not; a table of several. False: there is no trace. */
bool traces_report(const struct tree *);

#endif
