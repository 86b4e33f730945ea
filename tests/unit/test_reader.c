/* trace/reader: every event once and in order, wherever it is when the process ends. */
#define _GNU_SOURCE
#include "reader_checks.h"

/* ---------- where an event may be ---------- */

static void reader_gives_chunks_window_and_ring_in_ticket_order(void **state)
{
	(void)state;
	build_start(&build);
	build_chunk_range(&build, 0, 99);
	build_chunk_range(&build, 100, 149);
	build_window_range(&build, 150, 169);
	build_ring_range(&build, 170, 180);
	struct trace *trace = open_built();
	expect_range(trace, 0, 180);
	assert_int_equal(trace_facts(trace)->duration_ns, build_event(180).time_ns);
	expect_end(trace, 181, 0, 0, false);
}

static void reader_reads_an_event_once_that_is_in_chunk_and_window(void **state)
{
	(void)state;
	build_start(&build);
	build_chunk_range(&build, 0, 99);
	build_window_range(&build, 80, 119);
	build_ring_range(&build, 115, 130);
	build_live(&build)->consumed = 115; /* the cursor is stored after the window */
	struct trace *trace = open_built();
	expect_range(trace, 0, 130);
	expect_end(trace, 131, 0, 0, false);
}

static void reader_takes_a_complete_chunk_that_the_header_does_not_count_yet(void **state)
{
	(void)state;
	build_start(&build);
	build_chunk_range(&build, 0, 9);
	uint64_t end = build_header(&build)->end_offset;
	build_chunk_range(&build, 10, 19);
	build_header(&build)->end_offset = end;
	build_window_range(&build, 10, 19);
	build_ring_range(&build, 20, 20);
	struct trace *trace = open_built();
	expect_range(trace, 0, 20);
	expect_end(trace, 21, 0, 0, false);
}

static void half_a_chunk_beyond_the_end_is_no_damage(void **state)
{
	(void)state;
	build_start(&build);
	build_chunk_range(&build, 0, 9);
	uint64_t end = build_header(&build)->end_offset;
	build_chunk_range(&build, 10, 19);
	build_header(&build)->end_offset = end;
	build.bytes = end + 70;
	build_window_range(&build, 10, 19);
	struct trace *trace = open_built();
	expect_range(trace, 0, 19);
	expect_end(trace, 20, 0, 0, false);
}

static void ring_skips_unpublished_tickets(void **state)
{
	(void)state;
	build_start(&build);
	build_ring_range(&build, 3, 12);
	build_chunk_range(&build, 0, 2);
	build_slot(&build, 5)->turn = 5 + 1 - BUILD_RING_SLOTS; /* of the round before */
	build_slot(&build, 12)->turn = 0;
	struct trace *trace = open_built();
	expect_range(trace, 0, 4);
	expect_range(trace, 6, 11);
	expect_end(trace, 11, 0, 2, false);
}

static void ring_goes_round(void **state)
{
	(void)state;
	build_start(&build);
	build_chunk_range(&build, 0, 12);
	build_ring_range(&build, 13, 13 + BUILD_RING_SLOTS - 1);
	struct trace *trace = open_built();
	expect_range(trace, 0, 13 + BUILD_RING_SLOTS - 1);
	expect_end(trace, 13 + BUILD_RING_SLOTS, 0, 0, false);
}

static void tickets_that_no_slot_can_hold_are_lost(void **state)
{
	(void)state;
	build_start(&build);
	build_ring_range(&build, 100, 115);
	build_live(&build)->consumed = 0;
	struct trace *trace = open_built();
	expect_range(trace, 100, 115);
	expect_end(trace, 16, 100, 0, false);
	build_live(&build)->head = UINT64_MAX;
	trace = open_built();
	struct event ev;
	assert_int_equal(trace_next(trace, &ev), 0);
	trace_close(trace);
}

static void a_clean_end_leaves_only_chunks(void **state)
{
	(void)state;
	build_start(&build);
	build_chunk_range(&build, 0, 99);
	*build_live(&build) = (struct memtrace_live){
		.head = 100,
		.consumed = 100,
		.ended = MEMTRACE_EXIT,
		.status = 3,
		.end_time_ns = 5000000,
		.late = 7,
		.frozen = 91,
		.blind_lookups = 2,
	};
	struct trace *trace = open_built();
	const struct trace_facts *facts = trace_facts(trace);
	assert_int_equal(facts->ended, MEMTRACE_EXIT);
	assert_int_equal(facts->status, 3);
	assert_int_equal(facts->late, 7);
	assert_int_equal(facts->frozen, 91);
	assert_int_equal(facts->blind_lookups, 2);
	assert_false(facts->still_running);
	expect_range(trace, 0, 99);
	assert_int_equal(facts->duration_ns, 5000000);
	expect_end(trace, 100, 0, 0, false);
}

static void an_empty_trace_has_no_events(void **state)
{
	(void)state;
	build_start(&build);
	struct trace *trace = open_built();
	assert_int_equal(trace_facts(trace)->status, -1);
	expect_end(trace, 0, 0, 0, false);
}

