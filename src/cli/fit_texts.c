/* Owns the reading of lines of /proc/meminfo, for `memtrace fit`. It never opens a file; what is no number
 * there, or is too large for one, is no figure. */
#include "cli/fit_texts.h"

#include <string.h>

/* In KiB there, as bytes. */
static bool read_kib(const char *at, uint64_t *bytes)
{
	uint64_t value = 0;
	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			return false;
	if (__builtin_mul_overflow(value, 1024, &value))
		return false;
	*bytes = value;
	return true;
}

bool fit_text_available(const char *line, uint64_t *bytes)
{
	static const char before[] = "MemAvailable:";
	return !strncmp(line, before, strlen(before)) &&
	       read_kib(line + strlen(before) + strspn(line + strlen(before), " \t"), bytes);
}
