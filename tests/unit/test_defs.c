/* trace/defs: definitions, and that nothing undefined can be named. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "build_defs.h"
#include "trace/defs.h"

static struct records records;

static struct defs *start(void)
{
	memset(&records, 0, sizeof records);
	struct defs *defs = defs_create();
	assert_non_null(defs);
	return defs;
}

static int add(struct defs *defs)
{
	size_t consumed;
	int error = defs_add(defs, records.data, records.used_bytes, &consumed);
	assert_true(error ? consumed < records.used_bytes : consumed == records.used_bytes);
	records.used_bytes = 0;
	return error;
}

static void put_example(void)
{
	static const uint32_t frames[] = {2, 1, 1};
	put_string(&records, 1, "train.py");
	put_string(&records, 2, "forward");
	put_string(&records, 3, "/usr/lib/libtorch.so");
	put_module(&records, 1, 3);
	put_python_frame(&records, 1, 1, 2, 40);
	put_python_frame(&records, 2, 1, 0, -1);
	put_native_frame(&records, 1, 1, 0x123);
	put_stack(&records, 1, 1, 2, 1, frames);
	put_thread(&records, 1, 4711, 2);
	put_device(&records, 2, 3, 80);
	put_info(&records, MEMTRACE_INFO_ARGUMENT, 1);
	put_info(&records, MEMTRACE_INFO_ARGUMENT, 2);
}

static void defs_give_back_what_was_defined(void **state)
{
	struct defs *defs = start();
	(void)state;
	put_example();
	assert_int_equal(add(defs), 0);
	assert_string_equal(defs_string(defs, 2), "forward");
	assert_string_equal(defs_module(defs, 1)->path, "/usr/lib/libtorch.so");
	assert_string_equal(defs_module(defs, 1)->name, "libtorch.so");
	assert_int_equal(defs_module(defs, 1)->build_id_bytes, 2);
	assert_int_equal(defs_module(defs, 1)->end, 0x3000);
	assert_int_equal(defs_python_frame(defs, 1)->line, 40);
	assert_string_equal(defs_python_frame(defs, 1)->file, "train.py");
	assert_string_equal(defs_python_frame(defs, 2)->function, "");
	assert_int_equal(defs_native_frame(defs, 1)->offset, 0x123);
	const struct def_stack *stack = defs_stack(defs, 1);
	assert_int_equal(stack->python_count, 2);
	assert_int_equal(stack->python[0], 2);
	assert_int_equal(stack->native[0], 1);
	assert_int_equal(stack->owner, 1);
	assert_int_equal(defs_thread(defs, 1)->tid, 4711);
	assert_int_equal(defs_device(defs, 2)->total_bytes, 80);
	assert_null(defs_device(defs, 0)); /* named by nobody */
	assert_string_equal(defs_info(defs, MEMTRACE_INFO_ARGUMENT, 1), "forward");
	assert_null(defs_info(defs, MEMTRACE_INFO_ARGUMENT, 2));
	assert_int_equal(defs_stack_count(defs), 1);
	assert_int_equal(defs_thread_count(defs), 1);
	defs_release(defs);
}

static void unknown_ids_have_safe_answers(void **state)
{
	static const uint32_t ids[] = {0, 1, 255, UINT32_MAX};
	struct defs *defs = start();
	(void)state;
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		assert_string_equal(defs_string(defs, ids[i]), "");
		assert_null(defs_module(defs, ids[i]));
		assert_null(defs_python_frame(defs, ids[i]));
		assert_null(defs_native_frame(defs, ids[i]));
		assert_null(defs_stack(defs, ids[i]));
		assert_null(defs_thread(defs, ids[i]));
		assert_null(defs_device(defs, ids[i]));
		assert_null(defs_info(defs, MEMTRACE_INFO_HOST, ids[i]));
		assert_null(defs_info(defs, (enum memtrace_info)ids[i], 0));
	}
	defs_release(defs);
}

static void a_definition_read_twice_is_harmless(void **state)
{
	struct defs *defs = start();
	(void)state;
	put_string(&records, 1, "first");
	assert_int_equal(add(defs), 0);
	const char *before = defs_string(defs, 1);
	put_string(&records, 1, "again");
	put_string(&records, 2, "second");
	assert_int_equal(add(defs), 0);
	assert_ptr_equal(defs_string(defs, 1), before);
	assert_string_equal(defs_string(defs, 2), "second");
	defs_release(defs);
}

