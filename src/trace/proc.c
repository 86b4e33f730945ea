/* Owns the reading of /proc: what tells a process from another that has its pid later. */
#include "trace/proc.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/text.h"

#define FIELD_NAME 2
#define FIELD_PARENT 4
#define FIELD_THREADS 20
#define FIELD_START 22

size_t proc_read(const char *path, char *buffer, size_t bytes)
{
	size_t used = 0;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && used < bytes - 1 && (got = read(fd, buffer + used, bytes - 1 - used)) > 0)
		used += (size_t)got;
	if (fd >= 0)
		close(fd);
	buffer[used] = 0;
	return used;
}

/* The name in field 2 may hold anything, so fields are counted from its last bracket. */
static uint64_t stat_number(const char *stat, int wanted)
{
	uint64_t number = 0;
	const char *at = strrchr(stat, ')');
	for (int field = FIELD_NAME; at && field < wanted; field++)
		at = strchr(at + 1, ' ');
	for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (uint64_t)(*at - '0');
	return number;
}

uint64_t proc_stat_start(const char *stat)
{
	return stat_number(stat, FIELD_START);
}

uint64_t proc_stat_parent(const char *stat)
{
	return stat_number(stat, FIELD_PARENT);
}

bool proc_stat_is_over(const char *stat)
{
	const char *name_end = strrchr(stat, ')');
	bool is_waited_for = name_end && (!strncmp(name_end, ") Z", 3) || !strncmp(name_end, ") X", 3));
	return is_waited_for && stat_number(stat, FIELD_THREADS) <= 1;
}

static void read_stat(uint32_t pid, char *stat, size_t bytes)
{
	char path[32];
	struct text text;
	text_init_fixed(&text, path, sizeof path);
	text_printf(&text, "/proc/%u/stat", pid);
	proc_read(text_string(&text), stat, bytes);
}

uint64_t proc_start_ticks(uint32_t pid)
{
	char stat[1024];
	read_stat(pid, stat, sizeof stat);
	return proc_stat_start(stat);
}

uint64_t proc_running_since(uint32_t pid)
{
	char stat[1024];
	read_stat(pid, stat, sizeof stat);
	return proc_stat_is_over(stat) ? 0 : proc_stat_start(stat);
}

uint64_t proc_pid_namespace(void)
{
	struct stat facts;
	return stat("/proc/self/ns/pid", &facts) ? 0 : facts.st_ino;
}

void proc_boot_id(char *buffer, size_t bytes)
{
	proc_read("/proc/sys/kernel/random/boot_id", buffer, bytes);
	buffer[strcspn(buffer, "\n")] = 0;
}
