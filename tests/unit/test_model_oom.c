/* model: retries, and running out of memory. Each sequence is what PyTorch's malloc does, call by
 * call. */
#include "test_model_kit.h"

#define A 0x10000000ull
#define B 0x20000000ull
#define C 0x30000000ull

/* Three segments of 20 MiB, one block of 1 MiB in the first. */
static void open_with_cache(struct scene *s, const char *conf)
{
	scene_open_with(s, conf);
	obtain(s, MEMTRACE_SPACE_DEVICE, A, 20 * MIB, TORCH);
	block(s, A, 1 * MIB, TORCH);
	obtain(s, MEMTRACE_SPACE_DEVICE, B, 20 * MIB, TORCH);
	block(s, B, 1 * MIB, TORCH);
	obtain(s, MEMTRACE_SPACE_DEVICE, C, 20 * MIB, TORCH);
	block(s, C, 1 * MIB, TORCH);
	block_free(s, B);
	block_free(s, C);
}

static void flush(struct scene *s, uint32_t stack)
{
	give_back(s, MEMTRACE_SPACE_DEVICE, B, stack);
	give_back(s, MEMTRACE_SPACE_DEVICE, C, stack);
}

static void success_after_a_failed_call_is_a_retry(void **state)
{
	struct scene s;
	(void)state;
	open_with_cache(&s, NULL);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 40 * MIB, TORCH);
	flush(&s, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, B, 40 * MIB, TORCH);
	block(&s, B, 40 * MIB, TORCH);
	assert_int_equal(device(&s)->retries, 1);
	assert_int_equal(device(&s)->ooms, 0);
	obtain(&s, MEMTRACE_SPACE_DEVICE, C, 20 * MIB, TORCH);
	block(&s, C, 1 * MIB, TORCH); /* an ordinary one */
	assert_int_equal(device(&s)->retries, 1);
	model_finish(s.m);
	assert_int_equal(device(&s)->ooms, 0);
	scene_close(&s);
}

static void failed_call_whose_block_comes_from_the_cache_is_no_retry(void **state)
{
	struct scene s;
	(void)state;
	open_with_cache(&s, NULL);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 40 * MIB, TORCH);
	block(&s, B, 1 * MIB, TORCH);
	assert_int_equal(device(&s)->retries, 0);
	scene_close(&s);
}

static void memory_from_before_the_last_failure_is_no_retry(void **state)
{
	struct scene s;
	(void)state;
	open_with_cache(&s, NULL);
	run_out(&s, MEMTRACE_SPACE_VMM, 20 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_VMM, 3, 20 * MIB, TORCH); /* one of two */
	run_out(&s, MEMTRACE_SPACE_VMM, 20 * MIB, TORCH);
	give_back(&s, MEMTRACE_SPACE_VMM, 3, TORCH);
	block(&s, B, 1 * MIB, TORCH); /* from another pool's cache */
	assert_int_equal(device(&s)->retries, 0);
	scene_close(&s);
}

static void retry_belongs_to_its_device(void **state)
{
	struct scene s;
	(void)state;
	open_with_cache(&s, NULL);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 40 * MIB, TORCH);
	s.next.device = 1;
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x50000000, 2 * MIB, TORCH);
	block(&s, 0x50000000, 1 * MIB, TORCH);
	assert_int_equal(model_device(s.m, 0)->retries, 0);
	assert_int_equal(model_device(s.m, 1)->retries, 0);
	scene_close(&s);
}

static void retry_belongs_to_its_thread(void **state)
{
	struct scene s;
	(void)state;
	open_with_cache(&s, NULL);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 40 * MIB, TORCH);
	s.next.thread = 2;
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x50000000, 2 * MIB, TORCH);
	block(&s, 0x50000000, 1 * MIB, TORCH);
	assert_int_equal(device(&s)->retries, 0);
	s.next.thread = 1;
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x60000000, 40 * MIB, TORCH);
	block(&s, 0x60000000, 1 * MIB, TORCH);
	assert_int_equal(device(&s)->retries, 1);
	scene_close(&s);
}

