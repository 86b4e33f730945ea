/* trace/reader: what becomes of a damaged file, and what is refused in which words. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>

#include "reader_checks.h"

/* ---------- what is missing ---------- */

static void sequences_passed_over_in_rows_are_told_apart_by_the_counters(void **state)
{
	static const uint64_t some[] = {0, 1, 5, 6};
	static struct columns columns;
	(void)state;
	build_start(&build);
	build_columns(&columns, some, 4);
	build_events_chunk(&build, &columns, 0, 6);
	build_window_columns(&build, &columns, 0);
	build_live(&build)->in_flight = 2; /* given up by the dump thread; the third went missing */
	build_live(&build)->lost = 10;
	build_live(&build)->consumed = build_live(&build)->head = 7;
	struct trace *trace = open_built();
	for (int i = 0; i < 4; i++)
		expect_event(trace, some[i]);
	expect_end(trace, 4, 11, 2, false);
}

static void what_a_full_disk_could_not_take_is_lost(void **state)
{
	(void)state;
	build_start(&build);
	build_chunk_range(&build, 0, 9);
	build_window_range(&build, 10, 19);
	build_ring_range(&build, 50, 55);
	build_live(&build)->unwritten = 30;
	build_live(&build)->write_errno = 28;
	struct trace *trace = open_built();
	expect_range(trace, 0, 19);
	expect_range(trace, 50, 55);
	assert_int_equal(trace_facts(trace)->write_errno, 28);
	expect_end(trace, 26, 30, 0, false);
}

static void reader_stops_at_torn_chunk(void **state)
{
	(void)state;
	build_start(&build);
	build_chunk_range(&build, 0, 99);
	uint64_t torn = build_chunk_range(&build, 100, 199);
	build_chunk_range(&build, 200, 299);
	build_window_range(&build, 300, 309);
	build_ring_range(&build, 310, 312);
	build.data[torn + 70] ^= 1;
	struct trace *trace = open_built();
	assert_non_null(strstr(trace_facts(trace)->torn_reason, "checksum"));
	expect_range(trace, 0, 99);
	expect_range(trace, 300, 312); /* window and ring are whole */
	expect_end(trace, 113, 200, 0, true);
}

static void every_damaged_bit_of_a_chunk_is_noticed(void **state)
{
	(void)state;
	build_start(&build);
	uint64_t start = build_chunk_range(&build, 0, 9);
	const struct memtrace_chunk *chunk = (void *)(build.data + start);
	uint64_t end = start + sizeof *chunk + chunk->stored_bytes;
	for (uint64_t bit = start * 8; bit < end * 8; bit++) {
		build.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
		struct trace *trace = open_built();
		expect_end(trace, 0, 0, 0, true);
		build.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
}

static void damaged_rows_cost_their_chunk_only(void **state)
{
	static struct columns columns;
	(void)state;
	build_start(&build);
	build_range(&columns, 0, 9);
	columns.rows[columns.rows_bytes / 2] = 0xff; /* sealed with a good checksum all the same */
	memset(columns.rows + columns.rows_bytes / 2, 0xff, columns.rows_bytes / 2);
	build_events_chunk(&build, &columns, 0, 9);
	build_chunk_range(&build, 10, 19);
	struct trace *trace = open_built();
	struct event ev;
	uint64_t before = 0;
	while (trace_next(trace, &ev) && ev.sequence < 10)
		before++;
	assert_true(before < 10);
	assert_int_equal(ev.sequence, 10);
	expect_range(trace, 11, 19);
	expect_end(trace, before + 10, 10 - before, 0, true);
}

static void rows_cannot_claim_sequences_of_another_chunk(void **state)
{
	static const uint64_t far[] = {0, 1, 500};
	static struct columns columns;
	(void)state;
	build_start(&build);
	build_columns(&columns, far, 3);
	build_events_chunk(&build, &columns, 0, 9);
	build_chunk_range(&build, 10, 19);
	struct trace *trace = open_built();
	expect_range(trace, 0, 1);
	expect_range(trace, 10, 19);
	expect_end(trace, 12, 8, 0, true);
}

static void impossible_chunks_are_refused(void **state)
{
	(void)state;
	for (int field = 0; field < 6; field++) {
		build_start(&build);
		uint64_t at = build_chunk_range(&build, 0, 9);
		struct memtrace_chunk *chunk = (void *)(build.data + at);
		if (field == 0)
			chunk->raw_bytes = MEMTRACE_RAW_MAX + 1;
		else if (field == 1)
			chunk->raw_bytes -= 1; /* the frame holds more than is stated */
		else if (field == 2)
			chunk->rows_bytes = chunk->raw_bytes + 1;
		else if (field == 3)
			chunk->last_sequence = UINT64_MAX;
		else if (field == 4)
			chunk->count = UINT32_MAX;
		else
			chunk->first_sequence = 10;
		build_seal(&build, at);
		struct trace *trace = open_built();
		struct event ev;
		assert_int_equal(trace_next(trace, &ev), 0);
		assert_true(trace_facts(trace)->torn);
		trace_close(trace);
	}
}

static void an_impossible_window_is_refused(void **state)
{
	(void)state;
	build_start(&build);
	build_chunk_range(&build, 0, 9);
	build_window_range(&build, 10, 19);
	build_window(&build)->rows_bytes = BUILD_TIMES_OFFSET;
	struct trace *trace = open_built();
	expect_range(trace, 0, 9);
	expect_end(trace, 10, 0, 0, true);
}

static void a_window_is_read_as_far_as_its_count(void **state)
{
	(void)state;
	build_start(&build);
	build_window_range(&build, 0, 19);
	build_window(&build)->count =
		12; /* killed after the row was stored and before it was counted */
	struct trace *trace = open_built();
	expect_range(trace, 0, 11);
	expect_end(trace, 12, 0, 0, false);
}

static void a_file_cut_anywhere_gives_what_is_left(void **state)
{
	(void)state;
	build_start(&build);
	build_chunk_range(&build, 0, 9);
	build_chunk_range(&build, 10, 19);
	build_chunk_range(&build, 20, 29);
	for (size_t bytes = 0; bytes < build.bytes;
	     bytes += bytes < build_header(&build)->chunks_offset ? 97 : 1) {
		char error[256] = "";
		struct trace *trace = open_bytes(build.data, bytes, error);
		struct event ev;
		uint64_t count = 0;
		if (!trace) {
			assert_true(*error && bytes < sizeof(struct memtrace_header));
			continue;
		}
		while (trace_next(trace, &ev))
			assert_int_equal(ev.sequence, count++);
		assert_int_equal(count % 10, 0);
		/* The last few bytes may be padding of the last chunk, and not be there at all. */
		assert_true(trace_facts(trace)->torn || (count == 30 && bytes + 8 > build.bytes));
		trace_close(trace);
	}
}

/* ---------- what is no trace ---------- */

static void expect_no_trace(const void *data, size_t bytes, const char *word)
{
	char error[256] = "";
	assert_null(open_bytes(data, bytes, error));
	if (!strstr(error, word))
		fail_msg("'%s' does not say '%s'", error, word);
	assert_null(strchr(error, '\n'));
	assert_int_equal(strncmp(error, "/proc/self/fd/", 14), 0); /* names the file */
}

static void what_is_no_trace_is_refused_in_words(void **state)
{
	(void)state;
	build_start(&build);
	expect_no_trace("", 0, "empty");
	expect_no_trace("hello, this is no trace", 23, "not a memtrace trace");
	expect_no_trace("\x80\x04\x95", 3, "memory_viz");
	expect_no_trace("{\"a\": 1}", 8, "JSON");
	expect_no_trace("\x1f\x8b\x08", 3, "gunzip");
	expect_no_trace("\0\0\0\0\0\0\0\0", 8, "never written");
	expect_no_trace(build.data, 100, "cut off");
	build_header(&build)->version = 7;
	strcpy(build_header(&build)->producer, "memtrace 9\n.1");
	expect_no_trace(build.data, build.bytes,
			"unknown version 7: made by memtrace 9\\x0a.1; use that version");
}

static void no_header_field_is_trusted(void **state)
{
	(void)state;
	for (size_t offset = offsetof(struct memtrace_header, live_offset);
	     offset < sizeof(struct memtrace_header); offset += 8) {
		static const uint64_t values[] = {
			0, 1, 4095, 1 << 25, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 7};
		for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
			char error[256] = "";
			build_start(&build);
			build_chunk_range(&build, 0, 9);
			memcpy(build.data + offset, &values[i], 8);
			struct trace *trace = open_bytes(build.data, build.bytes, error);
			struct event ev;
			while (trace && trace_next(trace, &ev))
				continue;
			if (!trace)
				assert_non_null(strstr(error, "header is damaged"));
			trace_close(trace);
		}
	}
}

