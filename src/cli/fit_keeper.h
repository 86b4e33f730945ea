/* The process between `memtrace fit` and a run of it: the run's processes, also those in sessions of their own, end
 * when their first one has, when `fit` says so, and when `fit` is killed. */
#ifndef MT_CLI_FIT_KEEPER_H
#define MT_CLI_FIT_KEEPER_H

#include <sys/types.h>

/* `become` runs in the program's process, leader of a group of its own, with the signals as they were, and does not
 * return. The keeper's pid, whose wait status is the program's, and whose host memory is the largest process's; -1 and
 * errno. */
pid_t fit_keeper_start(void (*become)(const void *), const void *argument);
void fit_keeper_end(pid_t keeper); /* all processes of its run get SIGKILL, and then it ends; not waited for */

#endif
