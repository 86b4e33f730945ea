/* recorder/calls.h: whether an instant passed without an open call, told by one thread of others. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "recorder/calls.h"

#define THREADS 4
#define CALLS 50000

static void only_a_time_without_a_call_is_quiet(void **state)
{
	(void)state;
	static struct calls calls;
	uint64_t begun, again;
	assert_true(calls_were_quiet(&calls, &begun));
	struct call_count *known = calls_begin(&calls, 7), *unknown = calls_begin(&calls, 0);
	assert_false(calls_were_quiet(&calls, &again));
	calls_end(&calls, known);
	assert_false(calls_were_quiet(&calls, &again));
	calls_end(&calls, unknown);
	assert_true(calls_were_quiet(&calls, &again));
	assert_int_equal(again, begun + 2);
	assert_int_equal(calls_begun(&calls), begun + 2);
}

static void threads_beyond_the_lines_are_counted_too(void **state)
{
	(void)state;
	static struct calls calls;
	uint64_t begun;
	struct call_count *first = calls_begin(&calls, CALLS_THREADS), *second = calls_begin(&calls, UINT32_MAX);
	calls_end(&calls, first);
	assert_false(calls_were_quiet(&calls, &begun));
	calls_end(&calls, second);
	assert_true(calls_were_quiet(&calls, &begun));
}

static void a_call_that_was_open_at_a_fork_does_not_count_in_the_child(void **state)
{
	(void)state;
	static struct calls calls;
	uint64_t begun;
	struct call_count *known = calls_begin(&calls, 3), *unknown = calls_begin(&calls, 0);
	memset(&calls, 0, sizeof calls); /* what the kernel does to the child's */
	calls_end(&calls, known);
	calls_end(&calls, unknown);
	assert_true(calls_were_quiet(&calls, &begun));
	assert_int_equal(begun, 0);
}

/* ---------- on several threads ---------- */

struct shared {
	struct calls calls;
	uint64_t inside; /* what a call does, which must not be seen in a quiet time */
	uint32_t running;
};

struct caller {
	struct shared *shared;
	uint32_t id;
};

static void *call_often(void *argument)
{
	struct caller *caller = argument;
	struct shared *shared = caller->shared;
	for (unsigned i = 0; i < CALLS; i++) {
		struct call_count *count = calls_begin(&shared->calls, caller->id);
		__atomic_fetch_add(&shared->inside, 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_sub(&shared->inside, 1, __ATOMIC_SEQ_CST);
		calls_end(&shared->calls, count);
	}
	__atomic_fetch_sub(&shared->running, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void what_calls_do_is_never_seen_in_a_quiet_time(void **state)
{
	(void)state;
	static struct shared shared = { .running = THREADS };
	struct caller callers[THREADS];
	pthread_t threads[THREADS];
	for (unsigned i = 0; i < THREADS; i++) {
		callers[i] = (struct caller){ .shared = &shared, .id = i / 2 ? i : 0 };
		pthread_create(&threads[i], NULL, call_often, &callers[i]);
	}
	unsigned wrong = 0;
	while (__atomic_load_n(&shared.running, __ATOMIC_SEQ_CST)) {
		uint64_t begun;
		if (!calls_were_quiet(&shared.calls, &begun))
			continue;
		uint64_t inside = __atomic_load_n(&shared.inside, __ATOMIC_SEQ_CST);
		wrong += inside && calls_begun(&shared.calls) == begun;
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(wrong, 0);
	assert_int_equal(calls_begun(&shared.calls), THREADS * CALLS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_time_without_a_call_is_quiet),
		cmocka_unit_test(threads_beyond_the_lines_are_counted_too),
		cmocka_unit_test(a_call_that_was_open_at_a_fork_does_not_count_in_the_child),
		cmocka_unit_test(what_calls_do_is_never_seen_in_a_quiet_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