static void expandable_retry_counts_handles_of_the_failed_attempt_out(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	put(&s, MEMTRACE_RESERVE, MEMTRACE_SPACE_VMM, A, 1000 * MIB, 0, TORCH);
	obtain(&s, MEMTRACE_SPACE_VMM, 1, 20 * MIB, TORCH);
	map(&s, A, 20 * MIB, 1);
	block(&s, A, 1 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_VMM, 2, 20 * MIB, TORCH);
	map(&s, A + 20 * MIB, 20 * MIB, 2);
	block(&s, A + 20 * MIB, 20 * MIB, TORCH);
	block_free(&s, A + 20 * MIB);

	obtain(&s, MEMTRACE_SPACE_VMM, 3, 20 * MIB, TORCH); /* attempt 1: one of two */
	run_out(&s, MEMTRACE_SPACE_VMM, 20 * MIB, TORCH);
	give_back(&s, MEMTRACE_SPACE_VMM, 3, TORCH);
	unmap(&s, A + 20 * MIB, 20 * MIB); /* the flush */
	give_back(&s, MEMTRACE_SPACE_VMM, 2, TORCH);
	run_out(&s, MEMTRACE_SPACE_VMM, 20 * MIB, TORCH); /* attempt 2 */
	meminfo(&s, 30 * MIB, 100 * MIB);
	block_oom(&s, 60 * MIB);

	const struct model_oom *oom = model_oom(s.m, 0);
	assert_int_equal(oom->reserved_bytes, 40 * MIB);
	assert_int_equal(oom->pytorch_reserved_bytes, 40 * MIB);
	assert_int_equal(oom->flushed_bytes, 20 * MIB);
	assert_int_equal(oom->free_bytes, 10 * MIB);
	assert_int_equal(oom->driver_bytes, 20 * MIB);
	assert_int_equal(device(&s)->pytorch_reserved.current_bytes, 20 * MIB);
	scene_close(&s);
}

static void flush_under_a_memory_fraction_is_a_retry(void **state)
{
	struct scene s;
	(void)state;
	open_with_cache(&s, NULL);
	flush(&s, TORCH); /* no call failed: the limit is PyTorch's own */
	obtain(&s, MEMTRACE_SPACE_DEVICE, B, 40 * MIB, TORCH);
	block(&s, B, 40 * MIB, TORCH);
	assert_int_equal(device(&s)->retries, 1);
	scene_close(&s);
}

static void empty_cache_is_no_retry(void **state)
{
	static const uint32_t stacks[] = {TORCH_EMPTY_CACHE, TORCH_OTHER};
	struct scene s;
	(void)state;
	for (int i = 0; i < 2; i++) {
		open_with_cache(&s, NULL);
		flush(&s,
		      stacks[i]); /* in a function of that name, or elsewhere than the allocation */
		obtain(&s, MEMTRACE_SPACE_DEVICE, B, 40 * MIB, TORCH);
		block(&s, B, 40 * MIB, TORCH);
		assert_int_equal(device(&s)->retries, 0);
		scene_close(&s);
	}
}

static void garbage_collection_is_no_retry(void **state)
{
	struct scene s;
	(void)state;
	open_with_cache(&s, "garbage_collection_threshold:0.6");
	flush(&s, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, B, 40 * MIB, TORCH);
	block(&s, B, 40 * MIB, TORCH);
	assert_int_equal(device(&s)->retries, 0);
	obtain(&s, MEMTRACE_SPACE_DEVICE, C, 2 * MIB, TORCH);
	block(&s, C, 1 * MIB, TORCH);
	block_free(&s, C);
	give_back(&s, MEMTRACE_SPACE_DEVICE, C, TORCH); /* of the small pool: left alone by it */
	obtain(&s, MEMTRACE_SPACE_DEVICE, C, 20 * MIB, TORCH);
	block(&s, C, 20 * MIB, TORCH);
	assert_int_equal(device(&s)->retries, 1);
	scene_close(&s);
}

static void partial_flush_under_a_memory_fraction_is_no_retry(void **state)
{
	struct scene s;
	(void)state;
	scene_open_with(&s, "max_split_size_mb:32");
	obtain(&s, MEMTRACE_SPACE_DEVICE, A, 40 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, B, 60 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, C, 80 * MIB, TORCH);
	block(&s, 0x70000000, 1 * MIB, TORCH);
	give_back(&s, MEMTRACE_SPACE_DEVICE, A, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, A, 34 * MIB, TORCH);
	block(&s, A, 34 * MIB, TORCH);
	assert_int_equal(device(&s)->retries, 0);
	give_back(&s, MEMTRACE_SPACE_DEVICE, B, TORCH); /* enough, but the other follows */
	give_back(&s, MEMTRACE_SPACE_DEVICE, C, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, C, 34 * MIB, TORCH);
	block(&s, C, 34 * MIB, TORCH);
	assert_int_equal(device(&s)->retries, 1);
	scene_close(&s);
}