static void a_later_device_adds_what_it_knows(void **state)
{
	struct defs *defs = start();
	(void)state;
	put_string(&records, 1, "NVIDIA H100");
	put_device(&records, 0, 0, 80);
	assert_int_equal(add(defs), 0);
	assert_string_equal(defs_device(defs, 0)->name, "");
	put_device(&records, 0, 1, 0);
	assert_int_equal(add(defs), 0);
	assert_string_equal(defs_device(defs, 0)->name, "NVIDIA H100");
	assert_int_equal(defs_device(defs, 0)->total_bytes, 80);
	put_device(&records, 0, 0, 81);
	assert_int_equal(add(defs), 0);
	assert_string_equal(defs_device(defs, 0)->name, "NVIDIA H100");
	assert_int_equal(defs_device(defs, 0)->total_bytes, 81);
	put_device(&records, 256, 0, 80); /* no event can name it */
	assert_int_equal(add(defs), -EINVAL);
	defs_release(defs);
}

static void defs_refuse_an_id_out_of_order(void **state)
{
	struct defs *defs = start();
	(void)state;
	put_string(&records, 2, "second");
	assert_int_equal(add(defs), -EINVAL);
	put_string(&records, 0, "none");
	assert_int_equal(add(defs), -EINVAL);
	put_string(&records, 1, "first");
	assert_int_equal(add(defs), 0);
	records.info_counts[MEMTRACE_INFO_ARGUMENT] = 1; /* the first argument is missing */
	put_info(&records, MEMTRACE_INFO_ARGUMENT, 1);
	assert_int_equal(add(defs), -EINVAL);
	defs_release(defs);
}

static void refused(struct defs *defs)
{
	assert_int_equal(add(defs), -EINVAL);
}

static void defs_refuse_a_reference_to_something_undefined(void **state)
{
	static const uint32_t good[] = {1, 1}, no_python[] = {9, 1}, no_native[] = {1, 9},
			      zero[] = {0, 1};
	struct defs *defs = start();
	(void)state;
	put_module(&records, 1, 1);
	refused(defs);
	put_module(&records, 1, 0);
	put_native_frame(&records, 1, 1, 0);
	put_python_frame(&records, 1, 0, 0, 0);
	assert_int_equal(add(defs), 0);
	put_python_frame(&records, 2, 1, 0, 0);
	refused(defs);
	put_python_frame(&records, 2, 0, 1, 0);
	refused(defs);
	put_native_frame(&records, 2, 2, 0);
	refused(defs);
	put_stack(&records, 1, 2, 1, 1, good);
	refused(defs);
	put_stack(&records, 1, 1, 1, 1, no_python);
	refused(defs);
	put_stack(&records, 1, 1, 1, 1, no_native);
	refused(defs);
	put_stack(&records, 1, 1, 1, 1, zero);
	refused(defs);
	put_thread(&records, 1, 1, 1);
	refused(defs);
	put_device(&records, 0, 1, 0);
	refused(defs);
	put_info(&records, MEMTRACE_INFO_HOST, 1);
	refused(defs);
	assert_int_equal(defs_stack_count(defs), 0);
	put_stack(&records, 1, 0, 0, 0, 0);
	put_stack(&records, 2, 1, 1, 1, good);
	assert_int_equal(add(defs), 0);
	defs_release(defs);
}

static void symbols_name_native_frames(void **state)
{
	struct defs *defs = start();
	const struct def_place place = {.function = "f", .file = "f.c", .line = 3};
	uint64_t offset = 0;
	(void)state;
	put_string(&records, 1, "_Z1fv");
	put_string(&records, 2, "other");
	put_native_frame(&records, 1, 0, 0x123);
	put_native_frame(&records, 2, 0, 0x456);
	put_symbol(&records, 1, 1, 7);
	put_symbol(&records, 1, 2, 9); /* the first one stays */
	assert_int_equal(add(defs), 0);
	assert_string_equal(defs_native_symbol(defs, 1, &offset), "_Z1fv");
	assert_int_equal(offset, 7);
	assert_null(defs_native_symbol(defs, 2, &offset));
	assert_null(defs_native_symbol(defs, 3, &offset));
	assert_int_equal(defs_name_native_frame(defs, 1, "later", 1), 0);
	assert_int_equal(defs_name_native_frame(defs, 2, "later", 1), 0);
	assert_int_equal(defs_name_native_frame(defs, 3, "later", 1), -EINVAL);
	assert_string_equal(defs_native_symbol(defs, 1, &offset), "_Z1fv");
	assert_string_equal(defs_native_symbol(defs, 2, &offset), "later");
	assert_int_equal(defs_place_native_frame(defs, 2, &place, 1), 0);
	assert_int_equal(defs_place_native_frame(defs, 9, &place, 1), -EINVAL);
	assert_int_equal(defs_native_frame(defs, 2)->places[0].line, 3);
	put_symbol(&records, 3, 1, 0);
	refused(defs);
	put_symbol(&records, 2, 3, 0);
	refused(defs);
	put_symbol(&records, 0, 1, 0);
	refused(defs);
	defs_release(defs);
}

