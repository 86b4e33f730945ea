/* What the tests of the reader share: a trace in memory as a file, and expectations of its events.
 */
#ifndef TEST_READER_CHECKS_H
#define TEST_READER_CHECKS_H

#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "build_trace.h"
#include "trace/reader.h"

static struct build build;

static inline int memory_file(const void *data, size_t bytes)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, bytes), bytes);
	return fd;
}

static inline struct trace *open_bytes(const void *data, size_t bytes, char error[256])
{
	char path[64];
	int fd = memory_file(data, bytes);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	struct trace *trace = trace_open(path, error, 256);
	close(fd);
	return trace;
}

static inline struct trace *open_built(void)
{
	char error[256] = "";
	struct trace *trace = open_bytes(build.data, build.bytes, error);
	if (!trace)
		fail_msg("%s", error);
	return trace;
}

static inline void expect_event(struct trace *trace, uint64_t sequence)
{
	struct event ev, wanted = build_event(sequence);
	if (!trace_next(trace, &ev))
		fail_msg("no event %lu", (unsigned long)sequence);
	assert_int_equal(ev.sequence, sequence);
	assert_int_equal(ev.time_ns, wanted.time_ns);
	assert_int_equal(ev.address, wanted.address);
	assert_int_equal(ev.bytes, wanted.bytes);
	assert_int_equal(ev.extra, wanted.extra);
	assert_int_equal(ev.stream, wanted.stream);
	assert_int_equal(ev.stack, wanted.stack);
	assert_int_equal(ev.thread, wanted.thread);
	assert_int_equal(ev.what, wanted.what);
	assert_int_equal(ev.space, wanted.space);
}

static inline void expect_range(struct trace *trace, uint64_t first, uint64_t last)
{
	for (uint64_t sequence = first; sequence <= last; sequence++)
		expect_event(trace, sequence);
}

/* Nothing more, and this account of what is missing. */
static inline void expect_end(struct trace *trace, uint64_t events, uint64_t lost,
			      uint64_t in_flight, bool torn)
{
	struct event ev;
	assert_int_equal(trace_next(trace, &ev), 0);
	assert_int_equal(trace_next(trace, &ev), 0);
	const struct trace_facts *facts = trace_facts(trace);
	assert_int_equal(facts->events, events);
	assert_int_equal(facts->lost, lost);
	assert_int_equal(facts->in_flight, in_flight);
	if (facts->torn != torn)
		fail_msg("torn: '%s'", facts->torn_reason);
	assert_int_equal(!!*facts->torn_reason, torn);
	assert_true(trace_progress(trace) == 1);
	trace_close(trace);
}

#endif
