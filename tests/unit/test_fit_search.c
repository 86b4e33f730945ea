/* The search for the largest size that fits: its answers equal those of trying every size around
 * them, for programs whose memory grows evenly, in plateaus, and neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/fit_search.h"

struct program {
	uint64_t base, slope, plateau; /* bytes = max(plateau, base + slope * size) */
	uint64_t bump, every;          /* and `bump` more at every `every`-th size */
	uint64_t slack;                /* so much can be given back by a retry */
	uint64_t cap;                  /* sizes above it do not arrive; 0: all do */
};

static uint64_t peak_of(const struct program *p, uint64_t index)
{
	uint64_t size = index + 1;
	if (p->cap && size > p->cap)
		size = p->cap;
	uint64_t bytes = p->base + p->slope * size;
	if (p->every && size % p->every == 0)
		bytes += p->bump;
	return bytes > p->plateau ? bytes : p->plateau;
}

static struct fit_outcome run_it(const struct program *p, uint64_t index, uint64_t capacity)
{
	uint64_t peak = peak_of(p, index);
	struct fit_outcome outcome = {.verdict = FIT_CLEAN, .peak_bytes = peak};
	uint64_t size = p->cap && index + 1 > p->cap ? p->cap : index + 1;
	outcome.work_bytes = p->base + p->slope * size;
	if (peak > capacity) {
		outcome.verdict = peak <= capacity + p->slack ? FIT_RETRIED : FIT_FAILED;
		outcome.peak_bytes = capacity;
	}
	return outcome;
}

/* Results come in as they were asked for, `jobs` at a time, the last first. */
static unsigned search_it(struct fit_search *search, const struct program *p, uint64_t count,
			  uint64_t capacity, size_t jobs)
{
	struct fit_wish busy[8], wishes[8];
	size_t busy_count = 0;
	unsigned runs = 0;
	fit_search_start(search, count, capacity);
	for (;;) {
		size_t got = fit_search_next(search, wishes, jobs - busy_count);
		for (size_t i = 0; i < got; i++)
			busy[busy_count++] = wishes[i];
		if (search->end)
			return runs;
		assert_true(busy_count > 0);
		struct fit_wish done = busy[--busy_count];
		struct fit_outcome outcome =
			run_it(p, done.index, done.is_endless ? UINT64_MAX / 2 : capacity);
		fit_search_note(search, done, &outcome);
		assert_true(++runs < 60);
	}
}

/* It fits, and the sizes behind it do not. */
static void check_border(const struct program *p, uint64_t count, uint64_t capacity, uint64_t found,
			 enum fit_verdict worst)
{
	if (found != FIT_NONE)
		assert_true(run_it(p, found, capacity).verdict <= worst);
	uint64_t first = found == FIT_NONE ? 0 : found + 1;
	for (uint64_t i = first; i < first + FIT_BEHIND && i < count; i++)
		assert_true(run_it(p, i, capacity).verdict > worst);
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static void answers_equal_those_of_trying_every_size_around(void **state)
{
	(void)state;
	static struct fit_search search;
	uint64_t seed = 1;
	unsigned most = 0;
	for (unsigned round = 0; round < 20000; round++) {
		struct program p = {
			.base = next_random(&seed) % 1000,
			.slope = 1 + next_random(&seed) % 100,
			.plateau = round % 3 ? 0 : next_random(&seed) % 4000,
			.every = round % 2 ? 2 + next_random(&seed) % 6 : 0,
			.slack = round % 5 ? next_random(&seed) % 300 : 0,
		};
		p.bump = next_random(&seed) % (5 * p.slope);
		uint64_t count = 1 + next_random(&seed) % 600, capacity = 200 + next_random(&seed) % 6000;
		unsigned runs = search_it(&search, &p, count, capacity, 1 + round % 4);
		most = runs > most ? runs : most;
		assert_int_not_equal(search.end, FIT_GAVE_UP);
		check_border(&p, count, capacity, search.clean, FIT_CLEAN);
		check_border(&p, count, capacity, search.fits, FIT_RETRIED);
		if (search.end == FIT_ALWAYS_FAILS)
			assert_true(search.fits == FIT_NONE);
	}
	print_message("at most %u runs\n", most);
	assert_true(most <= 40);
}

static void an_even_program_takes_few_runs(void **state)
{
	(void)state;
	static struct fit_search search;
	struct program p = {.base = 500, .slope = 37};
	assert_true(search_it(&search, &p, 512, 5000, 1) <= 8 + 5);
	assert_int_equal(search.end, FIT_FOUND);
	assert_int_equal(search.clean + 1, (5000 - 500) / 37);
}

static void a_size_that_does_not_arrive_is_told(void **state)
{
	(void)state;
	static struct fit_search search;
	struct program deaf = {.base = 500, .slope = 1, .cap = 1}, small = {.base = 500, .slope = 1, .cap = 20};
	search_it(&search, &deaf, 512, 5000, 2);
	assert_int_equal(search.end, FIT_IGNORED);
	search_it(&search, &small, 512, 5000, 2);
	assert_int_equal(search.end, FIT_NEVER_FAILS);
	assert_int_equal(search.same_from + 1, 32);
}

static void a_plateau_is_not_taken_for_deafness(void **state)
{
	(void)state;
	static struct fit_search search;
	struct program p = {.base = 100, .slope = 10, .plateau = 3000};
	search_it(&search, &p, 512, 4000, 1);
	assert_int_equal(search.end, FIT_FOUND);
	assert_int_equal(search.clean + 1, 390);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_equal_those_of_trying_every_size_around),
		cmocka_unit_test(an_even_program_takes_few_runs),
		cmocka_unit_test(a_size_that_does_not_arrive_is_told),
		cmocka_unit_test(a_plateau_is_not_taken_for_deafness),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
