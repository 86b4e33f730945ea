/* recorder/fast_clock: what it says against CLOCK_MONOTONIC; and on pairs that are made up, a
 * counter whose rate changes, a machine that slept, and one whose counter began anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder/fast_clock.h"

#define TICKS_A_US   2100
#define STEP_NS      100000000u /* between two comparisons */
#define STEPS        100
#define CHECKS       200000
#define KEEP_EVERY   1000
#define ALLOWED_NS   2000
#define START_TICKS  (UINT64_C(1) << 40)
#define START_NS     UINT64_C(5000000000)

static struct fast_clock started(void)
{
	struct clock_pair first = {START_TICKS, START_NS};
	return (struct fast_clock){.older = first, .newer = first};
}

/* As far as `ns` on, the counter being `ppm` faster than nominal. */
static struct clock_pair later(struct clock_pair from, int64_t ns, int64_t ppm)
{
	return (struct clock_pair){
		from.ticks + (uint64_t)(ns * TICKS_A_US / 1000 * (1000000 + ppm) / 1000000),
		from.ns + (uint64_t)ns};
}

static int64_t error_at(const struct fast_clock *clock, struct clock_pair at)
{
	uint64_t told;
	assert_true(fast_clock_convert(clock, at.ticks, &told));
	int64_t off = (int64_t)(told - at.ns);
	return off < 0 ? -off : off;
}

static void nothing_is_said_before_a_second_pair(void **state)
{
	(void)state;
	struct fast_clock clock = started();
	uint64_t ns;
	assert_false(fast_clock_convert(&clock, START_TICKS, &ns));
}

static void the_error_between_comparisons_is_that_of_the_rate(void **state)
{
	(void)state;
	struct fast_clock clock = started();
	struct clock_pair at = clock.older;
	for (int step = 0; step < STEPS; step++) {
		int64_t ppm = step % 20 < 10 ? 5 : 0; /* a clock that is being corrected */
		struct clock_pair next = later(at, STEP_NS, ppm);
		if (step)
			assert_true(error_at(&clock, next) <= 1000);
		fast_clock_learn(&clock, next);
		assert_true(error_at(&clock, next) <= 1);
		assert_true(error_at(&clock, at) <= 1000); /* and backwards */
		at = next;
	}
}

static void after_a_sleep_of_the_machine_it_starts_anew(void **state)
{
	(void)state;
	struct fast_clock clock = started();
	struct clock_pair at = later(clock.older, STEP_NS, 0);
	uint64_t ns;
	fast_clock_learn(&clock, at);
	at.ticks += (uint64_t)3600 * 1000000 * TICKS_A_US; /* the counter ran on */
	fast_clock_learn(&clock, at);
	assert_false(fast_clock_convert(&clock, at.ticks, &ns));
	at = later(at, STEP_NS, 0);
	fast_clock_learn(&clock, at);
	assert_true(error_at(&clock, at) <= 1);
	at = later((struct clock_pair){1000, at.ns}, STEP_NS, 0); /* the counter began anew */
	fast_clock_learn(&clock, at);
	assert_false(fast_clock_convert(&clock, at.ticks, &ns));
	at = later(at, STEP_NS, 0);
	fast_clock_learn(&clock, at);
	assert_true(error_at(&clock, later(at, STEP_NS, 0)) <= 100);
}

static void a_reader_that_meets_a_change_is_told_nothing(void **state)
{
	(void)state;
	struct fast_clock clock = started();
	uint64_t ns;
	fast_clock_learn(&clock, later(clock.older, STEP_NS, 0));
	assert_true(fast_clock_convert(&clock, START_TICKS, &ns));
	clock.turn++;
	assert_false(fast_clock_convert(&clock, START_TICKS, &ns));
}

/* Whatever the machine does between the readings only widens what is allowed; and the rate, which is measured over a few
 * milliseconds at first, is off by less than a thousandth where the last comparison is long ago. */
static void it_says_what_clock_monotonic_says(void **state)
{
	(void)state;
	struct fast_clock clock = {.turn = 0};
	int known = 0;
	fast_clock_init(&clock);
	for (int i = 0; i < CHECKS; i++) {
		if (i % KEEP_EVERY == 0)
			fast_clock_keep(&clock);
		uint64_t before = monotonic_ns(), said = fast_clock_ns(&clock), after = monotonic_ns();
		uint64_t allowed_ns = ALLOWED_NS + (clock.factor ? (after - clock.at.ns) / 1000 : 0);
		assert_true(said + allowed_ns >= before && said <= after + allowed_ns);
		known += clock.factor != 0;
	}
	if (!clock.is_usable || !known)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_said_before_a_second_pair),
		cmocka_unit_test(the_error_between_comparisons_is_that_of_the_rate),
		cmocka_unit_test(after_a_sleep_of_the_machine_it_starts_anew),
		cmocka_unit_test(a_reader_that_meets_a_change_is_told_nothing),
		cmocka_unit_test(it_says_what_clock_monotonic_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
