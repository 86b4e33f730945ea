/* Keeps a run of `memtrace fit` together. Owns who of its processes is left, and their end: whoever loses its parent
 * becomes a child of the keeper. Must never outlive its run, nor leave anything of it behind. */
#include "cli/fit_keeper.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/verb.h"
#include "trace/proc.h"

#define END_SIGNAL SIGTERM /* from `fit`, and from the kernel when `fit` is gone */

/* Nobody would be left to end this process when its parent is killed. */
static void end_with(pid_t parent, int number)
{
	prctl(PR_SET_PDEATHSIG, number);
	if (getppid() != parent)
		raise(number);
}

/* ---------- the end ---------- */

static bool is_child(const char *pid)
{
	char path[300], stat[512];
	if (*pid < '0' || *pid > '9')
		return false;
	snprintf(path, sizeof path, "/proc/%s/stat", pid);
	return proc_read(path, stat, sizeof stat) && proc_stat_parent(stat) == (uint64_t)getpid();
}

/* False: there is none that may be killed (one that set its user id may not). */
static bool kill_children(void)
{
	bool has_killed = false;
	const struct dirent *entry;
	DIR *processes = opendir("/proc");
	while (processes && (entry = readdir(processes)))
		if (is_child(entry->d_name))
			has_killed |= !kill((pid_t)atoi(entry->d_name), SIGKILL);
	if (processes)
		closedir(processes);
	return has_killed;
}

/* Children of those that end become ours before these can be waited for. */
static void end_all(pid_t program)
{
	kill(-program, SIGKILL); /* all there is to do without /proc */
	while (kill_children() && waitpid(-1, NULL, 0) > 0)
		;
}

/* As the program did. */
static void end_like(int status) __attribute__((noreturn));

static void end_like(int status)
{
	const struct rlimit none = {0};
	sigset_t all;
	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	setrlimit(RLIMIT_CORE, &none); /* the program's own is there */
	signal(WTERMSIG(status), SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	raise(WTERMSIG(status));
	_exit(STATUS_SIGNAL + WTERMSIG(status));
}

/* ---------- meanwhile ---------- */

static void keep(pid_t program, const sigset_t *watched) __attribute__((noreturn));

static void keep(pid_t program, const sigset_t *watched)
{
	int status, number = 0;
	while (number != END_SIGNAL) {
		pid_t ended = waitpid(-1, &status, WNOHANG);
		if (ended == program) {
			end_all(program);
			end_like(status);
		}
		if (ended <= 0)
			number = sigwaitinfo(watched, NULL);
	}
	end_all(program);
	end_like(SIGKILL);
}

/* As it was when `fit` began. Ignored, it would reap its children for it. */
static struct sigaction child_before;

static void take_children(void)
{
	static bool is_done;
	struct sigaction by_default = {.sa_handler = SIG_DFL};
	if (!is_done)
		is_done = !sigaction(SIGCHLD, &by_default, &child_before);
}

static void start(pid_t fit, const sigset_t *mask, void (*become)(const void *), const void *argument)
	__attribute__((noreturn));

/* All signals are blocked: a terminal's, too, are none for the keeper. */
static void start(pid_t fit, const sigset_t *mask, void (*become)(const void *), const void *argument)
{
	sigset_t watched;
	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	sigaddset(&watched, END_SIGNAL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	end_with(fit, END_SIGNAL);
	pid_t keeper = getpid(), program = fork();
	if (program < 0)
		_exit(STATUS_NOT_EXECUTABLE);
	if (program) {
		setpgid(program, program);
		keep(program, &watched);
	}
	end_with(keeper, SIGKILL);
	setpgid(0, 0);
	sigaction(SIGCHLD, &child_before, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	become(argument);
	_exit(STATUS_NOT_EXECUTABLE);
}

pid_t fit_keeper_start(void (*become)(const void *), const void *argument)
{
	sigset_t all, mask;
	pid_t fit = getpid();
	take_children();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	pid_t keeper = fork();
	if (!keeper)
		start(fit, &mask, become, argument);
	int error = errno;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	errno = error;
	return keeper;
}

void fit_keeper_end(pid_t keeper)
{
	kill(keeper, END_SIGNAL);
}
