/* trace/reader: bounded traces. Chunks that lie in no order, room with what was there before, states of which a piece
 * is missing, and a file whose chunks are overwritten while it is read. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "reader_checks.h"
#include "trace/writer.h"

static void start_bounded(void)
{
	build_start(&build);
	build_header(&build)->bound_bytes = BUILD_BYTES;
}

static void add_piece(uint64_t sequence, uint32_t number, bool is_last, const char *content)
{
	const struct memtrace_chunk head = {
		.kind = MEMTRACE_CHUNK_CHECKPOINT,
		.first_sequence = sequence,
		.last_sequence = sequence,
		.count = number,
		.rows_bytes = is_last,
	};
	build_chunk(&build, &head, content, strlen(content));
}

static void expect_piece(struct trace *trace, const char *content)
{
	size_t bytes = 0;
	const unsigned char *piece = trace_state_piece(trace, &bytes);
	if (!content) {
		assert_null(piece);
		return;
	}
	assert_non_null(piece);
	assert_int_equal(bytes, strlen(content));
	assert_memory_equal(piece, content, bytes);
}

/* ---------- the chain ---------- */

static void chunks_are_read_in_the_order_of_their_sequences(void **state)
{
	(void)state;
	start_bounded();
	build_chunk_range(&build, 300, 349);
	add_piece(200, 1, true, "second");
	build_chunk_range(&build, 150, 249);
	build_chunk_range(&build, 250, 299);
	add_piece(200, 0, false, "first");
	struct trace *trace = open_built();
	assert_int_equal(trace_state_count(trace), 1);
	assert_int_equal(trace_facts(trace)->given_up, 200);
	expect_piece(trace, "first");
	expect_piece(trace, "second");
	expect_piece(trace, NULL);
	expect_range(trace, 200, 349);
	expect_end(trace, 150, 0, 0, false);
}

/* Its checksum is that of its header alone; old chunks in it are not seen. */
static void what_lies_in_room_is_not_read(void **state)
{
	(void)state;
	start_bounded();
	uint64_t room = build_chunk_range(&build, 0, 99);
	build_chunk_range(&build, 100, 199);
	uint64_t end = build.bytes;
	add_piece(200, 0, true, "state");
	build_chunk_range(&build, 200, 220);
	struct memtrace_chunk head = {.magic = MEMTRACE_CHUNK_MAGIC, .kind = MEMTRACE_CHUNK_FREE, .version = 1,
				      .stored_bytes = (uint32_t)(end - room - sizeof head)};
	head.checksum = build_checksum(sizeof head, (void *)&head, sizeof head);
	memcpy(build.data + room, &head, sizeof head);
	struct trace *trace = open_built();
	expect_range(trace, 200, 220);
	expect_end(trace, 21, 0, 0, false);
}

/* ---------- torn states ---------- */

static void a_state_without_its_last_piece_is_passed_over(void **state)
{
	(void)state;
	start_bounded();
	build_chunk_range(&build, 100, 199);
	add_piece(120, 0, false, "torn");
	add_piece(150, 0, false, "a");
	add_piece(150, 1, true, "b");
	add_piece(190, 0, false, "killed meanwhile");
	struct trace *trace = open_built();
	assert_int_equal(trace_state_count(trace), 1);
	expect_piece(trace, "a");
	expect_piece(trace, "b");
	expect_range(trace, 150, 199);
	expect_end(trace, 50, 0, 0, false);
}

static void a_state_without_a_piece_in_the_middle_is_passed_over(void **state)
{
	(void)state;
	start_bounded();
	build_chunk_range(&build, 100, 199);
	add_piece(120, 0, false, "a");
	add_piece(120, 2, true, "c");
	struct trace *trace = open_built();
	assert_int_equal(trace_state_count(trace), 0);
	expect_range(trace, 100, 199);
	expect_end(trace, 100, 100, 0, false); /* what is before is lost, not given up */
}

