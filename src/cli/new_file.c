/* How a file that must not be half written gets its name. Owns the name that it has before, and the signals that end
 * the tool meanwhile. Must never replace a file, nor leave a new one under its name that is not complete. */
#define _GNU_SOURCE
#include "cli/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <memtrace/trace.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/verb.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGXFSZ};
#define SIGNAL_COUNT (sizeof signals / sizeof *signals)

static struct sigaction before[SIGNAL_COUNT];
static const char *volatile part_now; /* what a signal removes */

/* The signal's own action follows as soon as this returns. */
static void remove_part(int number)
{
	const char *part = part_now;
	if (part)
		unlink(part);
	raise(number);
}

/* One that is ignored stays so. */
static void watch_signals(void)
{
	const struct sigaction action = {.sa_handler = remove_part, .sa_flags = (int)SA_RESETHAND};
	for (size_t i = 0; i < SIGNAL_COUNT; i++)
		if (!sigaction(signals[i], NULL, &before[i]) && before[i].sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

static void forget(void)
{
	part_now = NULL;
	for (size_t i = 0; i < SIGNAL_COUNT; i++)
		sigaction(signals[i], &before[i], NULL);
}

/* In the folder of `name`, for the sake of rename(); short, for a name may be as long as one can be. */
static int name_part(struct new_file *file)
{
	const char *slash = strrchr(file->name, '/');
	int folder_bytes = slash ? (int)(slash + 1 - file->name) : 0;
	struct stat about;
	for (int i = 0; i < 1000; i++) {
		int length = snprintf(file->part, sizeof file->part, "%.*smemtrace.%d-%d.part", folder_bytes,
				      file->name, (int)getpid(), i);
		if ((size_t)length >= sizeof file->part)
			return -ENAMETOOLONG;
		if (lstat(file->part, &about))
			return errno == ENOENT ? 0 : -errno;
	}
	return -EEXIST;
}

int new_file_begin(struct new_file *file, const char *name)
{
	struct stat about;
	file->name = name;
	if (!lstat(name, &about))
		return -EEXIST;
	int error = name_part(file);
	if (error)
		return error;
	part_now = file->part;
	watch_signals();
	return 0;
}

static int sync_part(const char *part)
{
	int fd = open(part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int error = fd < 0 || fsync(fd) ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return error == -EINVAL ? 0 : error; /* a file system that has nothing to sync */
}

/* The third way, for file systems that know neither of the others, holds the name by an empty file for a moment. */
static int give_name(const char *part, const char *name)
{
	if (!renameat2(AT_FDCWD, part, AT_FDCWD, name, RENAME_NOREPLACE))
		return 0;
	if (errno == EEXIST)
		return -EEXIST;
	if (!link(part, name))
		return unlink(part) ? -errno : 0;
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	if (!rename(part, name))
		return 0;
	int error = -errno;
	unlink(name);
	return error;
}

int new_file_finish(struct new_file *file)
{
	int error = sync_part(file->part);
	if (!error)
		error = give_name(file->part, file->name);
	if (error)
		unlink(file->part);
	forget();
	return error;
}

void new_file_drop(struct new_file *file)
{
	unlink(file->part);
	forget();
}

/* A pipe would wait for its other end. */
static bool is_trace(const char *name)
{
	char magic[sizeof MEMTRACE_MAGIC - 1];
	struct stat about;
	if (stat(name, &about) || !S_ISREG(about.st_mode))
		return false;
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	bool is_one = fd >= 0 && read(fd, magic, sizeof magic) == sizeof magic &&
		      !memcmp(magic, MEMTRACE_MAGIC, sizeof magic);
	if (fd >= 0)
		close(fd);
	return is_one;
}

static int open_in_place(struct new_file *file, const char *name)
{
	file->part[0] = '\0';
	if (is_trace(name))
		return -EEXIST;
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return fd < 0 ? -errno : fd;
}

const char *new_file_why(int error)
{
	return error == -EEXIST ? "a trace has that name, and nothing is written over one" : strerror(-error);
}

int new_file_status(const char *name, int error)
{
	if (error)
		tell("cannot write %s: %s", name, new_file_why(error));
	return error ? STATUS_UNREADABLE : STATUS_YES;
}

int new_file_open(struct new_file *file, const char *name)
{
	int error = new_file_begin(file, name);
	if (error == -EEXIST)
		return open_in_place(file, name);
	if (error)
		return error;
	int fd = open(file->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	error = fd < 0 ? -errno : 0;
	if (error)
		new_file_drop(file);
	return error ? error : fd;
}

int new_file_close(struct new_file *file, int fd, int error)
{
	if (close(fd) && !error)
		error = -errno;
	if (!file->part[0])
		return error;
	if (!error)
		return new_file_finish(file);
	new_file_drop(file);
	return error;
}

int new_file_write(const char *name, const struct text *text)
{
	struct new_file file;
	int fd = text_failed(text) ? -ENOMEM : new_file_open(&file, name);
	return fd < 0 ? fd : new_file_close(&file, fd, output_write_bytes(fd, text->data, text->used_bytes));
}
