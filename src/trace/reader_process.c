/* Is the traced process still there? Owns: the comparison with /proc. A pid alone proves nothing:
 * it may have been given to another process, or belong to another boot, machine or container. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/proc.h"
#include "trace/reader_private.h"

#define FIRST_NAMESPACE 0xeffffffcu /* the kernel's PROC_PID_INIT_INO: all processes are seen from there */

static bool is_this_boot(const char *boot_id)
{
	char here[64];
	proc_boot_id(here, sizeof here);
	return *boot_id && !strcmp(here, boot_id);
}

/* Under its own number. */
static bool is_here(const struct memtrace_header *header)
{
	if (kill((pid_t)header->pid, 0) && errno != EPERM)
		return false;
	uint64_t ticks = proc_running_since(header->pid);
	return ticks && ticks == header->pid_start_ticks;
}

/* Its number in the innermost namespace that it is in: the last of "NSpid:\t4711\t7\n". */
static uint64_t inner_pid(const char *status)
{
	const char *line = strstr(status, "\nNSpid:");
	const char *end = line ? strchr(line + 1, '\n') : NULL;
	while (end && end > line && end[-1] >= '0' && end[-1] <= '9')
		end--;
	return end ? strtoull(end, NULL, 10) : 0;
}

static bool is_it(const struct memtrace_header *header, const char *pid)
{
	char path[64], status[4096];
	if (*pid < '0' || *pid > '9' || proc_running_since((uint32_t)atoi(pid)) != header->pid_start_ticks)
		return false;
	snprintf(path, sizeof path, "/proc/%.20s/status", pid);
	return proc_read(path, status, sizeof status) && inner_pid(status) == header->pid;
}

/* In a container, seen from outside, where it has another number. */
static bool is_inside(const struct memtrace_header *header)
{
	bool is_found = false;
	const struct dirent *entry;
	DIR *processes = opendir("/proc");
	while (processes && !is_found && (entry = readdir(processes)))
		is_found = is_it(header, entry->d_name);
	if (processes)
		closedir(processes);
	return is_found;
}

enum process_state process_look(const struct memtrace_header *header)
{
	uint64_t here = proc_pid_namespace();
	if (header->pid == 0 || header->pid > INT_MAX || !header->pid_start_ticks || !*header->boot_id)
		return PROCESS_GONE;
	if (!is_this_boot(header->boot_id))
		return header->pid_namespace ? PROCESS_UNKNOWN : PROCESS_GONE; /* as it was told before that was known */
	if (!header->pid_namespace || header->pid_namespace == here)
		return is_here(header) ? PROCESS_RUNS : PROCESS_GONE;
	if (is_inside(header))
		return PROCESS_RUNS;
	return here == FIRST_NAMESPACE ? PROCESS_GONE : PROCESS_UNKNOWN;
}
