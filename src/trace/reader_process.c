/* Is the traced process still there? Owns: the comparison with /proc. A pid alone proves nothing:
 * it may have been given to another process, or belong to another boot or another machine. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/reader_private.h"

static bool read_small(const char *path, char *buffer, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t got = read(fd, buffer, bytes - 1);
	close(fd);
	buffer[got > 0 ? got : 0] = 0;
	return got > 0;
}

/* Field 22 of a line whose second field, in parentheses, may hold anything. 0 if there is none. */
static uint64_t start_ticks(const char *stat)
{
	const char *at = strrchr(stat, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, 0, 10) : 0;
}

static bool is_this_boot(const char *boot_id)
{
	char here[64];
	if (!read_small("/proc/sys/kernel/random/boot_id", here, sizeof here))
		return false;
	here[strcspn(here, "\n")] = 0;
	return *boot_id && !strcmp(here, boot_id);
}

bool process_is_running(const struct memtrace_header *header)
{
	char path[64], stat[1024];
	if (header->pid == 0 || header->pid > INT_MAX || !is_this_boot(header->boot_id))
		return false;
	if (kill((pid_t)header->pid, 0) && errno != EPERM)
		return false;
	struct text text;
	text_init_fixed(&text, path, sizeof path);
	text_printf(&text, "/proc/%u/stat", header->pid);
	return read_small(text_string(&text), stat, sizeof stat) &&
	       start_ticks(stat) == header->pid_start_ticks;
}
