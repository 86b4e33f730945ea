/* trace/reader: traces that are still being written, and whose process lives or was killed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "reader_checks.h"
#include "trace/writer.h"

/* ---------- processes ---------- */

static uint64_t own_start_ticks(void)
{
	char line[1024];
	FILE *file = fopen("/proc/self/stat", "r");
	assert_non_null(fgets(line, sizeof line, file));
	fclose(file);
	char *at = strrchr(line, ')') + 1;
	for (int field = 3; field < 22; field++)
		at = strchr(at + 1, ' ');
	return strtoull(at, 0, 10);
}

static bool is_running(void)
{
	struct trace *trace = open_built();
	bool running = trace_facts(trace)->still_running;
	trace_close(trace);
	return running;
}

static void a_live_process_is_told_from_a_reused_pid(void **state)
{
	(void)state;
	build_start(&build);
	struct memtrace_header *header = build_header(&build);
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
	assert_int_equal(fscanf(file, "%39s", header->boot_id), 1);
	fclose(file);
	header->pid = (uint32_t)getpid();
	header->pid_start_ticks = own_start_ticks();
	assert_true(is_running());
	header->pid_start_ticks--;
	assert_false(is_running());
	header->pid_start_ticks++;
	build_live(&build)->ended = MEMTRACE_EXIT;
	assert_false(is_running());
	build_live(&build)->ended = 0;
	header->pid = 0;
	assert_false(is_running());
	header->pid = (uint32_t)getpid();
	header->boot_id[0] ^= 1;
	assert_false(is_running());
}

/* ---------- while it is written ---------- */

#define LIVE_ROUNDS  150
#define LIVE_TICKETS 4000
#define LIVE_CHUNK   50 /* events of a window */

struct live_writer {
	int fd;
	struct build *front; /* mapped from the file */
	uint64_t end;
};

/* What the recorder and the dump thread do, one event at a time and in one thread: ring, window,
 * chunk. */
static void move_window(struct live_writer *writer, struct build *scratch, uint64_t first,
			uint64_t last)
{
	scratch->bytes = build_header(scratch)->chunks_offset;
	uint64_t at = build_chunk_range(scratch, first, last);
	size_t bytes = scratch->bytes - at;
	assert_int_equal(pwrite(writer->fd, scratch->data + at, bytes, (off_t)writer->end), bytes);
	writer->end += bytes;
	__atomic_store_n(&build_header(writer->front)->end_offset, writer->end, __ATOMIC_RELEASE);
	__atomic_store_n(&build_window(writer->front)->count, 0, __ATOMIC_RELEASE);
}

static void store_in_window(struct live_writer *writer, struct rows_encoder *encoder,
			    uint64_t ticket)
{
	struct memtrace_events_window *window = build_window(writer->front);
	struct event ev = build_event(ticket);
	if (!window->count) {
		__atomic_store_n(&window->first_sequence, ticket, __ATOMIC_RELEASE);
		window->rows_bytes = window->times_bytes = 0;
		rows_encoder_reset(encoder, ticket, 0);
	}
	uint8_t *rows = (uint8_t *)(window + 1), *times = (uint8_t *)window + BUILD_TIMES_OFFSET;
	uint8_t *row = rows + window->rows_bytes, *time = times + window->times_bytes;
	rows_encode(encoder, &ev, &row, &time);
	window->rows_bytes = (uint64_t)(row - rows);
	window->times_bytes = (uint64_t)(time - times);
	__atomic_store_n(&window->count, window->count + 1, __ATOMIC_RELEASE);
}

static void *write_live(void *argument)
{
	static struct rows_encoder encoder;
	static struct build scratch;
	struct live_writer *writer = argument;
	struct memtrace_live *live = build_live(writer->front);
	build_start(&scratch);
	for (uint64_t ticket = 0; ticket < LIVE_TICKETS; ticket++) {
		__atomic_store_n(&live->head, ticket + 1, __ATOMIC_RELEASE);
		build_ring_event(writer->front, ticket);
		if (ticket % (BUILD_RING_SLOTS / 2) != BUILD_RING_SLOTS / 2 - 1)
			continue;
		for (uint64_t t = live->consumed; t <= ticket; t++) {
			if (build_window(writer->front)->count == LIVE_CHUNK)
				move_window(writer, &scratch, t - LIVE_CHUNK, t - 1);
			store_in_window(writer, &encoder, t);
			__atomic_store_n(&live->consumed, t + 1, __ATOMIC_RELEASE);
		}
	}
	return 0;
}

/* As of now: no gap, nothing torn, and at least what was there before. */
static void read_live(const char *path, uint64_t at_least)
{
	char error[256] = "";
	struct trace *trace = trace_open(path, error, sizeof error);
	if (!trace)
		fail_msg("%s", error);
	struct event ev;
	uint64_t next = 0;
	for (; trace_next(trace, &ev); next++)
		assert_int_equal(ev.address, build_event(next).address);
	if (trace_facts(trace)->torn)
		fail_msg("%s", trace_facts(trace)->torn_reason);
	assert_int_equal(trace_facts(trace)->lost, 0);
	assert_true(trace_facts(trace)->in_flight <= 1);
	assert_true(next >= at_least);
	trace_close(trace);
}

static void read_while_it_is_written(void)
{
	char path[64];
	pthread_t thread;
	build_start(&build);
	struct live_writer writer = {.fd = memory_file(build.data, build.bytes),
				     .end = build.bytes};
	writer.front = mmap(0, build.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, writer.fd, 0);
	assert_ptr_not_equal(writer.front, MAP_FAILED);
	snprintf(path, sizeof path, "/proc/self/fd/%d", writer.fd);
	assert_int_equal(pthread_create(&thread, 0, write_live, &writer), 0);
	for (uint64_t consumed = 0; consumed < LIVE_TICKETS;) {
		consumed = __atomic_load_n(&build_live(writer.front)->consumed, __ATOMIC_ACQUIRE);
		read_live(path, consumed);
	}
	pthread_join(thread, 0);
	munmap(writer.front, build.bytes);
	close(writer.fd);
}

