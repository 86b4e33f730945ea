/* Names of the signals that end programs: strsignal() would look at the locale. */
#ifndef MT_REPORT_SIGNALS_H
#define MT_REPORT_SIGNALS_H

#include <signal.h>
#include <stddef.h>

#define SIGNAL_NAMES(X)                                                                      \
	X(SIGHUP)                                                                            \
	X(SIGINT)                                                                            \
	X(SIGQUIT)                                                                           \
	X(SIGILL) X(SIGTRAP) X(SIGABRT) X(SIGBUS) X(SIGFPE) X(SIGKILL) X(SIGUSR1) X(SIGSEGV) \
		X(SIGUSR2) X(SIGPIPE) X(SIGALRM) X(SIGTERM) X(SIGXCPU) X(SIGXFSZ) X(SIGSYS)

static inline const char *signal_name(int number)
{
	switch (number) {
#define X(name)    \
	case name: \
		return #name;
		SIGNAL_NAMES(X)
#undef X
	default:
		return NULL;
	}
}

#endif