static void defs_refuse_a_length_beyond_the_record(void **state)
{
	struct defs *defs = start();
	(void)state;
	put_string(&records, 1, "text");
	((struct memtrace_def_string *)(void *)records.data)->length = 9;
	refused(defs);
	put_stack(&records, 1, 0, 0, 0, 0);
	struct memtrace_def_stack *stack = (void *)records.data;
	stack->python_count = stack->native_count = UINT32_MAX;
	refused(defs);
	put_module(&records, 1, 0);
	((struct memtrace_def_module *)(void *)records.data)->build_id_bytes = 21;
	refused(defs);
	assert_null(defs_module(defs, 1));
	defs_release(defs);
}

static void defs_refuse_a_record_that_is_cut_off(void **state)
{
	static const uint32_t lengths[] = {0, 8, 12, 20, 32, UINT32_MAX, UINT32_MAX - 7};
	struct defs *defs = start();
	size_t consumed;
	(void)state;
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		put_string(&records, 1, "text"); /* of 24 bytes */
		((struct memtrace_definition *)(void *)records.data)->bytes = lengths[i];
		refused(defs);
	}
	put_string(&records, 1, "whole");
	size_t whole = records.used_bytes;
	put_string(&records, 2, "cut");
	assert_int_equal(defs_add(defs, records.data, whole + 4, &consumed), -EINVAL);
	assert_int_equal(consumed, whole);
	assert_string_equal(defs_string(defs, 1), "whole");
	assert_int_equal(defs_add(defs, records.data + whole, records.used_bytes - whole, 0), 0);
	assert_string_equal(defs_string(defs, 2), "cut");
	defs_release(defs);
}

static void defs_skip_kinds_and_facts_of_later_versions(void **state)
{
	const struct memtrace_definition later = {.kind = 999, .id = 77};
	struct defs *defs = start();
	(void)state;
	put_record(&records, &later, sizeof later, 40);
	put_string(&records, 1, "after");
	put_info(&records, (enum memtrace_info)999, 1);
	assert_int_equal(add(defs), 0);
	assert_string_equal(defs_string(defs, 1), "after");
	defs_release(defs);
}

static void pointers_stay_valid_while_tables_grow(void **state)
{
	struct defs *defs = start();
	char name[32];
	(void)state;
	put_string(&records, 1, "name1");
	put_module(&records, 1, 1);
	assert_int_equal(add(defs), 0);
	const struct def_module *first = defs_module(defs, 1);
	for (uint32_t id = 2; id <= 20000; id++) {
		snprintf(name, sizeof name, "name%u", id);
		put_string(&records, id, name);
		put_module(&records, id, id);
		assert_int_equal(add(defs), 0);
	}
	assert_ptr_equal(defs_module(defs, 1), first);
	assert_string_equal(first->path, "name1");
	assert_string_equal(defs_module(defs, 20000)->path, "name20000");
	assert_true(defs_memory_bytes(defs) < 4 << 20);
	defs_release(defs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defs_give_back_what_was_defined),
		cmocka_unit_test(unknown_ids_have_safe_answers),
		cmocka_unit_test(a_definition_read_twice_is_harmless),
		cmocka_unit_test(a_later_device_adds_what_it_knows),
		cmocka_unit_test(defs_refuse_an_id_out_of_order),
		cmocka_unit_test(defs_refuse_a_reference_to_something_undefined),
		cmocka_unit_test(symbols_name_native_frames),
		cmocka_unit_test(defs_refuse_a_length_beyond_the_record),
		cmocka_unit_test(defs_refuse_a_record_that_is_cut_off),
		cmocka_unit_test(defs_skip_kinds_and_facts_of_later_versions),
		cmocka_unit_test(pointers_stay_valid_while_tables_grow),
	};
	return cmocka_run_group_tests_name("defs", tests, 0, 0);
}
