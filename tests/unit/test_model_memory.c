/* model: what the driver gave out. */
#include "test_model_kit.h"

static void program_without_blocks_has_allocated_equal_to_reserved(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 300, PROGRAM);
	obtain(&s, MEMTRACE_SPACE_MANAGED, 0x2000, 50, PROGRAM);
	obtain(&s, MEMTRACE_SPACE_ARRAY, 0x55, 7, PROGRAM);
	obtain(&s, MEMTRACE_SPACE_STREAM, 0x3000, 20, PROGRAM);
	obtain(&s, MEMTRACE_SPACE_VMM, 0x77, 100, PROGRAM);
	give_back(&s, MEMTRACE_SPACE_DEVICE, 0x1000, PROGRAM);
	check_counter(&device(&s)->allocated, 177, 477, 5, 1);
	check_counter(&device(&s)->reserved, 177, 477, 5, 1);
	check_counter(&device(&s)->pytorch_reserved, 0, 0, 0, 0);
	assert_int_equal(device(&s)->allocated.total_bytes, 477);
	assert_false(device(&s)->has_blocks);
	assert_int_equal(model_totals(s.m)->live_regions, 4);
	scene_close(&s);
}

static void uncached_pytorch_is_allocated_too(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 300, TORCH);
	check_counter(&device(&s)->allocated, 300, 300, 1, 0);
	scene_close(&s);
}

static void host_memory_is_never_device_memory(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_PINNED, 0x1000, 64, TORCH);
	s.next.device = MEMTRACE_DEVICE_HOST;
	obtain(&s, MEMTRACE_SPACE_REGISTERED, 0x2000, 32, TORCH);
	obtain(&s, MEMTRACE_SPACE_VMM, 0x77, 16, NCCL);
	assert_null(model_device(s.m, 0));
	assert_int_equal(model_totals(s.m)->pinned_current_bytes, 112);
	give_back(&s, MEMTRACE_SPACE_PINNED, 0x1000, TORCH);
	give_back(&s, MEMTRACE_SPACE_VMM, 0x77, TORCH);
	assert_int_equal(model_totals(s.m)->pinned_current_bytes, 32);
	assert_int_equal(model_totals(s.m)->pinned_peak_bytes, 112);
	assert_int_equal(model_totals(s.m)->live_regions, 0);
	scene_close(&s);
}

static void memory_of_unknown_device_is_kept_apart(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 10, PROGRAM);
	s.next.device = MEMTRACE_DEVICE_UNKNOWN;
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x2000, 5, PROGRAM);
	s.next.device = 3;
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x3000, 7, PROGRAM);
	assert_int_equal(model_device(s.m, 0)->ordinal, 0);
	assert_int_equal(model_device(s.m, 1)->ordinal, 3);
	assert_int_equal(model_device(s.m, 2)->ordinal, MEMTRACE_DEVICE_UNKNOWN);
	assert_int_equal(model_device(s.m, 2)->reserved.current_bytes, 5);
	assert_null(model_device(s.m, 3));
	assert_int_equal(model_stacks_now(s.m, MEMTRACE_DEVICE_UNKNOWN, NULL, 0), 1);
	scene_close(&s);
}

static void handle_stays_until_unmapped(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_VMM, 0x77, 2 * MIB, PROGRAM);
	map(&s, 0x100000, 2 * MIB, 0x77);
	give_back(&s, MEMTRACE_SPACE_VMM, 0x77, PROGRAM);
	assert_int_equal(device(&s)->reserved.current_bytes, 2 * MIB);
	unmap(&s, 0x100000, 2 * MIB);
	check_counter(&device(&s)->reserved, 0, 2 * MIB, 1, 1);
	scene_close(&s);
}

