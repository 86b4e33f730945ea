/* Feeds `memtrace check --repair` broken traces. Whatever the trace: there is a new one that is sound, or none and a line
 * that says why; the old one is as it was; no event comes to be that was not there. */
#define _GNU_SOURCE
#define WRITE_SEEDS write_trace_seeds
#include "trace_steps.h"

#include <sys/mman.h>
#include <unistd.h>

#include "replay.h"
#include "trace/reader.h"
#include "trace/repair.h"

static uint64_t count_events(const char *path, bool *is_torn)
{
	char error[512];
	struct event ev;
	uint64_t count = 0;
	struct trace *trace = trace_open(path, error, sizeof error);
	while (trace && trace_next(trace, &ev))
		count++;
	*is_torn = !trace || trace_facts(trace)->torn;
	trace_close(trace);
	return count;
}

static void check_result(const char *output)
{
	bool is_torn;
	count_events(output, &is_torn);
	if (is_torn)
		abort();
	unlink(output);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char path[64], output[64], error[512] = "";
	size_t trace_bytes;
	struct repair repair;
	const unsigned char *trace = trace_of_steps(data, bytes, &trace_bytes);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, trace, trace_bytes) != (ssize_t)trace_bytes)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	snprintf(output, sizeof output, "/dev/shm/fuzz_repair.%d", (int)getpid());
	if (!trace_repair(path, output, output, &repair, error, sizeof error))
		check_result(output);
	else if (!*error || strchr(error, '\n') || !access(output, F_OK))
		abort();
	close(fd);
	return 0;
}
