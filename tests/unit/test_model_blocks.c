/* model: blocks, what is allocated, and what it was made of at the peak. */
#include "test_model_kit.h"

#define SEGMENT       0x10000000ull
#define OTHER_SEGMENT 0x20000000ull

static void check_row(const struct model_share *row, uint32_t stack, uint64_t bytes, uint64_t count)
{
	assert_int_equal(row->stack, stack);
	assert_int_equal(row->bytes, bytes);
	assert_int_equal(row->count, count);
}

static void allocated_is_blocks_and_what_others_hold(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, SEGMENT, 20 * MIB, TORCH);
	block(&s, SEGMENT, 3 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, OTHER_SEGMENT, 5 * MIB, NCCL);
	block(&s, SEGMENT + 3 * MIB, 1 * MIB, TORCH_OTHER);
	block_free(&s, SEGMENT);
	check_counter(&device(&s)->allocated, 6 * MIB, 9 * MIB, 3, 1);
	check_counter(&device(&s)->pytorch_allocated, 1 * MIB, 4 * MIB, 2, 1);
	check_counter(&device(&s)->pytorch_reserved, 20 * MIB, 20 * MIB, 1, 0);
	check_counter(&device(&s)->reserved, 25 * MIB, 25 * MIB, 2, 0);
	assert_true(device(&s)->has_blocks);
	assert_int_equal(model_totals(s.m)->block_events, 3);
	assert_int_equal(model_totals(s.m)->live_blocks, 1);
	scene_close(&s);
}

static void block_of(struct scene *s, uint64_t bytes, unsigned element)
{
	s->next.flags = (uint8_t)(element << MEMTRACE_ELEMENT_SHIFT);
	block(s, SEGMENT, bytes, TORCH);
	s->next.flags = 0;
	block_free(s, SEGMENT);
}

static void elements_of_a_stack_are_shared_out_as_its_blocks_were(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	assert_int_equal(model_elements(s.m, TORCH, 80).bytes[ELEMENT_UNKNOWN], 80);
	block_of(&s, 3 * MIB, ELEMENT_2_BYTES);
	block_of(&s, 4 * MIB, ELEMENT_4_BYTES);
	block_of(&s, MIB, 7); /* there is no such size */
	struct model_elements of = model_elements(s.m, TORCH, 80);
	assert_int_equal(of.bytes[ELEMENT_2_BYTES], 30);
	assert_int_equal(of.bytes[ELEMENT_4_BYTES], 40);
	assert_int_equal(of.bytes[ELEMENT_UNKNOWN], 10);
	for (int i = 0; i < 64; i++) /* more units than fit */
		block_of(&s, 1ull << 40, ELEMENT_8_BYTES);
	of = model_elements(s.m, TORCH, 80);
	assert_in_range(of.bytes[ELEMENT_8_BYTES], 79, 80);
	assert_int_equal(model_elements(s.m, TORCH_OTHER, 80).bytes[ELEMENT_UNKNOWN], 80);
	scene_close(&s);
}

static void segment_before_first_block_is_no_peak(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, SEGMENT, 20 * MIB, TORCH);
	assert_int_equal(device(&s)->allocated.current_bytes,
			 20 * MIB); /* there may never be a block */
	block(&s, SEGMENT, 1 * MIB, TORCH);
	check_counter(&device(&s)->allocated, 1 * MIB, 1 * MIB, 1, 0);
	assert_int_equal(device(&s)->peak.allocated_bytes, 1 * MIB);
	assert_int_equal(device(&s)->peak.reserved_bytes, 20 * MIB);
	assert_int_equal(device(&s)->peak.pytorch_reserved_bytes, 20 * MIB);
	scene_close(&s);
}

static void composition_at_peak_sums_to_allocated(void **state)
{
	struct scene s;
	struct model_share rows[4];
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, SEGMENT, 20 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, OTHER_SEGMENT, 5 * MIB, NCCL);
	block(&s, SEGMENT, 4 * MIB, TORCH);
	block(&s, SEGMENT + 4 * MIB, 4 * MIB, TORCH);
	block(&s, SEGMENT + 8 * MIB, 5 * MIB, TORCH_OTHER); /* the peak: 18 MiB */
	uint64_t peak = s.sequence;
	block_free(&s, SEGMENT);
	block_free(&s, SEGMENT + 8 * MIB);
	give_back(&s, MEMTRACE_SPACE_DEVICE, OTHER_SEGMENT, NCCL);
	block(&s, SEGMENT, 6 * MIB, TORCH_EMPTY_CACHE);

	assert_int_equal(model_stacks_at_peak(s.m, 0, rows, 4), 3);
	check_row(&rows[0], TORCH, 8 * MIB, 2);
	check_row(&rows[1], TORCH_OTHER, 5 * MIB, 1); /* a tie: the lower stack first */
	check_row(&rows[2], NCCL, 5 * MIB, 1);
	assert_int_equal(device(&s)->peak.allocated_bytes, 18 * MIB);
	assert_int_equal(device(&s)->peak.sequence, peak);
	assert_int_equal(device(&s)->peak.time_ns, peak * 1000);
	assert_int_equal(device(&s)->peak.stack, TORCH_OTHER);
	assert_int_equal(device(&s)->peak.thread, 1);

	assert_int_equal(model_stacks_now(s.m, 0, rows, 1), 2); /* all are counted, one fits */
	check_row(&rows[0], TORCH_EMPTY_CACHE, 6 * MIB, 1);
	scene_close(&s);
}