static void attempt_after_a_partial_flush_is_no_retry(void **state)
{
	struct scene s;
	(void)state;
	scene_open_with(&s, "expandable_segments:False,max_split_size_mb:32");
	obtain(&s, MEMTRACE_SPACE_DEVICE, A, 40 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, B, 2 * MIB, TORCH);
	block(&s, C, 1 * MIB, TORCH);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 40 * MIB, TORCH);
	give_back(&s, MEMTRACE_SPACE_DEVICE, A, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, A, 40 * MIB, TORCH);
	block(&s, A, 40 * MIB, TORCH);
	assert_int_equal(device(&s)->retries, 0);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 40 * MIB, TORCH);
	give_back(&s, MEMTRACE_SPACE_DEVICE, B, TORCH); /* a small one: all were given back */
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x60000000, 40 * MIB, TORCH);
	block(&s, 0x60000000, 40 * MIB, TORCH);
	assert_int_equal(device(&s)->retries, 1);
	scene_close(&s);
}

/* As in PyTorch 2.8 inside use_mem_pool(): the cache is not given back. */
static void oom_after_one_failed_call_was_not_retried(void **state)
{
	struct scene s;
	(void)state;
	open_with_cache(&s, NULL);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 80 * MIB, TORCH);
	meminfo(&s, 50 * MIB, 900 * MIB);
	block_oom(&s, 79 * MIB);
	assert_int_equal(device(&s)->ooms, 1);
	assert_int_equal(device(&s)->retries, 0);
	flush(&s, TORCH); /* a memory fraction made the first attempt fail */
	run_out(&s, MEMTRACE_SPACE_DEVICE, 80 * MIB, TORCH);
	block_oom(&s, 79 * MIB);
	assert_int_equal(device(&s)->retries, 1);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 80 * MIB, TORCH);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 80 * MIB, TORCH);
	block_oom(&s, 79 * MIB);
	assert_int_equal(device(&s)->retries, 2);
	block_oom(&s, 79 * MIB); /* both attempts were above a fraction */
	assert_int_equal(device(&s)->retries, 3);
	scene_close(&s);
}

static void oom_shows_the_state_before_the_flush(void **state)
{
	struct scene s;
	struct model_share rows[2];
	(void)state;
	open_with_cache(&s, NULL);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x50000000, 7 * MIB, NCCL);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 80 * MIB, TORCH);
	flush(&s, TORCH);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 80 * MIB, TORCH);
	meminfo(&s, 50 * MIB, 900 * MIB);
	block_oom(&s, 79 * MIB);
	uint64_t sequence = s.sequence;
	block_free(&s, A); /* afterwards */

	assert_int_equal(device(&s)->ooms, 1);
	assert_int_equal(device(&s)->retries, 1);
	assert_int_equal(model_oom_count(s.m), 1);
	const struct model_oom *oom = model_oom(s.m, 0);
	assert_true(oom->by_pytorch);
	assert_int_equal(oom->sequence, sequence);
	assert_int_equal(oom->requested_bytes, 79 * MIB);
	assert_int_equal(oom->driver_bytes, 80 * MIB);
	assert_int_equal(oom->free_bytes, 10 * MIB);
	assert_int_equal(oom->total_bytes, 900 * MIB);
	assert_int_equal(oom->allocated_bytes, 8 * MIB);
	assert_int_equal(oom->pytorch_allocated_bytes, 1 * MIB);
	assert_int_equal(oom->reserved_bytes, 67 * MIB);
	assert_int_equal(oom->pytorch_reserved_bytes, 60 * MIB);
	assert_int_equal(oom->flushed_bytes, 40 * MIB);
	assert_int_equal(oom->stack, TORCH);
	assert_int_equal(oom->thread, 1);
	assert_int_equal(model_stacks_at_oom(s.m, 0, rows, 2), 2);
	assert_int_equal(rows[0].bytes, 7 * MIB);
	assert_int_equal(rows[1].bytes, 1 * MIB);
	model_finish(s.m);
	assert_int_equal(device(&s)->ooms, 1);
	scene_close(&s);
}