static void overlapping_chunks_give_no_event_twice(void **state)
{
	(void)state;
	build_start(&build);
	build_chunk_range(&build, 0, 50);
	build_chunk_range(&build, 40, 60);
	build_chunk_range(&build, 10, 20);
	build_chunk_range(&build, 61, 70);
	struct trace *trace = open_built();
	expect_range(trace, 0, 70);
	expect_end(trace, 71, 0, 0, false);
}

/* ---------- definitions ---------- */

static void definitions_come_from_chunks_and_halves_in_order(void **state)
{
	static struct records first, second, third;
	(void)state;
	memset(&first, 0, sizeof first);
	memset(&second, 0, sizeof second);
	memset(&third, 0, sizeof third);
	build_start(&build);
	put_string(&first, 1, "one");
	put_string(&second, 2, "two");
	put_string(&third, 3, "three");
	put_thread(&third, 1, 99, 3);
	build_definitions_chunk(&build, &first);
	build_half(&build, 1, 2, 8, &second);
	build_half(&build, 0, 1, 9, &third);
	struct trace *trace = open_built();
	assert_string_equal(defs_string(trace_defs(trace), 1), "one");
	assert_string_equal(defs_string(trace_defs(trace), 2), "two");
	assert_string_equal(defs_thread(trace_defs(trace), 1)->name, "three");
	expect_end(trace, 0, 0, 0, false);
}

static void a_half_that_is_in_a_chunk_too_gives_no_fact_twice(void **state)
{
	static struct records records;
	(void)state;
	memset(&records, 0, sizeof records);
	build_start(&build);
	put_string(&records, 1, "-v");
	put_info(&records, MEMTRACE_INFO_ARGUMENT, 1);
	put_info(&records, MEMTRACE_INFO_ARGUMENT, 1);
	build_definitions_chunk(&build, &records);
	put_info(&records, MEMTRACE_INFO_HOST, 1); /* the half has grown since */
	build_half(&build, 0, 2, 1, &records);
	struct trace *trace = open_built();
	assert_string_equal(defs_info(trace_defs(trace), MEMTRACE_INFO_ARGUMENT, 1), "-v");
	assert_null(defs_info(trace_defs(trace), MEMTRACE_INFO_ARGUMENT, 2));
	assert_string_equal(defs_info(trace_defs(trace), MEMTRACE_INFO_HOST, 0), "-v");
	expect_end(trace, 0, 0, 0, false);
}

static void a_half_that_is_empty_is_not_read(void **state)
{
	static struct records records;
	(void)state;
	memset(&records, 0, sizeof records);
	build_start(&build);
	put_string(&records, 1, "left over");
	build_half(&build, 0, 0, 5, &records);
	struct trace *trace = open_built();
	assert_string_equal(defs_string(trace_defs(trace), 1), "");
	expect_end(trace, 0, 0, 0, false);
}

static void a_damaged_definition_is_said_and_events_are_read_on(void **state)
{
	static struct records records;
	(void)state;
	memset(&records, 0, sizeof records);
	build_start(&build);
	put_string(&records, 1, "good");
	put_string(&records, 3, "out of order");
	build_definitions_chunk(&build, &records);
	build_chunk_range(&build, 0, 9);
	struct trace *trace = open_built();
	assert_string_equal(defs_string(trace_defs(trace), 1), "good");
	expect_range(trace, 0, 9);
	expect_end(trace, 10, 0, 0, true);
}

static void chunks_of_later_kinds_are_passed_over(void **state)
{
	const struct memtrace_chunk later = {.kind = 99};
	(void)state;
	build_start(&build);
	build_chunk_range(&build, 0, 9);
	build_chunk(&build, &later, "whatever", 8);
	build_chunk_range(&build, 10, 19);
	struct trace *trace = open_built();
	expect_range(trace, 0, 19);
	expect_end(trace, 20, 0, 0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_gives_chunks_window_and_ring_in_ticket_order),
		cmocka_unit_test(reader_reads_an_event_once_that_is_in_chunk_and_window),
		cmocka_unit_test(reader_takes_a_complete_chunk_that_the_header_does_not_count_yet),
		cmocka_unit_test(half_a_chunk_beyond_the_end_is_no_damage),
		cmocka_unit_test(ring_skips_unpublished_tickets),
		cmocka_unit_test(ring_goes_round),
		cmocka_unit_test(tickets_that_no_slot_can_hold_are_lost),
		cmocka_unit_test(a_clean_end_leaves_only_chunks),
		cmocka_unit_test(an_empty_trace_has_no_events),
		cmocka_unit_test(overlapping_chunks_give_no_event_twice),
		cmocka_unit_test(definitions_come_from_chunks_and_halves_in_order),
		cmocka_unit_test(a_half_that_is_in_a_chunk_too_gives_no_fact_twice),
		cmocka_unit_test(a_half_that_is_empty_is_not_read),
		cmocka_unit_test(a_damaged_definition_is_said_and_events_are_read_on),
		cmocka_unit_test(chunks_of_later_kinds_are_passed_over),
	};
	return cmocka_run_group_tests_name("reader", tests, 0, 0);
}
