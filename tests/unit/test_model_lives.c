/* model: memory that ends with its context, that is another's, or that graphs obtain. */
#include "test_model_kit.h"

#define CONTEXT 0xc07ull
#define GRAPH   0x6000ull
#define EXEC    0x7000ull
#define POINTER 0x10000ull
#define OTHER   0x20000ull

/* ---------- contexts ---------- */

static void obtain_in(struct scene *s, uint64_t context, enum memtrace_space space,
		      uint64_t address, uint64_t bytes)
{
	s->next.stream = context;
	obtain(s, space, address, bytes, PROGRAM);
	s->next.stream = 0;
}

static void end_context(struct scene *s, uint64_t context, enum memtrace_context kind)
{
	put(s, MEMTRACE_CONTEXT_END, MEMTRACE_SPACE_NONE, context, 0, kind, PROGRAM);
}

static uint64_t live_bytes(const struct scene *s)
{
	return device(s)->reserved.current_bytes;
}

static void own_context_takes_what_was_obtained_in_it(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain_in(&s, CONTEXT, MEMTRACE_SPACE_DEVICE, 0x1000, 100);
	obtain_in(&s, CONTEXT, MEMTRACE_SPACE_MANAGED, 0x2000, 20);
	obtain_in(&s, CONTEXT, MEMTRACE_SPACE_ARRAY, 0x1000, 3);
	obtain_in(&s, 0, MEMTRACE_SPACE_DEVICE, 0x3000, 1000);
	obtain_in(&s, CONTEXT + 1, MEMTRACE_SPACE_ARRAY, 0x2000, 5000);
	end_context(&s, CONTEXT, MEMTRACE_CONTEXT_OWN);
	assert_int_equal(live_bytes(&s), 6000);
	assert_int_equal(model_totals(s.m)->live_regions, 2);
	give_back(&s, MEMTRACE_SPACE_DEVICE, 0x3000, PROGRAM);
	assert_int_equal(model_totals(s.m)->unknown_frees, 0);
	give_back(&s, MEMTRACE_SPACE_DEVICE, 0x1000, PROGRAM); /* it is gone */
	assert_int_equal(model_totals(s.m)->unknown_frees, 1);
	scene_close(&s);
}

static void primary_context_takes_what_is_its_devices(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain_in(&s, 0, MEMTRACE_SPACE_DEVICE, 0x1000, 1);
	obtain_in(&s, 0, MEMTRACE_SPACE_ARRAY, 0x1000, 2);
	obtain_in(&s, CONTEXT, MEMTRACE_SPACE_DEVICE, 0x2000, 10);
	s.next.device = 1;
	obtain_in(&s, 0, MEMTRACE_SPACE_DEVICE, 0x3000, 100);
	s.next.device = 0;
	end_context(&s, 0xabc, MEMTRACE_CONTEXT_PRIMARY);
	assert_int_equal(live_bytes(&s), 10);
	assert_int_equal(model_device(s.m, 1)->reserved.current_bytes, 100);
	scene_close(&s);
}

static void pools_handles_and_host_memory_outlive_a_context(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_STREAM, 0x1000, 1, PROGRAM);
	obtain(&s, MEMTRACE_SPACE_VMM, 0x77, 10, PROGRAM);
	map(&s, 0x2000, 10, 0x77);
	obtain(&s, MEMTRACE_SPACE_PINNED, 0x3000, 100, PROGRAM);
	end_context(&s, 0xabc, MEMTRACE_CONTEXT_PRIMARY);
	end_context(&s, 0xabd, MEMTRACE_CONTEXT_GREEN);
	assert_int_equal(live_bytes(&s), 11);
	assert_int_equal(model_totals(s.m)->pinned_current_bytes, 100);
	scene_close(&s);
}

/* ---------- what is another's ---------- */

static uint64_t import(struct scene *s, enum memtrace_space as, uint64_t address, uint64_t bytes)
{
	return put(s, MEMTRACE_ALLOC, MEMTRACE_SPACE_EXTERNAL, address, bytes, as, PROGRAM);
}