static void handle_is_counted_once_however_often_it_is_mapped(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_VMM, 0x77, 2 * MIB, PROGRAM);
	map(&s, 0x10000000, 2 * MIB, 0x77);
	map(&s, 0x20000000, 2 * MIB, 0x77);
	put(&s, MEMTRACE_RETAIN, MEMTRACE_SPACE_VMM, 0x77, 0, 0, PROGRAM);
	assert_int_equal(device(&s)->reserved.current_bytes, 2 * MIB);
	unmap(&s, 0x10000000, 2 * MIB);
	unmap(&s, 0x20000000, 2 * MIB);
	give_back(&s, MEMTRACE_SPACE_VMM, 0x77, PROGRAM);
	assert_int_equal(device(&s)->reserved.current_bytes, 2 * MIB);
	give_back(&s, MEMTRACE_SPACE_VMM, 0x77, PROGRAM);
	assert_int_equal(device(&s)->reserved.current_bytes, 0);
	assert_int_equal(model_totals(s.m)->unknown_frees, 0);
	give_back(&s, MEMTRACE_SPACE_VMM, 0x77, PROGRAM);
	assert_int_equal(model_totals(s.m)->unknown_frees, 1);
	scene_close(&s);
}

static void zombie_handle_is_revived_by_retain_and_replaced_by_create(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_VMM, 0x77, 100, PROGRAM);
	give_back(&s, MEMTRACE_SPACE_VMM, 0x77, PROGRAM);
	put(&s, MEMTRACE_RETAIN, MEMTRACE_SPACE_VMM, 0x77, 0, 0, PROGRAM);
	check_counter(&device(&s)->reserved, 100, 100, 1, 0);
	give_back(&s, MEMTRACE_SPACE_VMM, 0x77, PROGRAM);
	obtain(&s, MEMTRACE_SPACE_VMM, 0x77, 40, PROGRAM);
	check_counter(&device(&s)->reserved, 40, 100, 2, 1);
	assert_int_equal(model_totals(s.m)->double_allocations, 0);
	scene_close(&s);
}

static void many_zombies_are_forgotten(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	for (uint64_t i = 0; i < 20000; i++) {
		struct event e = {.what = MEMTRACE_ALLOC,
				  .space = MEMTRACE_SPACE_VMM,
				  .address = 1 + i,
				  .bytes = 8};
		assert_int_equal(model_apply(s.m, &e), 0);
		e.what = MEMTRACE_FREE;
		assert_int_equal(model_apply(s.m, &e), 0);
	}
	assert_true(model_is_consistent(s.m));
	assert_true(model_memory_bytes(s.m) < 2 * MIB);
	check_counter(&device(&s)->reserved, 0, 8, 20000, 20000);
	scene_close(&s);
}

static void reservation_is_no_memory(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	put(&s, MEMTRACE_RESERVE, MEMTRACE_SPACE_VMM, 0x10000000, 1000 * MIB, 0, TORCH);
	assert_null(model_device(s.m, 0));
	put(&s, MEMTRACE_RELEASE, MEMTRACE_SPACE_VMM, 0x10000000, 1000 * MIB, 0, TORCH);
	put(&s, MEMTRACE_RELEASE, MEMTRACE_SPACE_VMM, 0x10000000, 1000 * MIB, 0, TORCH);
	assert_int_equal(model_totals(s.m)->unknown_frees, 1);
	scene_close(&s);
}

static void pytorch_reserved_is_what_is_mapped(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_VMM, 1, 20 * MIB, TORCH);
	assert_int_equal(device(&s)->reserved.current_bytes, 20 * MIB);
	assert_int_equal(device(&s)->pytorch_reserved.current_bytes, 0);
	map(&s, 0x10000000, 20 * MIB, 1);
	check_counter(&device(&s)->pytorch_reserved, 20 * MIB, 20 * MIB, 1, 0);
	unmap(&s, 0x10000000, 20 * MIB);
	assert_int_equal(device(&s)->reserved.current_bytes, 20 * MIB);
	check_counter(&device(&s)->pytorch_reserved, 0, 20 * MIB, 1, 1);
	scene_close(&s);
}

