/* The recorder as the hooks use it, in one process with its dump thread, trace and model: threads, fork, kill and exit.
 * Each scene is played by a child, so that the recording is that child's; the trace is then read. It is linked like any
 * unit test, so that a sanitized build looks at the recorder too. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "recorder/activity.h"
#include "recorder/record.h"
#include "recorder/session.h"
#include "trace/reader.h"
#include "base/arena.h"

#define THREADS       4
#define PAIRS         5000 /* of an allocation and its free, each thread */
#define CHILDREN      4
#define ADDRESS_RANGE ((uint64_t)1 << 32)

/* Children of a process with threads are what this is about. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0:halt_on_error=1";
}

struct shared { /* outlives the child that counts in it */
	atomic_ulong returned; /* calls of record_event */
	atomic_uint running;
	atomic_bool enough;
};

static struct shared *shared;
static char folder[] = "/tmp/memtrace-recorder-XXXXXX";
static char output[64];

/* ---------- what hooks would do ---------- */

static void record(enum memtrace_what what, uint64_t address, uint64_t bytes)
{
	struct record event = {.what = what,
			       .space = MEMTRACE_SPACE_DEVICE,
			       .address = address,
			       .bytes = bytes,
			       .frame = __builtin_frame_address(0)};
	record_event(&event);
	atomic_fetch_add(&shared->returned, 1);
}

static void record_pair(uint64_t address)
{
	record(MEMTRACE_ALLOC, address, 4096);
	record(MEMTRACE_FREE, address, 0);
}

static void *record_pairs(void *first_address)
{
	for (uint64_t i = 0; i < PAIRS; i++)
		record_pair((uintptr_t)first_address + 4096 * (i % 100));
	return NULL;
}

static void *record_until_enough(void *first_address)
{
	atomic_fetch_add(&shared->running, 1);
	for (uint64_t i = 0; !atomic_load(&shared->enough); i++)
		record_pair((uintptr_t)first_address + 4096 * (i % 100));
	return NULL;
}

static void start_threads(pthread_t *threads, void *(*run)(void *))
{
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)((i + 1) * ADDRESS_RANGE));
}

