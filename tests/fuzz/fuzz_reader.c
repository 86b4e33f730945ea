/* Feeds the reader broken traces, and checks what it promises whatever the file: no event twice or out of order, an
 * account that adds up, definitions that name only what is defined, states that end, one line for an error. */
#define _GNU_SOURCE
#define WRITE_SEEDS write_trace_seeds
#include "trace_steps.h"

#include <sys/mman.h>
#include <unistd.h>

#include "replay.h"
#include "trace/reader.h"

#define REQUIRE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

static size_t check_text(const char *text)
{
	REQUIRE(text);
	return strlen(text); /* ends inside its memory, or the sanitizer says so */
}

static void check_stack(const struct defs *defs, const struct def_stack *stack)
{
	for (uint32_t i = 0; i < stack->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(defs, stack->python[i]);
		REQUIRE(frame);
		check_text(frame->file);
		check_text(frame->function);
	}
	for (uint32_t i = 0; i < stack->native_count; i++) {
		const struct def_native_frame *frame = defs_native_frame(defs, stack->native[i]);
		REQUIRE(frame && (!frame->module || defs_module(defs, frame->module)));
		REQUIRE(!frame->symbol == !frame->name);
		if (frame->symbol)
			REQUIRE(check_text(frame->symbol) > 0 && check_text(frame->name) > 0);
	}
	REQUIRE(!stack->owner || defs_module(defs, stack->owner));
}

static void check_defs(const struct defs *defs)
{
	for (uint32_t id = 1; id <= defs_stack_count(defs); id++)
		check_stack(defs, defs_stack(defs, id));
	for (uint32_t id = 1; id <= defs_thread_count(defs); id++)
		check_text(defs_thread(defs, id)->name);
	for (unsigned ordinal = 0; ordinal < 300; ordinal++)
		if (defs_device(defs, ordinal))
			check_text(defs_device(defs, ordinal)->name);
	for (uint32_t id = 1; defs_module(defs, id); id++)
		check_text(defs_module(defs, id)->name);
	for (unsigned key = 0; key < 20; key++)
		for (unsigned i = 0; defs_info(defs, (enum memtrace_info)key, i); i++)
			check_text(defs_info(defs, (enum memtrace_info)key, i));
}

/* The pieces of the states of a bounded trace, the last state first: reading then begins with the first one. */
static void check_states(struct trace *trace)
{
	const unsigned char *piece;
	size_t bytes;
	unsigned sum = 0;
	for (size_t i = trace_state_count(trace); i-- > 0;) {
		trace_state_begin(trace, i);
		while ((piece = trace_state_piece(trace, &bytes)))
			sum += bytes ? piece[0] + piece[bytes - 1] : 0;
	}
	REQUIRE(sum + 1); /* they can be read to their last byte */
}

static void check_trace(struct trace *trace)
{
	struct event ev;
	check_states(trace);
	uint64_t events = 0, next = trace_facts(trace)->given_up;
	for (; trace_next(trace, &ev); events++) {
		REQUIRE(ev.sequence >= next);
		next = ev.sequence + 1;
		check_text(event_what_name(ev.what));
		check_text(event_space_name(ev.space));
		double progress = trace_progress(trace);
		REQUIRE(progress >= 0 && progress <= 1);
	}
	const struct trace_facts *facts = trace_facts(trace);
	REQUIRE(facts->events == events);
	REQUIRE(facts->torn == (check_text(facts->torn_reason) > 0));
	check_defs(trace_defs(trace));
}

static void read_file(const void *data, size_t bytes)
{
	char path[64], error[256] = "";
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	REQUIRE(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	struct trace *trace = trace_open(path, error, sizeof error);
	if (trace)
		check_trace(trace);
	else
		REQUIRE(check_text(error) > 0 && !strchr(error, '\n'));
	trace_close(trace);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	size_t trace_bytes;
	const unsigned char *trace = trace_of_steps(data, bytes, &trace_bytes);
	read_file(trace, trace_bytes);
	return 0;
}
