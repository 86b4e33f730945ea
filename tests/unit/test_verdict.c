/* model/verdict: the rules, each on the smallest course of events that meets it, and next to its border. */
#include "test_model_kit.h"

#include "model/model_private.h"
#include "model/verdict.h"

#define BASE  0x100000000ull
#define CARD  (1000 * MIB)
#define SIZE  (20 * MIB)
#define COUNT 45u

static uint64_t segment(unsigned i)
{
	return BASE + i * (1ull << 26);
}

/* A segment of 20 MiB, all of it in one block, as often as `count`. */
static void fill(struct scene *s, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		obtain(s, MEMTRACE_SPACE_DEVICE, segment(i), SIZE, TORCH);
		block(s, segment(i), SIZE, TORCH);
	}
}

static void refuse(struct scene *s, uint64_t bytes, uint64_t free_bytes)
{
	run_out(s, MEMTRACE_SPACE_DEVICE, bytes, TORCH);
	run_out(s, MEMTRACE_SPACE_DEVICE, bytes, TORCH);
	meminfo(s, free_bytes, CARD);
	block_oom(s, bytes);
	model_finish(s->m);
}

static struct verdict judge(struct scene *s)
{
	struct verdict verdict;
	assert_int_equal(model_oom_count(s->m), 1);
	assert_true(model_verdict(s->m, 0, &verdict));
	scene_close(s);
	return verdict;
}

static bool advises(const struct verdict *verdict, enum verdict_advice advice)
{
	for (size_t i = 0; i < verdict->action_count; i++)
		if (verdict->actions[i].advice == advice)
			return true;
	return false;
}

static bool warns(const struct verdict *verdict, enum verdict_not_advised what)
{
	for (size_t i = 0; i < verdict->not_advised_count; i++)
		if (verdict->not_advised[i] == what)
			return true;
	return false;
}

/* 45 segments, of which some have 6 MiB idle; the next does not fit. */
static struct verdict with_holes(unsigned idle_count)
{
	struct scene s;
	scene_open(&s);
	fill(&s, COUNT);
	for (unsigned i = 1; i <= idle_count; i++) {
		block_free(&s, segment(i));
		block(&s, segment(i), SIZE - 6 * MIB, TORCH);
	}
	refuse(&s, SIZE, 17 * MIB);
	return judge(&s);
}

static void card_that_is_full_is_too_small(void **state)
{
	struct verdict verdict = with_holes(0);
	(void)state;
	assert_int_equal(verdict.cause, VERDICT_TOO_BIG);
	assert_true(verdict.is_certain);
	assert_int_equal(verdict.evidence.missing_bytes, 3 * MIB);
	assert_true(warns(&verdict, NOT_SETTINGS) && warns(&verdict, NOT_EMPTY_CACHE));
}

static void few_idle_bytes_are_no_fragmentation(void **state)
{
	struct verdict verdict = with_holes(2); /* 12 of 900 MiB */
	(void)state;
	assert_int_equal(verdict.cause, VERDICT_TOO_BIG);
	assert_false(verdict.is_certain);
	assert_int_equal(verdict.counter, VERDICT_FRAGMENTATION);
	assert_int_equal(verdict.counter_bytes, 12 * MIB);
	assert_false(warns(&verdict, NOT_SETTINGS));
}

static void many_idle_bytes_are_fragmentation(void **state)
{
	struct verdict verdict = with_holes(4); /* 24 of 900 MiB */
	(void)state;
	assert_int_equal(verdict.cause, VERDICT_FRAGMENTATION);
	assert_int_equal(verdict.kind, VERDICT_KIND_PINNED);
	assert_true(verdict.is_certain && advises(&verdict, ADVICE_WHATIF));
	assert_true(warns(&verdict, NOT_EMPTY_CACHE));
}

static void request_larger_than_the_card_is_impossible(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	fill(&s, 1);
	refuse(&s, CARD + 2 * MIB, CARD - SIZE);
	struct verdict verdict = judge(&s);
	assert_int_equal(verdict.cause, VERDICT_IMPOSSIBLE_REQUEST);
	assert_true(verdict.is_certain && advises(&verdict, ADVICE_CHECK_SHAPES));
}