static void a_second_state_is_taken_on_request(void **state)
{
	(void)state;
	start_bounded();
	build_chunk_range(&build, 100, 199);
	add_piece(120, 0, true, "old");
	add_piece(180, 0, true, "new");
	struct trace *trace = open_built();
	assert_int_equal(trace_state_count(trace), 2);
	trace_state_begin(trace, 1);
	expect_piece(trace, "new");
	expect_range(trace, 180, 199);
	expect_end(trace, 20, 0, 0, false);
}

/* ---------- while it is overwritten ---------- */

#define LIVE_EVENTS 4000000

static struct live {
	struct writer writer;
	atomic_bool is_over;
} live;

/* Hard to compress, so that the area is soon full. */
static uint64_t address_of(uint64_t sequence)
{
	return (sequence * 0x9e3779b97f4a7c15u) >> 8;
}

static void *write_around(void *unused)
{
	(void)unused;
	for (uint64_t sequence = 0; sequence < LIVE_EVENTS; sequence++) {
		struct event ev = build_event(sequence);
		ev.address = address_of(sequence);
		if (writer_wants_checkpoint(&live.writer))
			writer_add_checkpoint(&live.writer, sequence, 0, true, &sequence, sizeof sequence);
		live.writer.live->head = sequence + 1;
		writer_add(&live.writer, &ev);
		__atomic_store_n(&live.writer.live->consumed, sequence + 1, __ATOMIC_RELEASE);
	}
	atomic_store(&live.is_over, true);
	return NULL;
}

/* Whatever was overwritten meanwhile is told; no event is another one, or stands in another's place. True: it was whole. */
static bool read_a_moment(const char *path)
{
	char error[256] = "";
	struct trace *trace = trace_open(path, error, sizeof error);
	struct event ev;
	size_t bytes = 0;
	if (!trace)
		fail_msg("%s", error);
	uint64_t next = trace_facts(trace)->given_up, first = next, seen = 0, sequence = next;
	const unsigned char *piece = trace_state_count(trace) ? trace_state_piece(trace, &bytes) : NULL;
	if (piece)
		memcpy(&sequence, piece, sizeof sequence);
	assert_int_equal(sequence, first);
	for (; trace_next(trace, &ev); seen++, next = ev.sequence + 1)
		if (ev.sequence < next || ev.address != address_of(ev.sequence))
			fail_msg("event %lu is wrong", (unsigned long)ev.sequence);
	const struct trace_facts *facts = trace_facts(trace);
	bool is_whole = !facts->torn && !facts->lost;
	assert_true(seen + facts->lost + facts->in_flight >= next - first);
	assert_true(is_whole || facts->torn);
	trace_close(trace);
	return is_whole;
}

static void a_trace_that_is_overwritten_is_read_rightly_or_said_to_be_torn(void **state)
{
	char directory[] = "/tmp/test_reader.XXXXXX", path[64];
	unsigned reads = 0, whole = 0;
	pthread_t thread;
	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/x.mtrace", directory);
	assert_int_equal(writer_create(&live.writer, path), 0);
	writer_set_bound(&live.writer, WRITER_BOUND_MIN);
	assert_int_equal(pthread_create(&thread, NULL, write_around, NULL), 0);
	for (; !atomic_load(&live.is_over); reads++)
		whole += read_a_moment(path);
	pthread_join(thread, NULL);
	writer_finish(&live.writer, MEMTRACE_EXIT, 0, 1);
	assert_true(reads > 0);
	assert_true(read_a_moment(path)); /* now nobody writes */
	unlink(path);
	rmdir(directory);
	print_message("%u of %u reads were whole\n", whole, reads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_are_read_in_the_order_of_their_sequences),
		cmocka_unit_test(what_lies_in_room_is_not_read),
		cmocka_unit_test(a_state_without_its_last_piece_is_passed_over),
		cmocka_unit_test(a_state_without_a_piece_in_the_middle_is_passed_over),
		cmocka_unit_test(a_second_state_is_taken_on_request),
		cmocka_unit_test(a_trace_that_is_overwritten_is_read_rightly_or_said_to_be_torn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