static void expect_refused_path(const char *path, const char *word)
{
	char error[256] = "";
	assert_null(trace_open(path, error, sizeof error));
	if (!strstr(error, word))
		fail_msg("'%s' does not say '%s'", error, word);
}

static void only_regular_files_are_opened(void **state)
{
	char directory[] = "/tmp/test_reader.XXXXXX", path[64];
	(void)state;
	assert_non_null(mkdtemp(directory));
	expect_refused_path(directory, "is a directory");
	expect_refused_path("/dev/null", "is a device");
	snprintf(path, sizeof path, "%s/fifo", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_refused_path(path, "is a pipe"); /* and does not wait for a writer */
	unlink(path);
	snprintf(path, sizeof path, "%s/\x1b[2J", directory);
	expect_refused_path(path, "\\x1b[2J: cannot read: No such file");
	rmdir(directory);
}

static void an_error_fits_whatever_room_there_is(void **state)
{
	char error[8];
	(void)state;
	memset(error, 'x', sizeof error);
	assert_null(trace_open("/nonexistent/long/path", error, sizeof error));
	assert_string_equal(error, "/nonexi");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequences_passed_over_in_rows_are_told_apart_by_the_counters),
		cmocka_unit_test(what_a_full_disk_could_not_take_is_lost),
		cmocka_unit_test(reader_stops_at_torn_chunk),
		cmocka_unit_test(every_damaged_bit_of_a_chunk_is_noticed),
		cmocka_unit_test(damaged_rows_cost_their_chunk_only),
		cmocka_unit_test(rows_cannot_claim_sequences_of_another_chunk),
		cmocka_unit_test(impossible_chunks_are_refused),
		cmocka_unit_test(an_impossible_window_is_refused),
		cmocka_unit_test(a_window_is_read_as_far_as_its_count),
		cmocka_unit_test(a_file_cut_anywhere_gives_what_is_left),
		cmocka_unit_test(what_is_no_trace_is_refused_in_words),
		cmocka_unit_test(no_header_field_is_trusted),
		cmocka_unit_test(only_regular_files_are_opened),
		cmocka_unit_test(an_error_fits_whatever_room_there_is),
	};
	return cmocka_run_group_tests_name("reader_damage", tests, 0, 0);
}
