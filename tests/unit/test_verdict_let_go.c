/* model/verdict: what grew step by step and was let go when the program ended, and what only looks like it. */
#include "test_model_kit.h"

#include "model/model_private.h"
#include "model/verdict.h"
#include "model_state.h"

#define BASE 0x100000000ull
#define CARD (2000 * MIB)
#define KEPT (10 * MIB)
#define STEPS 40u

static uint64_t place(unsigned i)
{
	return BASE + i * (1ull << 26);
}

static void begin(struct scene *s)
{
	scene_open(s);
	obtain(s, MEMTRACE_SPACE_DEVICE, place(100), 2 * KEPT, TORCH);
	block(s, place(100), KEPT, TORCH);
}

static void end_step(struct scene *s)
{
	struct device *d = s->m->devices[0];
	trend_end_step(&d->trend, d->now.pytorch_allocated.live_bytes, s->sequence);
}

/* Something temporary, and one more block that is kept. */
static void step(struct scene *s, unsigned i)
{
	if (i < STEPS)
		obtain(s, MEMTRACE_SPACE_DEVICE, place(i), KEPT, TORCH);
	block(s, place(i % STEPS), KEPT, TORCH_OTHER);
	block(s, place(100) + KEPT, KEPT, TORCH);
	block_free(s, place(100) + KEPT);
	end_step(s);
}

static void let_go(struct scene *s, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		block_free(s, place(i));
}

static size_t find(struct scene *s, struct verdict *found)
{
	meminfo(s, CARD - 500 * MIB, CARD);
	model_finish(s->m);
	size_t count = model_findings(s->m, found, 1);
	scene_close(s);
	return count;
}

static void run_steps(struct scene *s)
{
	begin(s);
	for (unsigned i = 0; i < STEPS; i++)
		step(s, i);
}

static void check_leak(const struct verdict *found, bool was_let_go)
{
	assert_int_equal(found->cause, VERDICT_LEAK);
	assert_false(found->is_certain); /* a buffer that is not full yet looks the same */
	assert_int_equal(found->evidence.was_let_go, was_let_go);
	assert_true(found->evidence.growth_is_by_step);
	assert_int_equal(found->evidence.growth_each_bytes, KEPT);
	assert_int_equal(found->evidence.growth_periods, STEPS - 1);
	assert_int_equal(found->evidence.count, STEPS);
	assert_int_equal(found->evidence.bytes, STEPS * KEPT);
	assert_int_equal(found->evidence.stack, TORCH_OTHER);
	/* at the end; or when the last block was obtained, which was temporary */
	uint64_t live_bytes = (STEPS + 1 + was_let_go) * KEPT;
	assert_int_equal(found->evidence.live_bytes, live_bytes);
	assert_int_equal(found->evidence.idle_bytes, (STEPS + 2) * KEPT - live_bytes);
	assert_int_equal(found->evidence.periods_left, (CARD - 500 * MIB) / KEPT + !was_let_go);
}

static void what_is_let_go_at_the_end_is_told_as_what_stays(void **state)
{
	struct verdict found;
	struct scene s;
	(void)state;
	run_steps(&s);
	assert_int_equal(find(&s, &found), 1);
	check_leak(&found, false);
	run_steps(&s);
	let_go(&s, 0, STEPS);
	assert_int_equal(find(&s, &found), 1);
	check_leak(&found, true);
}

static void it_is_told_of_a_model_that_was_saved_meanwhile(void **state)
{
	struct verdict found;
	struct state saved;
	struct scene s;
	int error;
	(void)state;
	run_steps(&s);
	let_go(&s, 0, STEPS / 2);
	assert_int_equal(state_save(&saved, s.m), 0);
	model_release(s.m);
	s.m = state_load(&saved, s.defs, 512, &error);
	assert_int_equal(error, 0);
	free(saved.bytes);
	let_go(&s, STEPS / 2, STEPS);
	assert_int_equal(find(&s, &found), 1);
	check_leak(&found, true);
}

static void check_stage(struct scene *s)
{
	struct verdict found;
	assert_int_equal(find(s, &found), 1);
	assert_int_equal(found.cause, VERDICT_LEAK);
	assert_false(found.is_certain);
	assert_true(found.evidence.went_on);
	assert_int_equal(found.evidence.bytes, STEPS * KEPT);
	assert_int_equal(found.evidence.live_bytes, (STEPS + 2) * KEPT);
	assert_int_equal(found.evidence.periods_left, UINT64_MAX);
}