static void no_failed_call_is_a_limit(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	fill(&s, 2);
	meminfo(&s, CARD - 2 * SIZE, CARD);
	block_oom(&s, SIZE);
	model_finish(s.m);
	struct verdict verdict = judge(&s);
	assert_int_equal(verdict.cause, VERDICT_LIMIT);
	assert_true(advises(&verdict, ADVICE_RAISE_LIMIT));
}

/* A card that is full of live blocks; `lost_count` events were lost, after which PyTorch's total was another so often. */
static struct verdict full_card(uint64_t lost_count, uint64_t disagreement_count)
{
	struct scene s;
	scene_open(&s);
	for (unsigned i = 0; i < COUNT; i++) {
		obtain(&s, MEMTRACE_SPACE_DEVICE, segment(i), SIZE, TORCH);
		block(&s, segment(i), SIZE, TORCH);
	}
	refuse(&s, SIZE, 10 * MIB);
	model_note_lost(s.m, lost_count, disagreement_count);
	return judge(&s);
}

static void lost_events_lower_certainty_only_where_they_may_matter(void **state)
{
	(void)state;
	assert_true(full_card(0, 0).is_certain);
	assert_true(full_card(3, 0).is_certain);
	assert_false(full_card(3, 1).is_certain);
}

static void refusal_though_more_was_free_is_told(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, segment(0), SIZE, TORCH);
	block(&s, segment(0), SIZE, TORCH);
	refuse(&s, 200 * MIB, CARD / 2);
	struct verdict verdict = judge(&s);
	assert_int_equal(verdict.cause, VERDICT_LIMIT);
	assert_int_equal(verdict.kind, VERDICT_KIND_DRIVER);
	assert_false(verdict.is_certain);
	assert_true(advises(&verdict, ADVICE_FIND_LIMIT));
	assert_false(advises(&verdict, ADVICE_RAISE_LIMIT));
}

static void memory_past_pytorch_is_outside(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	fill(&s, 2);
	obtain(&s, MEMTRACE_SPACE_DEVICE, segment(50), CARD / 2, NCCL);
	obtain(&s, MEMTRACE_SPACE_DEVICE, segment(70), CARD / 4, PROGRAM);
	refuse(&s, CARD / 4, 100 * MIB);
	struct verdict verdict = judge(&s);
	assert_int_equal(verdict.cause, VERDICT_OUTSIDE_PYTORCH);
	assert_int_equal(verdict.evidence.bytes, CARD * 3 / 4);
	assert_int_equal(verdict.evidence.stack, NCCL);
	assert_true(warns(&verdict, NOT_SETTINGS));
}

/* Only the reading that comes after it tells what the card has. */
static struct verdict without_pytorch(uint64_t asked_bytes)
{
	struct scene s;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, segment(50), CARD / 2, NCCL);
	obtain(&s, MEMTRACE_SPACE_DEVICE, segment(70), CARD / 4, PROGRAM);
	run_out(&s, MEMTRACE_SPACE_DEVICE, asked_bytes, PROGRAM);
	put(&s, MEMTRACE_READING, MEMTRACE_SPACE_NONE, CARD, CARD * 3 / 4, CARD * 3 / 4, 0);
	model_finish(s.m);
	return judge(&s);
}

static void without_pytorch_nothing_is_said_of_it(void **state)
{
	struct verdict verdict = without_pytorch(CARD / 2);
	(void)state;
	assert_int_equal(verdict.cause, VERDICT_TOO_BIG);
	assert_true(verdict.is_certain && !verdict.evidence.has_pytorch);
	assert_int_equal(verdict.evidence.bytes, CARD * 3 / 4);
	assert_int_equal(verdict.evidence.stack, NCCL);
	assert_int_equal(verdict.counter, VERDICT_UNKNOWN);
	assert_true(advises(&verdict, ADVICE_SMALLER_MODEL) && !advises(&verdict, ADVICE_LESS_OUTSIDE));
	assert_int_equal(verdict.not_advised_count, 0);
	assert_int_equal(without_pytorch(CARD + 1).cause, VERDICT_IMPOSSIBLE_REQUEST);
}