static void what_was_given_back_earlier_is_not_pending(void **state)
{
	struct scene s;
	(void)state;
	open_with_cache(&s, NULL);
	give_back(&s, MEMTRACE_SPACE_DEVICE, B, TORCH_EMPTY_CACHE);
	give_back(&s, MEMTRACE_SPACE_DEVICE, C, TORCH_EMPTY_CACHE);
	meminfo(&s, 50 * MIB, 900 * MIB);
	block_oom(&s, 79 * MIB); /* a limit: no call failed */
	const struct model_oom *oom = model_oom(s.m, 0);
	assert_int_equal(oom->reserved_bytes, 20 * MIB);
	assert_int_equal(oom->flushed_bytes, 0);
	assert_int_equal(oom->free_bytes, 50 * MIB);
	assert_int_equal(oom->driver_bytes, 0);
	scene_close(&s);
}

static void failed_free_is_not_pending(void **state)
{
	struct scene s;
	(void)state;
	open_with_cache(&s, NULL);
	fail_free(&s, give_back(&s, MEMTRACE_SPACE_DEVICE, B, TORCH));
	block_oom(&s, 79 * MIB);
	assert_int_equal(model_oom(s.m, 0)->reserved_bytes, 60 * MIB);
	assert_int_equal(model_oom(s.m, 0)->flushed_bytes, 0);
	assert_true(model_oom(s.m, 0)->free_bytes == UINT64_MAX);
	assert_int_equal(model_oom(s.m, 0)->total_bytes, 1000 * MIB);
	scene_close(&s);
}

static void oom_while_capturing_is_no_retry(void **state)
{
	struct scene s;
	(void)state;
	open_with_cache(&s, NULL);
	s.next.flags = MEMTRACE_CAPTURING;
	block_oom(&s, 79 * MIB);
	assert_int_equal(device(&s)->ooms, 1);
	assert_int_equal(device(&s)->retries, 0);
	scene_close(&s);
}

static void probe_that_is_followed_by_a_success_is_no_oom(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 80 * MIB, PROGRAM);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 40 * MIB, PROGRAM);
	obtain(&s, MEMTRACE_SPACE_DEVICE, A, 20 * MIB, PROGRAM);
	model_finish(s.m);
	assert_int_equal(device(&s)->ooms, 0);
	assert_int_equal(model_oom_count(s.m), 0);
	scene_close(&s);
}

static void failure_that_nothing_follows_is_an_oom(void **state)
{
	struct scene s;
	struct model_share row;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, A, 20 * MIB, PROGRAM);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 80 * MIB, PROGRAM);
	uint64_t sequence = s.sequence;
	run_out(&s, MEMTRACE_SPACE_DEVICE, 40 * MIB, PROGRAM);
	meminfo(&s, 30 * MIB, 100 * MIB);
	give_back(&s, MEMTRACE_SPACE_DEVICE, A, PROGRAM);
	s.next.thread = 2;
	obtain(&s, MEMTRACE_SPACE_DEVICE, B, 1 * MIB, PROGRAM); /* another thread's */
	assert_int_equal(device(&s)->ooms, 0);
	model_finish(s.m);
	assert_int_equal(device(&s)->ooms, 1);
	assert_int_equal(device(&s)->retries, 0);
	const struct model_oom *oom = model_oom(s.m, 0);
	assert_false(oom->by_pytorch);
	assert_int_equal(oom->sequence, sequence);
	assert_int_equal(oom->requested_bytes, 80 * MIB);
	assert_int_equal(oom->driver_bytes, 80 * MIB);
	assert_int_equal(oom->free_bytes, 30 * MIB);
	assert_int_equal(oom->allocated_bytes, 20 * MIB);
	assert_int_equal(oom->reserved_bytes, 20 * MIB);
	assert_int_equal(model_stacks_at_oom(s.m, 0, &row, 1), 1);
	assert_int_equal(row.bytes, 20 * MIB);
	scene_close(&s);
}

static void patience_with_a_failure_ends(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 80 * MIB, PROGRAM);
	s.next.thread = 2;
	for (int i = 0; i < 20000; i++)
		put(&s, MEMTRACE_MARK, MEMTRACE_SPACE_NONE, 0, 0, 0, 0);
	assert_int_equal(device(&s)->ooms, 0); /* its thread has done nothing yet */
	s.next.thread = 1;
	for (int i = 0; i < 10000; i++)
		put(&s, MEMTRACE_MARK, MEMTRACE_SPACE_NONE, 0, 0, 0, 0);
	assert_int_equal(device(&s)->ooms, 0);
	put(&s, MEMTRACE_MARK, MEMTRACE_SPACE_NONE, 0, 0, 0, 0);
	assert_int_equal(device(&s)->ooms, 1);
	obtain(&s, MEMTRACE_SPACE_DEVICE, A, 20 * MIB, PROGRAM);
	model_finish(s.m);
	assert_int_equal(device(&s)->ooms, 1);
	scene_close(&s);
}

