/* The ways out of a process that no destructor sees: _exit, _Exit and quick_exit close the trace first. A normal
 * exit does so in our destructor. So does abort where the program's own code had ended; else it is a crash, and the
 * trace is left as it is. In a vfork child all of it passes straight on (record_close tells). */
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks/cupti.h"
#include "recorder/elf.h"
#include "recorder/python.h"
#include "recorder/record.h"
#include "recorder/session.h"

#define EXPORT __attribute__((visibility("default")))

/* What is called next: another interposer's behind us, else libc's. Found before anybody can need it: a plain _exit may
 * be called in a signal handler, in a vfork child, and in a forked child of a process whose other threads were inside
 * the loader. */
static void (*next_exit)(int), (*next_exit_standard)(int), (*next_exit_quick)(int);
static void (*next_abort)(void);

__attribute__((constructor)) static void find_next(void)
{
	next_exit = elf_find_anywhere("_exit", NULL);
	next_exit_standard = elf_find_anywhere("_Exit", NULL);
	next_exit_quick = elf_find_anywhere("quick_exit", NULL);
	next_abort = elf_find_anywhere("abort", NULL);
}

static void real_exit(void (*next)(int), int status) __attribute__((noreturn));

static void real_exit(void (*next)(int), int status)
{
	if (next)
		next(status);
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORT void _exit(int status)
{
	cupti_end();
	record_close(MEMTRACE_UNDERSCORE_EXIT, status);
	real_exit(next_exit, status);
}

EXPORT void _Exit(int status)
{
	cupti_end();
	record_close(MEMTRACE_UNDERSCORE_EXIT, status);
	real_exit(next_exit_standard, status);
}

EXPORT void quick_exit(int status)
{
	cupti_end();
	record_close(MEMTRACE_QUICK_EXIT, status);
	real_exit(next_exit_quick, status);
}

/* A thread that needs Python while that is taken down ends in here: its exit may pass no C++ frame that throws nothing. */
EXPORT void abort(void)
{
	if (session_exit_status() >= 0 || python_is_finalizing()) {
		cupti_end();
		record_close(MEMTRACE_ABORT, session_exit_status());
	}
	if (next_abort)
		next_abort();
	for (;;)
		__builtin_trap();
}

/* Runs after the program's own exit handlers. */
__attribute__((destructor)) static void process_ends(void)
{
	record_close(MEMTRACE_EXIT, session_exit_status());
}