static void holes_of_another_stream_are_told(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	fill(&s, 20);
	for (unsigned i = 20; i < COUNT; i++) {
		obtain(&s, MEMTRACE_SPACE_DEVICE, segment(i), SIZE, TORCH);
		s.next.stream = 7;
		block(&s, segment(i), 2 * MIB, TORCH_OTHER);
	}
	refuse(&s, SIZE, 10 * MIB);
	struct verdict verdict = judge(&s);
	assert_int_equal(verdict.cause, VERDICT_FRAGMENTATION);
	assert_int_equal(verdict.kind, VERDICT_KIND_OTHER_STREAM);
	assert_true(advises(&verdict, ADVICE_ONE_STREAM));
}

/* A request that the card refused and that the cache, a segment of so much, then gave way to, `times`. */
static size_t find_after_flushes(uint64_t cached_bytes, unsigned times, unsigned filled, struct verdict *found)
{
	struct scene s;
	scene_open(&s);
	fill(&s, filled);
	for (unsigned i = 0; i < times; i++) {
		uint64_t cached = segment(60 + 2 * i), asked = segment(61 + 2 * i);
		obtain(&s, MEMTRACE_SPACE_DEVICE, cached, cached_bytes, TORCH);
		block(&s, cached, cached_bytes, TORCH);
		block_free(&s, cached);
		run_out(&s, MEMTRACE_SPACE_DEVICE, SIZE + 2 * MIB, TORCH);
		give_back(&s, MEMTRACE_SPACE_DEVICE, cached, TORCH);
		obtain(&s, MEMTRACE_SPACE_DEVICE, asked, SIZE + 2 * MIB, TORCH);
		block(&s, asked, SIZE + 2 * MIB, TORCH);
	}
	meminfo(&s, CARD - filled * SIZE - times * (SIZE + 2 * MIB), CARD);
	model_finish(s.m);
	size_t count = model_findings(s.m, found, 1);
	scene_close(&s);
	return count;
}

static size_t find_after_retries(unsigned times, unsigned filled, struct verdict *found)
{
	return find_after_flushes(SIZE, times, filled, found);
}

/* PyTorch takes an idle segment that is large enough, unless its block still waits for another stream. */
static void what_waits_for_another_stream_is_told_of_retries(void **state)
{
	struct verdict found;
	(void)state;
	assert_int_equal(find_after_flushes(SIZE + 2 * MIB, 3, 20, &found), 1);
	assert_int_equal(found.kind, VERDICT_KIND_PENDING_FREE);
	assert_int_equal(found.evidence.waits, 3);
	assert_true(advises(&found, ADVICE_WAIT_STREAM) && !advises(&found, ADVICE_WHATIF));
	assert_int_equal(find_after_flushes(SIZE, 3, 20, &found), 1);
	assert_int_equal(found.kind, VERDICT_KIND_NONE);
	assert_int_equal(found.evidence.waits, 0);
}

static void one_retry_on_a_card_that_ends_full_is_near_the_limit(void **state)
{
	struct verdict found;
	(void)state;
	assert_int_equal(find_after_retries(1, 47, &found), 1); /* 962 of 1000 MiB */
	assert_int_equal(found.cause, VERDICT_NEAR_LIMIT);
	assert_int_equal(found.evidence.retries, 1);
	assert_false(found.is_certain);
	assert_int_equal(find_after_retries(1, 46, &found), 0); /* 942 */
	assert_int_equal(find_after_retries(0, 49, &found), 0);
	assert_int_equal(find_after_retries(3, 20, &found), 1);
	assert_true(found.is_certain);
}