static void async_failure_followed_by_meminfo_is_an_oom(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_STREAM, A, 20 * MIB, TORCH);
	run_out(&s, MEMTRACE_SPACE_STREAM, 80 * MIB, TORCH); /* a probe */
	obtain(&s, MEMTRACE_SPACE_STREAM, B, 20 * MIB, TORCH);
	meminfo(&s, 40 * MIB, 100 * MIB);
	assert_int_equal(device(&s)->ooms, 0);
	run_out(&s, MEMTRACE_SPACE_STREAM, 80 * MIB, TORCH);
	meminfo(&s, 30 * MIB, 100 * MIB);
	assert_int_equal(device(&s)->ooms, 1);
	assert_true(model_oom(s.m, 0)->by_pytorch);
	assert_int_equal(model_oom(s.m, 0)->free_bytes, 30 * MIB);
	obtain(&s, MEMTRACE_SPACE_STREAM, C, 20 * MIB, TORCH);
	model_finish(s.m);
	assert_int_equal(device(&s)->ooms, 1);
	assert_int_equal(device(&s)->retries, 0);
	scene_close(&s);
}

static void host_memory_that_runs_out_is_no_oom(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, A, 20 * MIB, PROGRAM);
	s.next.device = MEMTRACE_DEVICE_HOST;
	run_out(&s, MEMTRACE_SPACE_PINNED, 80 * MIB, PROGRAM);
	run_out(&s, MEMTRACE_SPACE_VMM, 80 * MIB, PROGRAM);
	model_finish(s.m);
	assert_int_equal(device(&s)->ooms, 0);
	scene_close(&s);
}

static void four_ooms_are_described_and_all_are_counted(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	s.next.thread = 2;
	run_out(&s, MEMTRACE_SPACE_DEVICE, 80 * MIB,
		PROGRAM); /* the first, known as one at the end only */
	s.next.thread = 3;
	run_out(&s, MEMTRACE_SPACE_DEVICE, 81 * MIB, PROGRAM);
	s.next.thread = 1;
	for (int i = 0; i < 2; i++)
		block_oom(&s, 5 * MIB);
	s.next.thread = 4;
	run_out(&s, MEMTRACE_SPACE_DEVICE, 82 * MIB, PROGRAM);
	model_finish(s.m);
	assert_int_equal(device(&s)->ooms, 5);
	assert_int_equal(model_oom_count(s.m), 4);
	static const uint64_t sequences[] = {3, 4, 1, 2}; /* as they became certain */
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(model_oom(s.m, i)->sequence, sequences[i]);
	assert_null(model_oom(s.m, 4));
	assert_int_equal(model_stacks_at_oom(s.m, 4, NULL, 0), 0);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(success_after_a_failed_call_is_a_retry),
		cmocka_unit_test(failed_call_whose_block_comes_from_the_cache_is_no_retry),
		cmocka_unit_test(memory_from_before_the_last_failure_is_no_retry),
		cmocka_unit_test(retry_belongs_to_its_device),
		cmocka_unit_test(retry_belongs_to_its_thread),
		cmocka_unit_test(expandable_retry_counts_handles_of_the_failed_attempt_out),
		cmocka_unit_test(flush_under_a_memory_fraction_is_a_retry),
		cmocka_unit_test(empty_cache_is_no_retry),
		cmocka_unit_test(garbage_collection_is_no_retry),
		cmocka_unit_test(partial_flush_under_a_memory_fraction_is_no_retry),
		cmocka_unit_test(attempt_after_a_partial_flush_is_no_retry),
		cmocka_unit_test(oom_after_one_failed_call_was_not_retried),
		cmocka_unit_test(oom_shows_the_state_before_the_flush),
		cmocka_unit_test(what_was_given_back_earlier_is_not_pending),
		cmocka_unit_test(failed_free_is_not_pending),
		cmocka_unit_test(oom_while_capturing_is_no_retry),
		cmocka_unit_test(probe_that_is_followed_by_a_success_is_no_oom),
		cmocka_unit_test(failure_that_nothing_follows_is_an_oom),
		cmocka_unit_test(patience_with_a_failure_ends),
		cmocka_unit_test(async_failure_followed_by_meminfo_is_an_oom),
		cmocka_unit_test(host_memory_that_runs_out_is_no_oom),
		cmocka_unit_test(four_ooms_are_described_and_all_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