static void segments_are_runs_of_mappings_in_one_reservation(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	put(&s, MEMTRACE_RESERVE, MEMTRACE_SPACE_VMM, 0x10000000, 8 * MIB, 0, TORCH);
	put(&s, MEMTRACE_RESERVE, MEMTRACE_SPACE_VMM, 0x10000000 + 8 * MIB, 8 * MIB, 0, TORCH);
	for (uint64_t i = 1; i <= 5; i++)
		obtain(&s, MEMTRACE_SPACE_VMM, i, 2 * MIB, TORCH);
	map(&s, 0x10000000, 2 * MIB, 1);
	map(&s, 0x10000000 + 4 * MIB, 2 * MIB, 2);
	assert_int_equal(device(&s)->pytorch_segments, 2);
	map(&s, 0x10000000 + 2 * MIB, 2 * MIB, 3);
	assert_int_equal(device(&s)->pytorch_segments, 1);
	map(&s, 0x10000000 + 6 * MIB, 2 * MIB, 4);
	map(&s, 0x10000000 + 8 * MIB, 2 * MIB, 5); /* touches, but is another reservation */
	assert_int_equal(device(&s)->pytorch_segments, 2);
	unmap(&s, 0x10000000 + 2 * MIB, 4 * MIB); /* two mappings */
	assert_int_equal(device(&s)->pytorch_segments, 3);
	assert_int_equal(device(&s)->pytorch_reserved.current_bytes, 6 * MIB);
	scene_close(&s);
}

static void native_segments_are_regions(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x10000000, 2 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x10000000 + 2 * MIB, 20 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x20000000, 1 * MIB, NCCL);
	assert_int_equal(device(&s)->pytorch_segments, 2);
	check_counter(&device(&s)->pytorch_reserved, 22 * MIB, 22 * MIB, 2, 0);
	check_counter(&device(&s)->reserved, 23 * MIB, 23 * MIB, 3, 0);
	scene_close(&s);
}

static void cuda_free_takes_stream_ordered_memory(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_STREAM, 0x1000, 10, PROGRAM);
	give_back(&s, MEMTRACE_SPACE_DEVICE, 0x1000, PROGRAM);
	assert_int_equal(device(&s)->reserved.current_bytes, 0);
	assert_int_equal(model_totals(s.m)->unknown_frees, 0);
	scene_close(&s);
}

static void memory_given_out_again_was_freed_first(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 0x1000, PROGRAM);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 0x2000, PROGRAM);
	check_counter(&device(&s)->reserved, 0x2000, 0x2000, 2, 1);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x3000, 0x1000, PROGRAM);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x2000, 0x1800, PROGRAM); /* overlaps both */
	check_counter(&device(&s)->reserved, 0x1800, 0x3000, 4, 3);
	assert_int_equal(model_totals(s.m)->double_allocations, 3);
	scene_close(&s);
}

static void impossible_sizes_are_counted_and_left_out(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, UINT64_MAX, PROGRAM);
	obtain(&s, MEMTRACE_SPACE_DEVICE, UINT64_MAX - 5, 10, PROGRAM);
	block(&s, 0x1000, 1ull << 60, TORCH);
	assert_null(model_device(s.m, 0));
	assert_int_equal(model_totals(s.m)->impossible_sizes, 3);
	scene_close(&s);
}

static void failed_free_is_undone(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 100, NCCL);
	uint64_t free = give_back(&s, MEMTRACE_SPACE_DEVICE, 0x1000, NCCL);
	s.next.thread = 2;
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x2000, 10, NCCL);
	give_back(&s, MEMTRACE_SPACE_DEVICE, 0x2000, NCCL);
	s.next.thread = 1;
	fail_free(&s, free);
	check_counter(&device(&s)->reserved, 100, 100, 2, 1);
	assert_int_equal(owner(&s, "nccl")->current_bytes, 100);
	fail_free(&s, free); /* once is enough */
	give_back(&s, MEMTRACE_SPACE_DEVICE, 0x1000, NCCL);
	check_counter(&device(&s)->reserved, 0, 100, 2, 2);
	assert_int_equal(model_totals(s.m)->unknown_frees, 0);
	scene_close(&s);
}

static void failed_free_of_nothing_is_undone(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	fail_free(&s, give_back(&s, MEMTRACE_SPACE_DEVICE, 0x9000, PROGRAM));
	assert_int_equal(model_totals(s.m)->unknown_frees, 0);
	scene_close(&s);
}

