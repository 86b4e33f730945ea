/* model: stream-ordered memory, and PyTorch's cudaMallocAsync backend. */
#include "test_model_kit.h"

enum { RESERVED = 5, RESERVED_HIGH, USED, USED_HIGH }; /* CUmemPool_attribute */

#define POOL 0xabc0ull
#define OWN  0xdef0ull

static void read_pool(struct scene *s, uint64_t pool, uint64_t attribute, uint64_t bytes,
		      uint32_t stack)
{
	uint8_t device = s->next.device;
	s->next.device = MEMTRACE_DEVICE_UNKNOWN;
	put(s, MEMTRACE_POOL_READ, MEMTRACE_SPACE_STREAM, pool, bytes, attribute, stack);
	s->next.device = device;
}

static void make_pool(struct scene *s, uint64_t pool, uint64_t how)
{
	put(s, MEMTRACE_POOL_CREATE, MEMTRACE_SPACE_STREAM, pool, 0, how, TORCH);
}

static void pool_that_is_never_read_is_unknown(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	make_pool(&s, POOL, 1);
	obtain(&s, MEMTRACE_SPACE_STREAM, 0x1000, 700, TORCH);
	obtain(&s, MEMTRACE_SPACE_STREAM, 0x2000, 100, TORCH);
	give_back(&s, MEMTRACE_SPACE_STREAM, 0x1000, TORCH);
	assert_true(device(&s)->has_async);
	assert_false(device(&s)->has_blocks);
	assert_false(device(&s)->pytorch_reserved_known);
	check_counter(&device(&s)->pytorch_allocated, 100, 800, 2, 1);
	check_counter(&device(&s)->allocated, 100, 800, 2, 1);
	assert_int_equal(device(&s)->pytorch_segments, 0);
	scene_close(&s);
}

static void figures_that_the_program_read_are_told(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	make_pool(&s, POOL, 1);
	obtain(&s, MEMTRACE_SPACE_STREAM, 0x1000, 700, TORCH);
	read_pool(&s, POOL, USED, 1024, TORCH);
	read_pool(&s, POOL, USED_HIGH, 4096, TORCH);
	read_pool(&s, POOL, RESERVED, 32 * MIB, TORCH);
	read_pool(&s, POOL, RESERVED_HIGH, 64 * MIB, TORCH);
	assert_true(device(&s)->pytorch_reserved_known);
	check_counter(&device(&s)->pytorch_allocated, 1024, 4096, 1, 0);
	check_counter(&device(&s)->pytorch_reserved, 32 * MIB, 64 * MIB, 1, 0);
	assert_int_equal(device(&s)->allocated.current_bytes, 700); /* ours */

	obtain(&s, MEMTRACE_SPACE_STREAM, 0x2000, 100, TORCH);
	check_counter(&device(&s)->pytorch_allocated, 1536, 4096, 2, 0);
	give_back(&s, MEMTRACE_SPACE_STREAM, 0x1000, TORCH);
	check_counter(&device(&s)->pytorch_allocated, 512, 4096, 2, 1);
	obtain(&s, MEMTRACE_SPACE_STREAM, 0x4000, 8000, TORCH);
	check_counter(&device(&s)->pytorch_allocated, 8704, 8704, 3, 1);
	scene_close(&s);
}

static void pool_that_outgrew_its_last_reading_is_unknown(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_STREAM, 0x1000, 1 * MIB, TORCH);
	make_pool(&s, POOL, 1);
	read_pool(&s, POOL, USED, 1 * MIB, TORCH);
	read_pool(&s, POOL, RESERVED, 2 * MIB, TORCH);
	assert_true(device(&s)->pytorch_reserved_known);
	obtain(&s, MEMTRACE_SPACE_STREAM, 0x10000000, 2 * MIB, TORCH);
	assert_false(device(&s)->pytorch_reserved_known);
	scene_close(&s);
}