static void peak_is_the_first_instant_of_the_highest(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	block(&s, SEGMENT, 4 * MIB, TORCH);
	uint64_t first = s.sequence;
	for (int i = 0; i < 3; i++) {
		block_free(&s, SEGMENT);
		block(&s, SEGMENT, 4 * MIB, TORCH_OTHER);
	}
	assert_int_equal(device(&s)->peak.sequence, first);
	assert_int_equal(device(&s)->peak.stack, TORCH);
	scene_close(&s);
}

static void owners_are_told_largest_at_peak_first(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, SEGMENT, 20 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 7 * MIB, CUBLAS);
	obtain(&s, MEMTRACE_SPACE_VMM, 0x77, 30 * MIB, NCCL);
	block(&s, SEGMENT, 10 * MIB, TORCH); /* the peak */
	give_back(&s, MEMTRACE_SPACE_VMM, 0x77, NCCL);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x8000000, 8 * MIB, CUBLAS);
	const struct model_owner *o = model_owner(s.m, 0, 0);
	assert_string_equal(o->name, "nccl");
	assert_int_equal(o->at_peak_bytes, 30 * MIB);
	assert_int_equal(o->current_bytes, 0);
	assert_string_equal(model_owner(s.m, 0, 1)->name, "pytorch");
	o = model_owner(s.m, 0, 2);
	assert_string_equal(o->name, "cublas");
	assert_int_equal(o->at_peak_bytes, 7 * MIB);
	assert_int_equal(o->current_bytes, 15 * MIB);
	assert_int_equal(o->peak_bytes, 15 * MIB);
	assert_null(model_owner(s.m, 0, 3));
	assert_null(model_owner(s.m, 1, 0));
	scene_close(&s);
}

static void owner_is_told_by_the_library_name(void **state)
{
	struct scene s;
	static const struct {
		uint32_t stack;
		const char *name;
	} expected[] = {{TORCH, "pytorch"}, {NCCL, "nccl"},     {PROGRAM, "program"},
			{CUBLAS, "cublas"}, {RMM, "librmm.so"}, {NOBODY, "unknown"},
			{0, "unknown"}};
	(void)state;
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		scene_open(&s);
		obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 1, expected[i].stack);
		assert_string_equal(model_owner(s.m, 0, 0)->name, expected[i].name);
		assert_null(model_owner(s.m, 0, 1));
		scene_close(&s);
	}
}

/* A MemPool with an allocator of the user's own: the region is somebody else's until the block
 * lands. */
static void region_becomes_pytorchs_when_a_block_lands_in_it(void **state)
{
	struct scene s;
	struct model_share rows[4];
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, SEGMENT, 2 * MIB, TORCH);
	block(&s, SEGMENT, 1 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, OTHER_SEGMENT, 20 * MIB, RMM);
	check_counter(&device(&s)->allocated, 21 * MIB, 21 * MIB, 2, 0);
	block(&s, OTHER_SEGMENT + 512, 3 * MIB, TORCH_OTHER);
	check_counter(&device(&s)->allocated, 4 * MIB, 4 * MIB, 2, 0);
	check_counter(&device(&s)->pytorch_reserved, 22 * MIB, 22 * MIB, 2, 0);
	assert_int_equal(device(&s)->allocated.total_bytes, 4 * MIB);
	assert_int_equal(device(&s)->pytorch_segments, 2);
	assert_int_equal(device(&s)->reserved.current_bytes, 22 * MIB);
	assert_int_equal(owner(&s, "pytorch")->current_bytes, 22 * MIB);
	assert_int_equal(owner(&s, "pytorch")->at_peak_bytes, 22 * MIB);
	assert_null(owner(&s, "librmm.so"));
	assert_int_equal(model_stacks_at_peak(s.m, 0, rows, 4), 2);
	check_row(&rows[0], TORCH_OTHER, 3 * MIB, 1);
	check_row(&rows[1], TORCH, 1 * MIB, 1);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x50000000, 5 * MIB, RMM); /* its own */
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x60000000, 20 * MIB, RMM);
	block(&s, 0x60000000, 3 * MIB, TORCH_OTHER);
	assert_int_equal(owner(&s, "librmm.so")->peak_bytes, 5 * MIB);
	scene_close(&s);
}

static void peak_of_a_region_that_was_long_outside_is_kept(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	block(&s, SEGMENT, 1 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, OTHER_SEGMENT, 20 * MIB, RMM);
	block(&s, SEGMENT + MIB, 2 * MIB, TORCH);
	block(&s, OTHER_SEGMENT, 3 * MIB, TORCH);
	check_counter(&device(&s)->allocated, 6 * MIB, 23 * MIB, 3, 0);
	scene_close(&s);
}