static void failed_unmap_release_and_host_free_are_undone(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	put(&s, MEMTRACE_RESERVE, MEMTRACE_SPACE_VMM, 0x10000000, 8 * MIB, 0, TORCH);
	obtain(&s, MEMTRACE_SPACE_VMM, 1, 2 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_VMM, 2, 2 * MIB, TORCH);
	map(&s, 0x10000000, 2 * MIB, 1);
	map(&s, 0x10000000 + 2 * MIB, 2 * MIB, 2);
	give_back(&s, MEMTRACE_SPACE_VMM, 1, TORCH);
	fail_free(&s, unmap(&s, 0x10000000, 4 * MIB));
	check_counter(&device(&s)->pytorch_reserved, 4 * MIB, 4 * MIB, 2, 0);
	check_counter(&device(&s)->reserved, 4 * MIB, 4 * MIB, 2, 0);
	assert_int_equal(device(&s)->pytorch_segments, 1);
	fail_free(&s, give_back(&s, MEMTRACE_SPACE_VMM, 2, TORCH));
	unmap(&s, 0x10000000, 4 * MIB);
	assert_int_equal(device(&s)->reserved.current_bytes, 2 * MIB);
	fail_free(&s, put(&s, MEMTRACE_RELEASE, MEMTRACE_SPACE_VMM, 0x10000000, 0, 0, TORCH));
	put(&s, MEMTRACE_RELEASE, MEMTRACE_SPACE_VMM, 0x10000000, 0, 0, TORCH);
	obtain(&s, MEMTRACE_SPACE_PINNED, 0x1000, 64, TORCH);
	fail_free(&s, give_back(&s, MEMTRACE_SPACE_PINNED, 0x1000, TORCH));
	assert_int_equal(model_totals(s.m)->pinned_current_bytes, 64);
	assert_int_equal(model_totals(s.m)->unknown_frees, 0);
	scene_close(&s);
}

static void untracked_is_what_is_in_use_beyond_what_we_know(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 100 * MIB, TORCH);
	assert_int_equal(device(&s)->total_bytes, 1000 * MIB);
	assert_false(device(&s)->free_known);
	meminfo(&s, 600 * MIB, 1000 * MIB);
	assert_true(device(&s)->free_known);
	assert_int_equal(device(&s)->free_bytes_last, 600 * MIB);
	assert_int_equal(device(&s)->untracked_bytes, 300 * MIB);
	scene_close(&s);
}

static void unknown_ids_and_kinds_do_no_harm(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	s.next.thread = 0xfffffff0;
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 10, 0xfffffff0);
	put(&s, (enum memtrace_what)200, (enum memtrace_space)99, 1, 2, 3, 4);
	obtain(&s, (enum memtrace_space)99, 0x5000, 10, PROGRAM);
	map(&s, 0x9000, 100, 12345);
	unmap(&s, 0x9000, 100);
	unmap(&s, 0x9000, 0);
	assert_int_equal(model_totals(s.m)->unknown_frees, 1);
	assert_string_equal(model_owner(s.m, 0, 0)->name, "unknown");
	assert_int_equal(device(&s)->peak.stack, 0);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(program_without_blocks_has_allocated_equal_to_reserved),
		cmocka_unit_test(uncached_pytorch_is_allocated_too),
		cmocka_unit_test(host_memory_is_never_device_memory),
		cmocka_unit_test(memory_of_unknown_device_is_kept_apart),
		cmocka_unit_test(handle_stays_until_unmapped),
		cmocka_unit_test(handle_is_counted_once_however_often_it_is_mapped),
		cmocka_unit_test(zombie_handle_is_revived_by_retain_and_replaced_by_create),
		cmocka_unit_test(many_zombies_are_forgotten),
		cmocka_unit_test(reservation_is_no_memory),
		cmocka_unit_test(pytorch_reserved_is_what_is_mapped),
		cmocka_unit_test(segments_are_runs_of_mappings_in_one_reservation),
		cmocka_unit_test(native_segments_are_regions),
		cmocka_unit_test(cuda_free_takes_stream_ordered_memory),
		cmocka_unit_test(memory_given_out_again_was_freed_first),
		cmocka_unit_test(impossible_sizes_are_counted_and_left_out),
		cmocka_unit_test(failed_free_is_undone),
		cmocka_unit_test(failed_free_of_nothing_is_undone),
		cmocka_unit_test(failed_unmap_release_and_host_free_are_undone),
		cmocka_unit_test(untracked_is_what_is_in_use_beyond_what_we_know),
		cmocka_unit_test(unknown_ids_and_kinds_do_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