/* Half of the blocks are kept. */
static size_t find_leak(bool runs_out, bool goes_on, struct verdict *found)
{
	struct scene s;
	scene_open(&s);
	for (unsigned i = 0; i < COUNT; i++) {
		obtain(&s, MEMTRACE_SPACE_DEVICE, segment(i), SIZE, TORCH);
		block(&s, segment(i), SIZE / 2, TORCH_OTHER);
		for (unsigned k = 0; k < 8; k++) {
			block(&s, segment(i) + SIZE / 2, SIZE / 2, TORCH);
			block_free(&s, segment(i) + SIZE / 2);
		}
	}
	if (runs_out)
		refuse(&s, 200 * MIB, 100 * MIB);
	if (goes_on)
		block(&s, segment(0) + SIZE / 2, SIZE / 2, TORCH);
	meminfo(&s, 100 * MIB, CARD);
	model_finish(s.m);
	size_t count = model_findings(s.m, found, 1);
	scene_close(&s);
	return count;
}

static void after_an_oom_no_time_is_left_to_tell_of(void **state)
{
	struct verdict found;
	(void)state;
	assert_int_equal(find_leak(false, true, &found), 1);
	assert_int_equal(found.cause, VERDICT_LEAK);
	assert_int_not_equal(found.evidence.periods_left, UINT64_MAX);
	assert_int_equal(find_leak(true, true, &found), 1);
	assert_int_equal(found.evidence.periods_left, UINT64_MAX);
}

static void what_grew_before_the_program_ended_of_another_cause_is_no_finding(void **state)
{
	struct verdict found;
	(void)state;
	assert_int_equal(find_leak(true, false, &found), 0);
}

static void actions_are_ordered_by_what_they_save(void **state)
{
	struct verdict verdict = with_holes(4);
	(void)state;
	for (size_t i = 1; i < verdict.action_count; i++)
		assert_true(!verdict.actions[i].is_known ||
			    verdict.actions[i - 1].saves_bytes >= verdict.actions[i].saves_bytes);
}

/* The first step brings `first_bytes`, then odd and even ones `odd_bytes` and `even_bytes`. */
static struct trend_growth growth_of(unsigned steps, uint64_t first_bytes, uint64_t odd_bytes, uint64_t even_bytes)
{
	static struct trend trend;
	uint64_t live_bytes = 0, sequence = 0;
	trend = (struct trend){0};
	for (unsigned i = 0; i < steps; i++) {
		live_bytes += !i ? first_bytes : i & 1 ? odd_bytes : even_bytes;
		trend_note(&trend, CHANGE_OBTAINED, live_bytes, ++sequence);
		trend_end_step(&trend, live_bytes, sequence);
	}
	return trend_growth_of(&trend.steps);
}

static void growth_is_that_of_a_usual_step(void **state)
{
	(void)state;
	for (unsigned steps = 8; steps < 300; steps++)
		assert_int_equal(growth_of(steps, 124 * MIB, 24 * MIB, 24 * MIB).each_bytes, 24 * MIB);
}

static void growth_in_every_second_step_is_half_in_each(void **state)
{
	(void)state;
	for (unsigned steps = 16; steps < 300; steps++)
		assert_int_equal(growth_of(steps, 64 * MIB, 64 * MIB, 0).each_bytes, 32 * MIB);
}

/* 24 MiB are kept once in `interval` steps, `most` times at most. */
static struct trend_growth growth_of_stairs(unsigned steps, unsigned interval, unsigned most)
{
	static struct trend trend;
	trend = (struct trend){0};
	for (uint64_t i = 1; i <= steps; i++) {
		uint64_t kept = i / interval < most ? i / interval : most;
		trend_note(&trend, CHANGE_OBTAINED, (100 + 24 * kept) * MIB, i);
		trend_end_step(&trend, (100 + 24 * kept) * MIB, i);
	}
	return trend_growth_of(&trend.steps);
}

static void what_is_kept_once_in_so_many_steps_grows(void **state)
{
	(void)state;
	for (unsigned interval = 3; interval < 40; interval++) {
		for (unsigned steps = 5 * interval; steps < 10 * interval; steps++)
			assert_true(growth_of_stairs(steps, interval, 100).is_growing);
		assert_false(growth_of_stairs(12 * interval, interval, 3).is_growing);
		assert_false(growth_of_stairs(12 * interval, interval, 5).is_growing);
	}
	assert_int_equal(growth_of_stairs(24, 4, 100).each_bytes, 6 * MIB);
}

