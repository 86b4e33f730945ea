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

#include "trace/proc.h"
#include "trace/reader_private.h"

static bool is_this_boot(const char *boot_id)
{
	char here[64];
	proc_boot_id(here, sizeof here);
	return *boot_id && !strcmp(here, boot_id);
}

bool process_is_running(const struct memtrace_header *header)
{
	if (header->pid == 0 || header->pid > INT_MAX || !is_this_boot(header->boot_id))
		return false;
	if (kill((pid_t)header->pid, 0) && errno != EPERM)
		return false;
	uint64_t ticks = proc_start_ticks(header->pid);
	return ticks && ticks == header->pid_start_ticks;
}
