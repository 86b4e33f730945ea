/* Owns our system calls on files. It must never let one of them kill, block for long, or write into a file that
 * is not ours. */
#include "trace/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct quiet { /* signals that were blocked around a call */
	sigset_t before;
	sigset_t added; /* those that the thread had not blocked and that were not pending */
};

static void quiet_begin(struct quiet *quiet)
{
	sigset_t both, pending;
	sigemptyset(&both);
	sigaddset(&both, SIGXFSZ);
	sigaddset(&both, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &both, &quiet->before);
	sigemptyset(&quiet->added);
	for (const int *signal = (const int[]){ SIGXFSZ, SIGPIPE, 0 }; *signal; signal++)
		if (!sigismember(&quiet->before, *signal) && !sigismember(&pending, *signal))
			sigaddset(&quiet->added, *signal);
}

static void quiet_end(struct quiet *quiet)
{
	int saved = errno;
	const struct timespec none = { 0, 0 };
	while (sigtimedwait(&quiet->added, NULL, &none) > 0)
		continue;
	pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
	errno = saved;
}

#define HIGH_DESCRIPTOR 900

/* Out of the way: the lowest free number is what the program's next open() is to get, and 0, 1 and 2 are never ours
 * even if it has closed them. */
static int move_up(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
	if (high < 0)
		high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (high < 0 && fd >= 3)
		return fd; /* the last one that is free */
	int error = errno;
	close(fd);
	errno = error;
	return high;
}

int sink_create(struct sink *sink, const char *path)
{
	struct stat facts;
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	sink->fd = fd < 0 ? fd : move_up(fd);
	if (sink->fd < 0) {
		int error = -errno;
		if (fd >= 0)
			unlink(path);
		return error;
	}
	if (fstat(sink->fd, &facts)) {
		int error = -errno;
		close(sink->fd);
		sink->fd = -1;
		return error;
	}
	sink->device = facts.st_dev;
	sink->inode = facts.st_ino;
	return 0;
}

int sink_is_ours(const struct sink *sink)
{
	struct stat facts;
	return sink->fd >= 0 && !fstat(sink->fd, &facts) && facts.st_dev == sink->device &&
	       facts.st_ino == sink->inode;
}

int sink_reserve(struct sink *sink, uint64_t offset, uint64_t bytes)
{
	struct quiet quiet;
	quiet_begin(&quiet);
	int error = posix_fallocate(sink->fd, (off_t)offset, (off_t)bytes);
	quiet_end(&quiet);
	return -error;
}

static int write_all(int fd, const char *data, size_t bytes, uint64_t offset)
{
	while (bytes) {
		ssize_t done = pwrite(fd, data, bytes, (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		data += done;
		bytes -= (size_t)done;
		offset += (uint64_t)done;
	}
	return 0;
}

int sink_write(struct sink *sink, const void *data, size_t bytes, uint64_t offset)
{
	struct quiet quiet;
	if (!sink_is_ours(sink))
		return -EBADF;
	quiet_begin(&quiet);
	int error = write_all(sink->fd, data, bytes, offset);
	quiet_end(&quiet);
	return error;
}

int sink_read(const struct sink *sink, void *data, size_t bytes, uint64_t offset)
{
	ssize_t done = -1;
	if (!sink_is_ours(sink))
		return -EBADF;
	do
		done = pread(sink->fd, data, bytes, (off_t)offset);
	while (done < 0 && errno == EINTR);
	if (done < 0)
		return -errno;
	return (size_t)done == bytes ? 0 : -EIO;
}

void sink_punch(struct sink *sink, uint64_t offset, uint64_t bytes)
{
	if (sink_is_ours(sink))
		(void)!fallocate(sink->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
}

void sink_close(struct sink *sink)
{
	if (sink_is_ours(sink))
		close(sink->fd);
	sink->fd = -1;
}

void sink_say(int fd, const char *data, size_t bytes)
{
	static bool is_stuck; /* nobody reads: one second of waiting is enough */
	struct quiet quiet;
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	quiet_begin(&quiet);
	int found = poll(&ready, 1, is_stuck ? 0 : 1000);
	is_stuck = found == 0;
	if (found == 1 && !(ready.revents & (POLLERR | POLLNVAL)))
		(void)!write(fd, data, bytes);
	quiet_end(&quiet);
}
