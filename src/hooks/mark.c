/* Calls that the traced program may make itself: include/memtrace/memtrace.h. */
#include <memtrace/memtrace.h>

#include "recorder/record.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void memtrace_mark(const char *name)
{
	struct record record = { .what = MEMTRACE_MARK,
				 .device = MEMTRACE_DEVICE_UNKNOWN,
				 .frame = __builtin_frame_address(0) };
	if (!record_has_started())
		return;
	record.extra = name ? record_text(name) : 0;
	record_event(&record);
}
