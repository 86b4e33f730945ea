/* What a trace is called when nobody gives it a name (MEMTRACE_OUTPUT's default), and how what belongs to one is
 * named after it: beside STEM.mtrace lie STEM.txt, STEM.oom1.txt and so on. */
#ifndef MT_BASE_OUTPUT_NAME_H
#define MT_BASE_OUTPUT_NAME_H

#include <stddef.h>
#include <string.h>

#define OUTPUT_NAME_DEFAULT "memtrace.%p"
#define OUTPUT_SUFFIX ".mtrace"

/* How much of a path is its stem: all of it if it has not the suffix, or is nothing else. */
static inline size_t output_stem_bytes(const char *path)
{
	size_t length = strlen(path), suffix = strlen(OUTPUT_SUFFIX);
	return length > suffix && !strcmp(path + length - suffix, OUTPUT_SUFFIX) ? length - suffix : length;
}

#endif