/* Twenty-five steps that bring a few KiB, then twenty of 24 MiB. */
static void a_late_rise_is_told_without_what_was_before(void **state)
{
	static struct trend trend;
	uint64_t live_bytes = 64 * MIB;
	(void)state;
	trend = (struct trend){0};
	for (uint64_t i = 1; i <= 45; i++) {
		live_bytes += i <= 25 ? 4096 : 24 * MIB;
		trend_note(&trend, CHANGE_OBTAINED, live_bytes, i);
		trend_end_step(&trend, live_bytes, i);
	}
	struct trend_growth late = trend_growth_since(&trend.steps, 25);
	assert_int_equal(trend_growth_of(&trend.steps).windows, 45);
	assert_true(late.is_growing && late.windows >= 18 && late.windows <= 21);
	assert_true(late.bytes >= 440 * MIB && late.bytes <= 481 * MIB);
}

/* A queue that holds 50 entries, in so many steps. */
static struct trend_growth growth_of_queue(unsigned steps)
{
	static struct trend trend;
	trend = (struct trend){0};
	for (uint64_t i = 1; i <= steps; i++) {
		uint64_t live_bytes = (i < 50 ? i : 50) * MIB;
		trend_note(&trend, CHANGE_OBTAINED, live_bytes, i);
		trend_end_step(&trend, live_bytes, i);
	}
	return trend_growth_of(&trend.steps);
}

static void what_has_come_to_rest_does_not_grow(void **state)
{
	(void)state;
	assert_true(growth_of_queue(50).is_growing);
	assert_false(growth_of_queue(64).is_growing);
	assert_true(growth_of_queue(64).is_at_rest);
}

/* A validation in every tenth step keeps something: in nine of ten nothing is added. */
static void what_grows_now_and_then_is_not_at_rest(void **state)
{
	static struct trend trend;
	(void)state;
	trend = (struct trend){0};
	for (uint64_t i = 1; i <= 59; i++) {
		trend_note(&trend, CHANGE_OBTAINED, i / 10 * MIB, i);
		trend_end_step(&trend, i / 10 * MIB, i);
	}
	assert_true(trend_growth_of(&trend.steps).is_growing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(card_that_is_full_is_too_small),
		cmocka_unit_test(few_idle_bytes_are_no_fragmentation),
		cmocka_unit_test(many_idle_bytes_are_fragmentation),
		cmocka_unit_test(request_larger_than_the_card_is_impossible),
		cmocka_unit_test(no_failed_call_is_a_limit),
		cmocka_unit_test(lost_events_lower_certainty_only_where_they_may_matter),
		cmocka_unit_test(refusal_though_more_was_free_is_told),
		cmocka_unit_test(memory_past_pytorch_is_outside),
		cmocka_unit_test(without_pytorch_nothing_is_said_of_it),
		cmocka_unit_test(holes_of_another_stream_are_told),
		cmocka_unit_test(what_waits_for_another_stream_is_told_of_retries),
		cmocka_unit_test(one_retry_on_a_card_that_ends_full_is_near_the_limit),
		cmocka_unit_test(after_an_oom_no_time_is_left_to_tell_of),
		cmocka_unit_test(what_grew_before_the_program_ended_of_another_cause_is_no_finding),
		cmocka_unit_test(actions_are_ordered_by_what_they_save),
		cmocka_unit_test(growth_is_that_of_a_usual_step),
		cmocka_unit_test(growth_in_every_second_step_is_half_in_each),
		cmocka_unit_test(what_is_kept_once_in_so_many_steps_grows),
		cmocka_unit_test(a_late_rise_is_told_without_what_was_before),
		cmocka_unit_test(what_has_come_to_rest_does_not_grow),
		cmocka_unit_test(what_grows_now_and_then_is_not_at_rest),
	};
	return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
