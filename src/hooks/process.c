/* The ways out of a process that no destructor sees: _exit, _Exit and quick_exit close the trace first. A normal
 * exit does so in our destructor. In a vfork child all of it passes straight on (record_close tells). */
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/elf.h"
#include "recorder/record.h"
#include "recorder/session.h"

#define EXPORT __attribute__((visibility("default")))

/* A plain _exit may be called in a signal handler or a vfork child: the next one behind us is found without the loader. */
static void real_exit(const char *name, int status) __attribute__((noreturn));

static void real_exit(const char *name, int status)
{
	void (*function)(int) = elf_find_anywhere(name, NULL);
	if (function)
		function(status);
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORT void _exit(int status)
{
	record_close(MEMTRACE_UNDERSCORE_EXIT, status);
	real_exit("_exit", status);
}

EXPORT void _Exit(int status)
{
	record_close(MEMTRACE_UNDERSCORE_EXIT, status);
	real_exit("_Exit", status);
}

EXPORT void quick_exit(int status)
{
	record_close(MEMTRACE_QUICK_EXIT, status);
	real_exit("quick_exit", status);
}

/* Runs after the program's own exit handlers. */
__attribute__((destructor)) static void process_ends(void)
{
	record_close(MEMTRACE_EXIT, session_exit_status());
}
