/*
 * Helpers of every stand-in library: messages, settings, rounding.  Owns no state.  Must never
 * exit, never write to stdout, and never call an entry of a CUDA library.
 */
#include "sim.h"

#include <ctype.h>
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
		sim_warn("%s is not simulated", name);
	return SIM_NOT_SUPPORTED;
}

static int unit_shift(const char *unit)
{
	static const char letters[] = "KMGT";

	if (*unit == '\0')
		return 0;
	const char *letter = strchr(letters, toupper((unsigned char)*unit));
	if (letter == NULL)
		return -1;
	bool is_whole = unit[1] == '\0' || strcmp(unit + 1, "iB") == 0;
	return is_whole ? 10 * (int)(letter - letters + 1) : -1;
}

int sim_parse_bytes(const char *text, size_t *bytes)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -1;
	errno = 0;
	double number = strtod(text, &end);
	while (*end == ' ')
		end++;
	int shift = unit_shift(end);
	double wanted = shift < 0 ? -1 : number * (double)((size_t)1 << shift);
	if (errno != 0 || wanted < 0 || wanted >= 9e18)
		return -1;
	*bytes = (size_t)wanted;
	return 0;
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
