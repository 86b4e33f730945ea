/*
 * Helpers of every stand-in library: messages, settings, rounding.  Owns no state.  Must never
 * exit, never write to stdout, and never call an entry of a CUDA library.
 */
#include "sim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SIM_NOT_SUPPORTED
#error "simgpu.mk gives every library its own 'not supported' code"
#endif

void sim_warn(const char *format, ...)
{
	char line[256] = "simgpu: ";
	size_t used = strlen(line);
	va_list arguments;

	va_start(arguments, format);
	int wanted = vsnprintf(line + used, sizeof(line) - used - 1, format, arguments);
	va_end(arguments);
	if (wanted < 0)
		return;
	used += (size_t)wanted;
	if (used > sizeof(line) - 2)
		used = sizeof(line) - 2;
	line[used++] = '\n';
	/* One write, so that lines of several threads and ranks do not mix. */
	if (write(STDERR_FILENO, line, used) < 0)
		return;
}

int sim_missing(const char *name, bool *said)
{
	if (!__atomic_exchange_n(said, true, __ATOMIC_RELAXED))
		sim_warn("%s is not simulated (%s): it answers \"not supported\"; if the program then "
			 "goes another way, that way's memory is shown, and figures from here on are "
			 "a lower bound",
			 name, SIM_SONAME);
	return SIM_NOT_SUPPORTED;
}

size_t sim_env_bytes(const char *variable, size_t fallback)
{
	const char *text = getenv(variable);
	size_t bytes = fallback;

	if (text != NULL && *text != '\0' && sim_parse_bytes(text, &bytes) != 0)
		sim_warn("%s=%s is not a size like 80GiB", variable, text);
	return bytes;
}

long sim_env_number(const char *variable, long fallback)
{
	const char *text = getenv(variable);
	char *end;

	if (text == NULL || *text == '\0')
		return fallback;
	errno = 0;
	long number = strtol(text, &end, 10);
	if (errno == 0 && *end == '\0')
		return number;
	sim_warn("%s=%s is not a number", variable, text);
	return fallback;
}

size_t sim_round_up(size_t bytes, size_t step)
{
	size_t steps = bytes / step + (bytes % step != 0);

	if (steps > SIZE_MAX / step)
		steps = SIZE_MAX / step;
	return steps * step;
}
