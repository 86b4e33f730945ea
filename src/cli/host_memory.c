/* Words about the host's memory. Owns the look at the kernel's own count of whom it killed. Must never call a kill
 * the kernel's without that count. */
#include "cli/host_memory.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "cli/verb.h"

uint64_t host_kill_count(void)
{
	char line[128];
	unsigned long long count = 0;
	FILE *file = fopen("/proc/vmstat", "re");
	while (file && fgets(line, sizeof line, file) && sscanf(line, "oom_kill %llu", &count) != 1)
		;
	if (file)
		fclose(file);
	return count;
}

/* A shell and a launcher hand it on as an exit status. */
static bool is_killed(int wait_status)
{
	return WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) == SIGKILL
					: WEXITSTATUS(wait_status) == STATUS_SIGNAL + SIGKILL;
}

bool host_add_kill(struct text *out, int wait_status, uint64_t kills_before)
{
	static const char help[] = "give it more host memory, fewer DataLoader workers, or in a dry run a checkpoint "
				   "without weights: memtrace sparse-checkpoint";
	uint64_t count = host_kill_count();
	bool has_killed = count > kills_before && wait_status;
	if (has_killed)
		text_printf(out, "too little host memory, no matter of the GPU's: the kernel killed %s; %s\n",
			    is_killed(wait_status) ? "it" : "a process meanwhile, one of its own most likely", help);
	else if (is_killed(wait_status))
		text_printf(out, "it was killed (SIGKILL) from outside: too little host memory (a container's limit?), a "
				 "time limit, or someone did it; if it is memory, %s\n", help);
	return has_killed || is_killed(wait_status);
}

void host_add_shortage(struct text *out)
{
	text_add(out, "too little host memory, no matter of the GPU's: the host had no addresses left for what it simulates "
		      "(ulimit -v, or vm.overcommit_memory=2), so there is no answer; run it after: ulimit -v unlimited\n");
}