static void nothing_is_missed_of_a_trace_being_written(void **state)
{
	(void)state;
	for (int round = 0; round < LIVE_ROUNDS; round++)
		read_while_it_is_written();
}

/* ---------- with the writer ---------- */

#define WRITTEN 400000

static void define_string(struct writer *writer, uint32_t id)
{
	static struct records records;
	char text[32];
	snprintf(text, sizeof text, "string %u", id);
	records.used_bytes = 0;
	put_string(&records, id, text);
	if (writer_define(writer, records.data, records.used_bytes)) {
		writer_flush_full_halves(writer);
		assert_int_equal(writer_define(writer, records.data, records.used_bytes), 0);
	}
}

static void expect_written(const char *path, uint64_t count)
{
	char error[256] = "", text[32];
	struct trace *trace = trace_open(path, error, sizeof error);
	if (!trace)
		fail_msg("%s", error);
	snprintf(text, sizeof text, "string %lu", (unsigned long)((count - 1) / 4 + 1));
	assert_string_equal(defs_string(trace_defs(trace), (uint32_t)((count - 1) / 4 + 1)), text);
	expect_range(trace, 0, count - 1);
	expect_end(trace, count, 0, 0, false);
}

/* As after a kill, at some points on the way, and then after a clean end. */
static void what_the_writer_wrote_is_read_at_any_moment(void **state)
{
	static struct writer writer;
	char directory[] = "/tmp/test_reader.XXXXXX", path[64];
	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/x.mtrace", directory);
	assert_int_equal(writer_create(&writer, path), 0);
	for (uint64_t sequence = 0; sequence < WRITTEN; sequence++) {
		struct event ev = build_event(sequence);
		if (sequence % 4 == 0)
			define_string(&writer, (uint32_t)(sequence / 4 + 1));
		writer.live->head = sequence + 1;
		writer_add(&writer, &ev);
		writer.live->consumed = sequence + 1;
		if (sequence % 37501 == 37500)
			expect_written(path, sequence + 1);
	}
	writer_finish(&writer, MEMTRACE_EXIT, 0, build_event(WRITTEN - 1).time_ns);
	expect_written(path, WRITTEN);
	unlink(path);
	rmdir(directory);
}

/* ---------- killed ---------- */

#define KILLS             40
#define KILL_AFTER_MAX_US 30000

/* Ring, window and chunk in one thread, as fast as it goes, until it is killed. */
static void write_until_killed(const char *path, uint64_t *published)
{
	static struct writer writer;
	if (writer_create(&writer, path))
		_exit(1);
	for (uint64_t ticket = 0;; ticket++) {
		struct event ev = build_event(ticket);
		struct memtrace_slot *slot = &writer.ring[ticket & (writer.header->ring_slots - 1)];
		__atomic_store_n(&writer.live->head, ticket + 1, __ATOMIC_RELEASE);
		*slot = build_slot_of(ticket);
		__atomic_store_n(&slot->turn, ticket + 1, __ATOMIC_RELEASE);
		__atomic_store_n(published, ticket + 1, __ATOMIC_RELEASE);
		if (ticket % 3) /* sometimes two or three are in the ring */
			continue;
		for (uint64_t t = writer.live->consumed; t <= ticket; t++) {
			ev = build_event(t);
			writer_add(&writer, &ev);
			__atomic_store_n(&writer.live->consumed, t + 1, __ATOMIC_RELEASE);
		}
	}
}

static void expect_all_published(const char *path, uint64_t published)
{
	char error[256] = "";
	struct trace *trace = trace_open(path, error, sizeof error);
	if (!trace && !published)
		return; /* killed before the header was there */
	if (!trace)
		fail_msg("%s", error);
	struct event ev;
	uint64_t count = 0;
	for (; trace_next(trace, &ev); count++)
		if (ev.sequence != count || ev.address != build_event(count).address)
			fail_msg("event %lu is wrong", (unsigned long)count);
	const struct trace_facts *facts = trace_facts(trace);
	if (facts->torn || facts->lost || facts->in_flight > 1 || count < published)
		fail_msg("%s: %lu of %lu, lost %lu, in flight %lu", facts->torn_reason,
			 (unsigned long)count, (unsigned long)published, (unsigned long)facts->lost,
			 (unsigned long)facts->in_flight);
	trace_close(trace);
}

static void a_killed_process_loses_no_published_event(void **state)
{
	char directory[] = "/tmp/test_reader.XXXXXX", path[64];
	uint64_t *published = mmap(0, sizeof *published, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/x.mtrace", directory);
	for (int i = 0; i < KILLS; i++) {
		*published = 0;
		pid_t child = fork();
		if (child == 0)
			write_until_killed(path, published);
		usleep((useconds_t)(i * KILL_AFTER_MAX_US / KILLS));
		kill(child, SIGKILL);
		waitpid(child, 0, 0);
		expect_all_published(path, *published);
		unlink(path);
	}
	rmdir(directory);
	munmap(published, sizeof *published);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_live_process_is_told_from_a_reused_pid),
		cmocka_unit_test(nothing_is_missed_of_a_trace_being_written),
		cmocka_unit_test(what_the_writer_wrote_is_read_at_any_moment),
		cmocka_unit_test(a_killed_process_loses_no_published_event),
	};
	return cmocka_run_group_tests_name("reader_live", tests, 0, 0);
}