static void handle_becomes_pytorchs_when_a_block_lands_in_its_mapping(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	block(&s, SEGMENT, 1 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_VMM, 0x77, 4 * MIB, NCCL);
	map(&s, OTHER_SEGMENT, 2 * MIB, 0x77);
	map(&s, OTHER_SEGMENT + 2 * MIB, 2 * MIB, 0x77);
	block(&s, OTHER_SEGMENT + MIB, 1 * MIB, TORCH);
	check_counter(&device(&s)->allocated, 2 * MIB, 2 * MIB, 2, 0);
	check_counter(&device(&s)->pytorch_reserved, 4 * MIB, 4 * MIB, 2, 0);
	assert_int_equal(device(&s)->pytorch_segments, 1);
	unmap(&s, OTHER_SEGMENT, 4 * MIB);
	assert_int_equal(device(&s)->pytorch_segments, 0);
	assert_int_equal(device(&s)->reserved.current_bytes, 4 * MIB);
	scene_close(&s);
}

static void blocks_of_pytorch_match_its_own_count_on_odd_content(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	block(&s, SEGMENT, 1 * MIB, TORCH);
	block(&s, SEGMENT, 2 * MIB, TORCH);
	block_free(&s, SEGMENT);
	block_free(&s, SEGMENT);
	check_counter(&device(&s)->pytorch_allocated, 0, 2 * MIB, 2, 2);
	assert_int_equal(model_totals(s.m)->double_allocations, 1);
	assert_int_equal(model_totals(s.m)->unknown_frees, 1);
	scene_close(&s);
}

static void figures_freeze_when_the_programs_own_code_ends(void **state)
{
	struct scene s;
	struct model_share row;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, SEGMENT, 20 * MIB, TORCH);
	obtain(&s, MEMTRACE_SPACE_PINNED, 0x1000, 64, TORCH);
	block(&s, SEGMENT, 3 * MIB, TORCH);
	block(&s, SEGMENT + 3 * MIB, 1 * MIB, TORCH);
	block_free(&s, SEGMENT + 3 * MIB);
	s.next.flags = MEMTRACE_AT_EXIT;
	block_free(&s, SEGMENT);
	give_back(&s, MEMTRACE_SPACE_DEVICE, SEGMENT, TORCH);
	give_back(&s, MEMTRACE_SPACE_PINNED, 0x1000, TORCH);
	check_counter(&device(&s)->allocated, 3 * MIB, 4 * MIB, 2, 1);
	check_counter(&device(&s)->pytorch_allocated, 3 * MIB, 4 * MIB, 2, 1);
	check_counter(&device(&s)->pytorch_reserved, 20 * MIB, 20 * MIB, 1, 0);
	assert_int_equal(device(&s)->allocated.at_exit_frees, 1);
	assert_int_equal(device(&s)->reserved.at_exit_frees, 1);
	assert_int_equal(device(&s)->pytorch_segments, 1);
	assert_int_equal(owner(&s, "pytorch")->current_bytes, 20 * MIB);
	assert_int_equal(model_stacks_now(s.m, 0, &row, 1), 1);
	check_row(&row, TORCH, 3 * MIB, 1);
	assert_int_equal(model_totals(s.m)->pinned_current_bytes, 64);
	assert_int_equal(model_totals(s.m)->live_blocks, 1);
	scene_close(&s);
}

static void devices_are_kept_apart(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	block(&s, SEGMENT, 1 * MIB, TORCH);
	s.next.device = 1;
	block(&s, OTHER_SEGMENT, 2 * MIB, TORCH);
	s.next.device = 0; /* a free goes by the address */
	block_free(&s, OTHER_SEGMENT);
	assert_int_equal(model_device(s.m, 0)->allocated.current_bytes, 1 * MIB);
	check_counter(&model_device(s.m, 1)->allocated, 0, 2 * MIB, 1, 1);
	assert_int_equal(model_stacks_at_peak(s.m, 1, NULL, 0), 1);
	assert_int_equal(model_stacks_at_peak(s.m, 7, NULL, 0), 0);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocated_is_blocks_and_what_others_hold),
		cmocka_unit_test(elements_of_a_stack_are_shared_out_as_its_blocks_were),
		cmocka_unit_test(segment_before_first_block_is_no_peak),
		cmocka_unit_test(composition_at_peak_sums_to_allocated),
		cmocka_unit_test(peak_is_the_first_instant_of_the_highest),
		cmocka_unit_test(owners_are_told_largest_at_peak_first),
		cmocka_unit_test(owner_is_told_by_the_library_name),
		cmocka_unit_test(region_becomes_pytorchs_when_a_block_lands_in_it),
		cmocka_unit_test(peak_of_a_region_that_was_long_outside_is_kept),
		cmocka_unit_test(handle_becomes_pytorchs_when_a_block_lands_in_its_mapping),
		cmocka_unit_test(blocks_of_pytorch_match_its_own_count_on_odd_content),
		cmocka_unit_test(figures_freeze_when_the_programs_own_code_ends),
		cmocka_unit_test(devices_are_kept_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