static void imports_are_known_and_not_counted(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x900000, 5, PROGRAM);
	import(&s, MEMTRACE_SPACE_DEVICE, POINTER, 0);
	import(&s, MEMTRACE_SPACE_ARRAY, POINTER, 400);
	import(&s, MEMTRACE_SPACE_EXTERNAL, POINTER, 400);
	import(&s, MEMTRACE_SPACE_VMM, POINTER, 2 * MIB);
	map(&s, OTHER, 2 * MIB, POINTER);
	block(&s, OTHER + 512, 512, TORCH); /* it is no cache of PyTorch's either */
	block_free(&s, OTHER + 512);
	assert_int_equal(live_bytes(&s), 5);
	assert_int_equal(model_totals(s.m)->live_regions, 1);
	assert_int_equal(device(&s)->pytorch_reserved.current_bytes, 0);
	end_context(&s, 0xabc, MEMTRACE_CONTEXT_PRIMARY); /* not what is not in it */
	assert_int_equal(live_bytes(&s), 0);
	unmap(&s, OTHER, 2 * MIB);
	give_back(&s, MEMTRACE_SPACE_VMM, POINTER, PROGRAM);
	give_back(&s, MEMTRACE_SPACE_STREAM, POINTER, PROGRAM);
	give_back(&s, MEMTRACE_SPACE_ARRAY, POINTER, PROGRAM);
	give_back(&s, MEMTRACE_SPACE_EXTERNAL, POINTER, PROGRAM);
	assert_int_equal(model_totals(s.m)->unknown_frees, 0);
	assert_int_equal(model_totals(s.m)->double_allocations, 0);
	give_back(&s, MEMTRACE_SPACE_EXTERNAL, POINTER, PROGRAM);
	assert_int_equal(model_totals(s.m)->unknown_frees, 1);
	scene_close(&s);
}

static void what_is_opened_twice_is_closed_twice(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	import(&s, MEMTRACE_SPACE_DEVICE, POINTER, 0);
	import(&s, MEMTRACE_SPACE_DEVICE, POINTER, 0);
	fail_free(&s, give_back(&s, MEMTRACE_SPACE_DEVICE, POINTER, PROGRAM));
	give_back(&s, MEMTRACE_SPACE_DEVICE, POINTER, PROGRAM);
	fail_free(&s, give_back(&s, MEMTRACE_SPACE_DEVICE, POINTER, PROGRAM));
	give_back(&s, MEMTRACE_SPACE_DEVICE, POINTER, PROGRAM);
	assert_int_equal(model_totals(s.m)->unknown_frees, 0);
	assert_int_equal(model_totals(s.m)->double_allocations, 0);
	give_back(&s, MEMTRACE_SPACE_DEVICE, POINTER, PROGRAM);
	assert_int_equal(model_totals(s.m)->unknown_frees, 1);
	scene_close(&s);
}

/* Imported where it was exported: the handle is there already, and is counted as before. */
static void import_of_an_own_handle_is_a_reference(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_VMM, 0x77, 2 * MIB, PROGRAM);
	import(&s, MEMTRACE_SPACE_VMM, 0x77, 0);
	give_back(&s, MEMTRACE_SPACE_VMM, 0x77, PROGRAM);
	assert_int_equal(live_bytes(&s), 2 * MIB);
	give_back(&s, MEMTRACE_SPACE_VMM, 0x77, PROGRAM);
	assert_int_equal(live_bytes(&s), 0);
	assert_int_equal(model_totals(s.m)->unknown_frees, 0);
	scene_close(&s);
}

static void parts_of_sparse_arrays_are_no_mappings(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x5000, 64, PROGRAM);
	obtain(&s, MEMTRACE_SPACE_VMM, 0x77, 2 * MIB, PROGRAM);
	put(&s, MEMTRACE_MAP, MEMTRACE_SPACE_ARRAY, 0x5000, 0, 0x77, PROGRAM);
	put(&s, MEMTRACE_UNMAP, MEMTRACE_SPACE_ARRAY, 0x5000, 65536, 0, PROGRAM);
	assert_int_equal(live_bytes(&s), 2 * MIB + 64);
	assert_int_equal(model_totals(s.m)->unknown_frees, 0);
	scene_close(&s);
}

