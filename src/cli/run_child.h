/* Starts the program of `memtrace run`, hands signals on to it and waits for it. */
#ifndef MT_CLI_RUN_CHILD_H
#define MT_CLI_RUN_CHILD_H

#include <sys/types.h>

struct child {
	pid_t pid;
	int wait_status; /* as waitpid() gives it */
};

/* `words`: the program, looked for in PATH, and its arguments. 0 when it has run to its end; -errno
 * when it could not be started. */
int child_run(struct child *, char **words);

#endif
