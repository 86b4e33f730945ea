/* What the device says is in use, against what is tracked. */
#include "test_model_kit.h"

static void reading(struct scene *s, uint64_t own_bytes, uint64_t all_bytes)
{
	put(s, MEMTRACE_READING, MEMTRACE_SPACE_NONE, 1000 * MIB, own_bytes, all_bytes, 0);
}

static void what_is_our_own_is_told_apart_from_other_processes(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 100 * MIB, TORCH);
	assert_false(device(&s)->untracked_known);
	reading(&s, 0, 450 * MIB); /* no processes shown */
	assert_true(device(&s)->untracked_known);
	assert_false(device(&s)->untracked_is_own);
	assert_false(device(&s)->others_known);
	assert_int_equal(device(&s)->untracked_bytes, 350 * MIB);
	reading(&s, 400 * MIB, 450 * MIB);
	assert_true(device(&s)->untracked_is_own);
	assert_int_equal(device(&s)->untracked_bytes, 300 * MIB);
	assert_int_equal(device(&s)->others_bytes, 50 * MIB);
	meminfo(&s, 500 * MIB, 1000 * MIB); /* the whole device: says nothing new of our own part */
	assert_int_equal(device(&s)->untracked_bytes, 300 * MIB);
	assert_int_equal(device(&s)->in_use_bytes, 500 * MIB);
	assert_int_equal(device(&s)->others_bytes, 100 * MIB);
	scene_close(&s);
}

static void a_reading_that_agrees_with_no_moment_is_left_out(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 100 * MIB, TORCH);
	s.next.status = 1;
	reading(&s, 400 * MIB, 400 * MIB);
	assert_false(device(&s)->untracked_known);
	s.next.status = 0;
	reading(&s, 50 * MIB, 500 * MIB); /* another process's: less than we hold */
	assert_false(device(&s)->untracked_is_own);
	s.next.device = 7;
	reading(&s, 50 * MIB, 500 * MIB); /* nothing was allocated there */
	assert_null(model_device(s.m, 1));
	scene_close(&s);
}

static void a_jump_is_named_by_what_happened_since_the_one_before(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	put(&s, MEMTRACE_CONTEXT, MEMTRACE_SPACE_NONE, 0xc, 0, MEMTRACE_CONTEXT_PRIMARY, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 100 * MIB, TORCH);
	reading(&s, 400 * MIB, 400 * MIB);
	reading(&s, 400 * MIB + 4096, 401 * MIB); /* too little to tell */
	s.next.device = MEMTRACE_DEVICE_UNKNOWN;
	put(&s, MEMTRACE_MODULE, MEMTRACE_SPACE_NONE, 0xd, 0, 1, NCCL);
	put(&s, MEMTRACE_MODULE, MEMTRACE_SPACE_NONE, 0xe, 0, 1, CUBLAS);
	s.next.device = 0;
	reading(&s, 480 * MIB, 480 * MIB);
	reading(&s, 470 * MIB, 470 * MIB);
	const struct model_jump *jumps = device(&s)->jumps;
	assert_int_equal(device(&s)->jump_count, 3);
	assert_int_equal(jumps[0].contexts, 1);
	assert_int_equal(jumps[0].modules, 0);
	assert_int_equal(jumps[0].after_bytes, 300 * MIB);
	assert_int_equal(jumps[1].before_bytes, 300 * MIB);
	assert_int_equal(jumps[1].after_bytes, 380 * MIB);
	assert_int_equal(jumps[1].modules, 2);
	assert_int_equal(jumps[1].contexts, 0);
	assert_string_equal(jumps[1].owner, "cublas");
	assert_int_equal(jumps[2].after_bytes, 370 * MIB);
	assert_int_equal(jumps[2].modules, 0);
	assert_null(jumps[2].owner);
	scene_close(&s);
}

static void the_largest_jumps_are_kept(void **state)
{
	struct scene s;
	uint64_t own_bytes = 512;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 512, TORCH);
	for (uint64_t i = 1; i <= 3 * MODEL_JUMPS_MAX; i++) {
		own_bytes += (i % 2 ? i : 2 * MODEL_JUMPS_MAX + i) * MIB;
		reading(&s, own_bytes, own_bytes);
	}
	const struct model_device *d = device(&s);
	assert_int_equal(d->jump_count, MODEL_JUMPS_MAX);
	assert_int_equal(d->jumps_dropped, 2 * MODEL_JUMPS_MAX);
	for (uint32_t i = 0; i < d->jump_count; i++) {
		uint64_t bytes = d->jumps[i].after_bytes - d->jumps[i].before_bytes;
		assert_true(bytes > 2 * MODEL_JUMPS_MAX * MIB);
		assert_true(!i || d->jumps[i].sequence > d->jumps[i - 1].sequence);
	}
	scene_close(&s);
}

static void at_the_peak_is_what_was_read_next(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 100 * MIB, TORCH);
	reading(&s, 400 * MIB, 400 * MIB);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x10000000, 100 * MIB, TORCH);
	reading(&s, 520 * MIB, 520 * MIB);
	give_back(&s, MEMTRACE_SPACE_DEVICE, 0x10000000, TORCH);
	reading(&s, 500 * MIB, 500 * MIB);
	assert_int_equal(device(&s)->untracked_at_peak_bytes, 320 * MIB);
	assert_int_equal(device(&s)->untracked_bytes, 400 * MIB);
	scene_close(&s);
}

static void after_the_program_s_end_only_the_first_reading_counts(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 100 * MIB, TORCH);
	s.next.flags = MEMTRACE_AT_EXIT;
	reading(&s, 400 * MIB, 400 * MIB);
	give_back(&s, MEMTRACE_SPACE_DEVICE, 0x1000, TORCH);
	reading(&s, 20 * MIB, 20 * MIB); /* its context is gone too */
	assert_int_equal(device(&s)->untracked_bytes, 300 * MIB);
	scene_close(&s);
}

static void an_oom_knows_what_is_our_own(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 0x1000, 100 * MIB, TORCH);
	reading(&s, 400 * MIB, 450 * MIB);
	run_out(&s, MEMTRACE_SPACE_DEVICE, 600 * MIB, PROGRAM);
	model_finish(s.m);
	assert_int_equal(model_oom_count(s.m), 1);
	assert_true(model_oom(s.m, 0)->untracked_known);
	assert_int_equal(model_oom(s.m, 0)->untracked_bytes, 300 * MIB);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_our_own_is_told_apart_from_other_processes),
		cmocka_unit_test(a_reading_that_agrees_with_no_moment_is_left_out),
		cmocka_unit_test(a_jump_is_named_by_what_happened_since_the_one_before),
		cmocka_unit_test(the_largest_jumps_are_kept),
		cmocka_unit_test(at_the_peak_is_what_was_read_next),
		cmocka_unit_test(after_the_program_s_end_only_the_first_reading_counts),
		cmocka_unit_test(an_oom_knows_what_is_our_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
