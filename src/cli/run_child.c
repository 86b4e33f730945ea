/* The child of `memtrace run`. Owns its start, the signals on the way to it, and its end. Must
 * never hand on a signal that the child gets anyway: what a terminal sends goes to both of us. */
#include "cli/run_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/verb.h"

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};

/* Runs between fork and exec: no return. */
static void become(char **words, const sigset_t *mask, const struct sigaction *child_action,
		   int report_fd)
{
	output_restore_signals();
	sigaction(SIGCHLD, child_action, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(words[0], words);
	int error = errno;
	ssize_t written = write(report_fd, &error, sizeof error);
	_exit(written == sizeof error && error == ENOENT ? STATUS_NOT_FOUND
							 : STATUS_NOT_EXECUTABLE);
}

/* The errno that exec left behind, 0 when the pipe closed because exec went well. */
static int read_exec_error(int fd)
{
	int error = 0;
	ssize_t got;
	do {
		got = read(fd, &error, sizeof error);
	} while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof error ? error : 0;
}

static void wait_for(struct child *child, const sigset_t *watched)
{
	siginfo_t info;
	while (waitpid(child->pid, &child->wait_status, WNOHANG) == 0) {
		int signal = sigwaitinfo(watched, &info);
		bool from_terminal = info.si_code == SI_KERNEL;
		if (signal > 0 && signal != SIGCHLD && !from_terminal)
			kill(child->pid, signal);
	}
}

static int start(struct child *child, char **words, const sigset_t *mask,
		 const struct sigaction *child_action)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child->pid = fork();
	if (!child->pid)
		become(words, mask, child_action, ends[1]);
	int error = child->pid < 0 ? errno : 0;
	close(ends[1]);
	if (!error && (error = read_exec_error(ends[0])))
		waitpid(child->pid, &child->wait_status, 0);
	close(ends[0]);
	return -error;
}

int child_run(struct child *child, char **words)
{
	struct sigaction before, by_default = {.sa_handler = SIG_DFL};
	sigset_t watched, mask;
	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
		sigaddset(&watched, forwarded[i]);
	/* Ignored, it would reap the child for us, status and all. */
	sigaction(SIGCHLD, &by_default, &before);
	sigprocmask(SIG_BLOCK, &watched, &mask);
	int error = start(child, words, &mask, &before);
	if (!error)
		wait_for(child, &watched);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return error;
}