static void highest_since_the_start_survives_a_reset(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_STREAM, 0x1000, 512, TORCH);
	make_pool(&s, POOL, 1);
	read_pool(&s, POOL, USED_HIGH, 4096, TORCH);
	put(&s, MEMTRACE_POOL_SET, MEMTRACE_SPACE_STREAM, POOL, 0, USED_HIGH, TORCH);
	read_pool(&s, POOL, USED_HIGH, 512, TORCH);
	assert_int_equal(device(&s)->pytorch_allocated.peak_bytes, 4096);
	scene_close(&s);
}

static void pool_of_the_programs_own_is_no_figure_of_pytorch(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	make_pool(&s, POOL, 1);
	make_pool(&s, OWN, 0);
	obtain(&s, MEMTRACE_SPACE_STREAM, 0x1000, 512, TORCH);
	read_pool(&s, POOL, USED, 512, PROGRAM);
	read_pool(&s, OWN, USED, 9 * MIB, PROGRAM);
	assert_int_equal(device(&s)->pytorch_allocated.current_bytes, 512);
	make_pool(&s, OWN, 2); /* asked for as the current one: still its own */
	read_pool(&s, OWN, USED, 9 * MIB, PROGRAM);
	assert_int_equal(device(&s)->pytorch_allocated.current_bytes, 512);
	scene_close(&s);
}

static void stream_memory_of_a_library_is_no_figure_of_pytorch(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_STREAM, 0x1000, 512, RMM);
	read_pool(&s, POOL, USED, 9 * MIB, RMM);
	assert_false(device(&s)->has_async);
	check_counter(&device(&s)->pytorch_allocated, 0, 0, 0, 0);
	check_counter(&device(&s)->allocated, 512, 512, 1, 0);
	assert_true(device(&s)->pytorch_reserved_known);
	scene_close(&s);
}

static void allocation_is_where_its_pool_is(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	s.next.device = 1;
	make_pool(&s, OWN, 0);
	s.next.device = MEMTRACE_DEVICE_HOST;
	make_pool(&s, POOL, 0);
	s.next.device = 0;
	s.next.flags = MEMTRACE_ASYNC_POOL;
	put(&s, MEMTRACE_ALLOC, MEMTRACE_SPACE_STREAM, 0x1000, 100, OWN, PROGRAM);
	put(&s, MEMTRACE_ALLOC, MEMTRACE_SPACE_STREAM, 0x2000, 10, POOL, PROGRAM);
	assert_int_equal(model_device(s.m, 0)->ordinal, 1);
	assert_int_equal(model_device(s.m, 0)->reserved.current_bytes, 100);
	assert_int_equal(model_totals(s.m)->pinned_current_bytes, 10);
	scene_close(&s);
}

static void failed_destruction_of_a_pool_is_undone(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	make_pool(&s, OWN, 0);
	fail_free(&s, put(&s, MEMTRACE_POOL_DESTROY, MEMTRACE_SPACE_STREAM, OWN, 0, 0, PROGRAM));
	put(&s, MEMTRACE_POOL_DESTROY, MEMTRACE_SPACE_STREAM, OWN, 0, 0, PROGRAM);
	assert_int_equal(model_totals(s.m)->unknown_frees, 0);
	put(&s, MEMTRACE_POOL_DESTROY, MEMTRACE_SPACE_STREAM, OWN, 0, 0, PROGRAM);
	assert_int_equal(model_totals(s.m)->unknown_frees, 1);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pool_that_is_never_read_is_unknown),
		cmocka_unit_test(figures_that_the_program_read_are_told),
		cmocka_unit_test(pool_that_outgrew_its_last_reading_is_unknown),
		cmocka_unit_test(highest_since_the_start_survives_a_reset),
		cmocka_unit_test(pool_of_the_programs_own_is_no_figure_of_pytorch),
		cmocka_unit_test(stream_memory_of_a_library_is_no_figure_of_pytorch),
		cmocka_unit_test(allocation_is_where_its_pool_is),
		cmocka_unit_test(failed_destruction_of_a_pool_is_undone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