/* A part of the program has ended; what follows has its room. */
static void what_is_let_go_before_the_program_goes_on_is_told_as_likely(void **state)
{
	struct scene s;
	(void)state;
	run_steps(&s);
	let_go(&s, 0, STEPS);
	block(&s, place(0), KEPT, TORCH);
	check_stage(&s);
}

static void it_is_told_though_the_program_trains_on(void **state)
{
	struct scene s;
	(void)state;
	run_steps(&s);
	let_go(&s, 0, STEPS);
	for (unsigned i = 0; i < STEPS; i++) {
		block(&s, place(0), KEPT, TORCH);
		block_free(&s, place(0));
		end_step(&s);
	}
	check_stage(&s);
}

static void a_part_that_has_ended_is_told_of_a_model_that_was_saved(void **state)
{
	struct state saved;
	struct scene s;
	int error;
	(void)state;
	run_steps(&s);
	let_go(&s, 0, STEPS);
	block(&s, place(0), KEPT, TORCH);
	assert_int_equal(state_save(&saved, s.m), 0);
	model_release(s.m);
	s.m = state_load(&saved, s.defs, 512, &error);
	assert_int_equal(error, 0);
	free(saved.bytes);
	check_stage(&s);
}

/* Those of the second are live at the end, or let go too. */
static void the_results_of_two_epochs_are_no_finding(void **state)
{
	struct verdict found;
	struct scene s;
	(void)state;
	for (unsigned kept = 0; kept < 2; kept++) {
		begin(&s);
		for (unsigned i = 0; i < 2 * STEPS; i++) {
			step(&s, i);
			if (i % STEPS == STEPS - 1)
				let_go(&s, 0, STEPS);
		}
		if (kept)
			block(&s, place(0), KEPT, TORCH);
		assert_int_equal(find(&s, &found), 0);
	}
}

/* The results of an epoch, four times. */
static void what_is_let_go_each_time_is_no_finding(void **state)
{
	struct verdict found;
	struct scene s;
	(void)state;
	begin(&s);
	for (unsigned i = 0; i < 4 * STEPS; i++) {
		step(&s, i);
		if (i % STEPS == STEPS - 1)
			let_go(&s, 0, STEPS);
	}
	assert_int_equal(find(&s, &found), 0);
}

/* A cache that fills in a quarter of the steps. */
static void what_has_come_to_rest_is_no_finding(void **state)
{
	struct verdict found;
	struct scene s;
	(void)state;
	run_steps(&s);
	for (unsigned i = 0; i < 3 * STEPS; i++) {
		block(&s, place(100) + KEPT, KEPT, TORCH);
		block_free(&s, place(100) + KEPT);
		end_step(&s);
	}
	let_go(&s, 0, STEPS);
	assert_int_equal(find(&s, &found), 0);
}

/* Of that the verdict of the moment tells. */
static void what_an_oom_let_go_is_no_finding(void **state)
{
	struct verdict found;
	struct scene s;
	(void)state;
	run_steps(&s);
	run_out(&s, MEMTRACE_SPACE_DEVICE, KEPT, TORCH);
	run_out(&s, MEMTRACE_SPACE_DEVICE, KEPT, TORCH);
	meminfo(&s, MIB, CARD);
	block_oom(&s, KEPT);
	let_go(&s, 0, STEPS);
	assert_int_equal(find(&s, &found), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_let_go_at_the_end_is_told_as_what_stays),
		cmocka_unit_test(it_is_told_of_a_model_that_was_saved_meanwhile),
		cmocka_unit_test(what_is_let_go_before_the_program_goes_on_is_told_as_likely),
		cmocka_unit_test(it_is_told_though_the_program_trains_on),
		cmocka_unit_test(a_part_that_has_ended_is_told_of_a_model_that_was_saved),
		cmocka_unit_test(the_results_of_two_epochs_are_no_finding),
		cmocka_unit_test(what_is_let_go_each_time_is_no_finding),
		cmocka_unit_test(what_has_come_to_rest_is_no_finding),
		cmocka_unit_test(what_an_oom_let_go_is_no_finding),
	};
	return cmocka_run_group_tests_name("verdict_let_go", tests, NULL, NULL);
}