static void join_threads(pthread_t *threads)
{
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void wait_until_returned(unsigned long calls)
{
	while (atomic_load(&shared->returned) < calls)
		usleep(100);
}

/* ---------- scenes ---------- */

static void scene_threads(void)
{
	pthread_t threads[THREADS];
	start_threads(threads, record_pairs);
	join_threads(threads);
	record_close(MEMTRACE_EXIT, 0);
	_exit(0);
}

static void scene_kill(void)
{
	pthread_t threads[THREADS];
	start_threads(threads, record_until_enough);
	wait_until_returned(20000);
	raise(SIGKILL);
}

static void scene_end(void)
{
	pthread_t threads[THREADS];
	start_threads(threads, record_until_enough);
	wait_until_returned(5000);
	record_close(MEMTRACE_EXIT, 0);
	wait_until_returned(atomic_load(&shared->returned) + 1000);
	atomic_store(&shared->enough, true);
	join_threads(threads);
	_exit(0);
}

static void child_records(void)
{
	for (uint64_t i = 1; i <= 3; i++)
		record(MEMTRACE_ALLOC, i * ADDRESS_RANGE, 100);
	record_close(MEMTRACE_UNDERSCORE_EXIT, 5);
	_exit(5);
}

static int wait_for(pid_t child)
{
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void scene_fork(void)
{
	pthread_t threads[THREADS];
	start_threads(threads, record_until_enough);
	wait_until_returned(2000);
	for (unsigned i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		if (!child)
			child_records();
		if (wait_for(child) != 5)
			_exit(1);
	}
	atomic_store(&shared->enough, true);
	join_threads(threads);
	record_close(MEMTRACE_EXIT, 0);
	_exit(0);
}

static void scene_oom(void)
{
	record(MEMTRACE_ALLOC, ADDRESS_RANGE, 1 << 20);
	record(MEMTRACE_OOM, 0, 1 << 30);
	record_close(MEMTRACE_EXIT, 0);
	_exit(0);
}

/* ---------- what is in the traces ---------- */

static int play(void (*scene)(void))
{
	memset(shared, 0, sizeof *shared);
	pid_t child = fork();
	if (!child)
		scene();
	return wait_for(child);
}

static struct trace *open_trace(unsigned number)
{
	char path[128], error[512];
	snprintf(path, sizeof path, number > 1 ? "%s.%u.mtrace" : "%s.mtrace", output, number);
	struct trace *trace = trace_open(path, error, sizeof error);
	if (!trace)
		print_error("%s\n", error);
	assert_non_null(trace);
	unlink(path);
	snprintf(path, sizeof path, number > 1 ? "%s.%u.txt" : "%s.txt", output, number);
	unlink(path);
	return trace;
}

/* Reads all; returns what is accounted for, one way or another. */
static uint64_t account(unsigned number, struct trace_facts *facts)
{
	struct event ev;
	struct trace *trace = open_trace(number);
	while (trace_next(trace, &ev))
		assert_true(ev.what == MEMTRACE_ALLOC || ev.what == MEMTRACE_FREE || ev.what == MEMTRACE_OOM);
	*facts = *trace_facts(trace);
	assert_false(facts->torn);
	trace_close(trace);
	return facts->events + facts->lost + facts->in_flight + facts->late;
}

static void threads_are_recorded_call_by_call(void **state)
{
	struct trace_facts facts;
	(void)state;
	assert_int_equal(play(scene_threads), 0);
	assert_int_equal(account(1, &facts), THREADS * PAIRS * 2);
	assert_int_equal(facts.in_flight + facts.late, 0);
}

static void a_kill_leaves_all_that_had_returned(void **state)
{
	struct trace_facts facts;
	(void)state;
	assert_int_equal(play(scene_kill), -SIGKILL);
	uint64_t returned = atomic_load(&shared->returned), accounted = account(1, &facts);
	assert_true(returned <= accounted && accounted <= returned + THREADS);
	assert_int_equal(facts.ended, MEMTRACE_RUNNING);
}

static void what_comes_after_the_end_is_late(void **state)
{
	struct trace_facts facts;
	(void)state;
	assert_int_equal(play(scene_end), 0);
	assert_int_equal(account(1, &facts), atomic_load(&shared->returned));
	assert_true(facts.late >= 1000);
}

static void forked_children_have_traces_of_their_own(void **state)
{
	struct trace_facts facts;
	(void)state;
	assert_int_equal(play(scene_fork), 0);
	assert_int_equal(account(1, &facts), atomic_load(&shared->returned) - 3 * CHILDREN);
	for (unsigned i = 0; i < CHILDREN; i++) {
		assert_int_equal(account(2 + i, &facts), 3);
		assert_int_equal(facts.status, 5);
	}
}

static void an_oom_is_reported(void **state)
{
	char path[128];
	struct trace_facts facts;
	(void)state;
	assert_int_equal(play(scene_oom), 0);
	assert_int_equal(account(1, &facts), 2);
	snprintf(path, sizeof path, "%s.oom1.txt", output);
	assert_int_equal(unlink(path), 0);
}

static int begin(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(output, sizeof output, "%s/run", folder);
	setenv("MEMTRACE_OUTPUT", output, 1);
	setenv("MEMTRACE_SUMMARY", "file", 1);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED;
}

static void pass_over(const struct record *record, void *count)
{
	(void)record;
	++*(unsigned *)count;
}

/* As where a thread lost its turn between its call and its question: it would be told that CUPTI is silent. */
static void what_cupti_told_is_known_though_others_were_told_of_since(void **state)
{
	static struct activities activities;
	unsigned count = 0;
	(void)state;
	assert_int_equal(activities_init(&activities), 0);
	for (uint64_t i = 1; i <= 1500; i++) {
		struct record record = {.what = MEMTRACE_ALLOC, .address = i << 21, .at_ns = i};
		assert_int_equal(activities_add(&activities, &record), 0);
	}
	activities_take(&activities, UINT64_MAX, 0, pass_over, &count);
	assert_int_equal(count, 1500);
	assert_true(activities_knows(&activities, (uint64_t)1 << 21));
	assert_false(activities_knows(&activities, (uint64_t)1501 << 21));
	arena_release(activities.arena);
}

/* A ring that nobody empties is waited for as long in sleeps, however late the waiting thread comes back: the process
 * may have been stopped meanwhile, and the dump thread with it. */
static void a_stop_is_no_time_that_the_dump_thread_had(void **state)
{
	static struct session session;
	static struct memtrace_live live;
	struct patience patience = {.session = &session};
	unsigned sleeps = 0;
	(void)state;
	session.writer.live = &live;
	session.dump.is_threaded = true;
	assert_true(dump_is_waited_for(&patience));
	usleep(DUMP_PATIENCE_NS / 1000 * 3 / 2);
	while (dump_is_waited_for(&patience))
		sleeps++;
	assert_true(sleeps > 50);
}

static int end(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_are_recorded_call_by_call),
		cmocka_unit_test(a_kill_leaves_all_that_had_returned),
		cmocka_unit_test(what_comes_after_the_end_is_late),
		cmocka_unit_test(forked_children_have_traces_of_their_own),
		cmocka_unit_test(an_oom_is_reported),
		cmocka_unit_test(what_cupti_told_is_known_though_others_were_told_of_since),
		cmocka_unit_test(a_stop_is_no_time_that_the_dump_thread_had),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