/* ---------- graphs ---------- */

static void add_alloc(struct scene *s, uint64_t address, uint64_t bytes)
{
	put(s, MEMTRACE_GRAPH_ALLOC, MEMTRACE_SPACE_STREAM, address, bytes, GRAPH, PROGRAM);
}

static void add_free(struct scene *s, uint64_t address)
{
	put(s, MEMTRACE_GRAPH_FREE, MEMTRACE_SPACE_STREAM, address, 0, GRAPH, PROGRAM);
}

static void instantiate(struct scene *s)
{
	put(s, MEMTRACE_GRAPH_EXEC, MEMTRACE_SPACE_NONE, EXEC, 0, GRAPH, NCCL);
}

static void launch(struct scene *s)
{
	put(s, MEMTRACE_GRAPH_LAUNCH, MEMTRACE_SPACE_NONE, EXEC, 0, 0, NCCL);
}

static void graph_memory_is_live_from_a_launch_to_a_free(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x900000, 1, PROGRAM);
	add_alloc(&s, POINTER, 100);
	add_alloc(&s, OTHER, 20);
	add_free(&s, POINTER);
	instantiate(&s);
	assert_int_equal(live_bytes(&s), 1);
	launch(&s);
	check_counter(&device(&s)->reserved, 21, 121, 3, 1);
	assert_int_equal(owner(&s, "program")->current_bytes, 21); /* who added the node */
	give_back(&s, MEMTRACE_SPACE_STREAM, OTHER, PROGRAM);
	launch(&s);
	assert_int_equal(live_bytes(&s), 21);
	give_back(&s, MEMTRACE_SPACE_DEVICE, OTHER, PROGRAM);
	assert_int_equal(live_bytes(&s), 1);
	assert_int_equal(model_totals(s.m)->unknown_frees, 0);
	scene_close(&s);
}

static void launch_frees_what_the_one_before_left(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	add_alloc(&s, POINTER, 100);
	instantiate(&s);
	launch(&s);
	launch(&s);
	check_counter(&device(&s)->reserved, 100, 100, 2, 1);
	assert_int_equal(model_totals(s.m)->double_allocations, 0);
	scene_close(&s);
}

static void executable_graph_is_what_the_graph_was(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	add_alloc(&s, POINTER, 100);
	instantiate(&s);
	add_alloc(&s, OTHER, 20);
	put(&s, MEMTRACE_GRAPH_END, MEMTRACE_SPACE_NONE, GRAPH, 0, 0, PROGRAM);
	launch(&s);
	assert_int_equal(live_bytes(&s), 100);
	put(&s, MEMTRACE_GRAPH_EXEC_END, MEMTRACE_SPACE_NONE, EXEC, 0, 0, PROGRAM);
	launch(&s); /* nobody knows it */
	assert_int_equal(live_bytes(&s), 100);
	instantiate(&s); /* of a graph that is gone */
	launch(&s);
	check_counter(&device(&s)->reserved, 100, 100, 1, 0);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_context_takes_what_was_obtained_in_it),
		cmocka_unit_test(primary_context_takes_what_is_its_devices),
		cmocka_unit_test(pools_handles_and_host_memory_outlive_a_context),
		cmocka_unit_test(imports_are_known_and_not_counted),
		cmocka_unit_test(what_is_opened_twice_is_closed_twice),
		cmocka_unit_test(import_of_an_own_handle_is_a_reference),
		cmocka_unit_test(parts_of_sparse_arrays_are_no_mappings),
		cmocka_unit_test(graph_memory_is_live_from_a_launch_to_a_free),
		cmocka_unit_test(launch_frees_what_the_one_before_left),
		cmocka_unit_test(executable_graph_is_what_the_graph_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
