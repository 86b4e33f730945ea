/* Everything at once: threads that allocate and free, run out of memory, leave calls by exceptions and jumps, open and
 * close a library, fork children that allocate, and spawn programs. What it prints depends on its arguments alone.
 *
 *   stress ROUNDS THREADS PLUGIN
 *   stress child NUMBER          allocates and exits with NUMBER
 *
 * Prints "checksum C calls N": of what all calls returned, and how many of cuMemAlloc and cuMemFree returned. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#define THREADS_MAX 32
#define KEPT        64
#define MUCH        ((size_t)1 << 41)

extern int cuInit(unsigned);
extern int cuMemAlloc_v2(uint64_t *, size_t);
extern int cuMemFree_v2(uint64_t);
extern __thread void (*stressful_callback)(void);
extern char **environ;

struct worker {
	pthread_t thread;
	uint64_t random;
	uint64_t checksum, calls;
	uint64_t kept[KEPT];
	const char *program;
};

static unsigned long rounds;
static const char *plugin;

static uint32_t random_next(struct worker *worker)
{
	worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(worker->random >> 33);
}

static void add(struct worker *worker, uint64_t value)
{
	worker->checksum = (worker->checksum ^ value) * 0x9e3779b97f4a7c15u;
}

/* ---------- what a worker does ---------- */

static void allocate(struct worker *worker, uint64_t *address, size_t bytes)
{
	add(worker, (uint64_t)cuMemAlloc_v2(address, bytes));
	worker->calls++;
}

static void exchange(struct worker *worker)
{
	uint64_t *place = &worker->kept[random_next(worker) % KEPT];
	if (*place) {
		add(worker, (uint64_t)cuMemFree_v2(*place));
		worker->calls++;
	}
	allocate(worker, place, 2 + random_next(worker) % 1000000);
}

static void run_out(struct worker *worker)
{
	uint64_t address = 77;
	allocate(worker, &address, MUCH);
	add(worker, address);
}

static __thread jmp_buf landing;
static __thread uintptr_t landing_frame;

static _Unwind_Reason_Code stop_at_landing(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
					   struct _Unwind_Exception *exception, struct _Unwind_Context *context,
					   void *argument)
{
	(void)version;
	(void)class;
	(void)exception;
	(void)argument;
	if (_Unwind_GetCFA(context) > landing_frame || (actions & _UA_END_OF_STACK))
		longjmp(landing, 1);
	return _URC_NO_REASON;
}

static void throw_exception(void)
{
	static __thread struct _Unwind_Exception exception;
	_Unwind_ForcedUnwind(&exception, stop_at_landing, NULL);
	abort();
}

static void jump(void)
{
	longjmp(landing, 1);
}

static void leave_call(struct worker *worker, void (*how)(void))
{
	uint64_t address;
	stressful_callback = how;
	landing_frame = (uintptr_t)__builtin_frame_address(0);
	if (!setjmp(landing)) {
		cuMemAlloc_v2(&address, 1);
		abort();
	}
	add(worker, 3);
}

static void call_back(void *argument)
{
	exchange(argument);
}

static void use_plugin(struct worker *worker)
{
	void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
	void (*run)(void (*)(void *), void *) =
		library ? (void (*)(void (*)(void *), void *))dlsym(library, "plugin_run") : NULL;
	add(worker, run != NULL);
	if (run)
		run(call_back, worker);
	if (library)
		add(worker, (uint64_t)dlclose(library));
}

static void wait_for(struct worker *worker, pid_t child)
{
	int status = -1;
	waitpid(child, &status, 0);
	add(worker, (uint64_t)status);
}

static int allocate_as_child(int number)
{
	uint64_t address[2];
	if (cuMemAlloc_v2(&address[0], 100) || cuMemAlloc_v2(&address[1], 200) || cuMemFree_v2(address[0]))
		return 99;
	return number;
}

static void fork_child(struct worker *worker)
{
	int number = (int)(random_next(worker) % 90);
	pid_t child = fork();
	if (!child)
		_exit(number % 4 ? number : allocate_as_child(number));
	wait_for(worker, child);
}

static void spawn_child(struct worker *worker)
{
	char number[16];
	char *words[] = {(char *)worker->program, "child", number, NULL};
	pid_t child;
	snprintf(number, sizeof number, "%u", random_next(worker) % 90);
	add(worker, (uint64_t)posix_spawn(&child, worker->program, NULL, NULL, words, environ));
	wait_for(worker, child);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	for (unsigned long i = 0; i < rounds; i++) {
		uint32_t dice = random_next(worker) % 4096;
		if (dice < 2)
			fork_child(worker);
		else if (dice < 3)
			spawn_child(worker);
		else if (dice < 40)
			use_plugin(worker);
		else if (dice < 120)
			leave_call(worker, dice % 2 ? throw_exception : jump);
		else if (dice < 200)
			run_out(worker);
		else
			exchange(worker);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	uint64_t checksum = 0, calls = 0;
	if (argc == 3 && !strcmp(argv[1], "child")) {
		cuInit(0);
		return allocate_as_child(atoi(argv[2]));
	}
	if (argc != 4)
		return 2;
	rounds = strtoul(argv[1], NULL, 10);
	plugin = argv[3];
	int count = atoi(argv[2]) < THREADS_MAX ? atoi(argv[2]) : THREADS_MAX;
	cuInit(0);
	for (int i = 0; i < count; i++) {
		workers[i] = (struct worker){.random = (uint64_t)i + 1, .program = argv[0]};
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (int i = 0; i < count; i++) {
		pthread_join(workers[i].thread, NULL);
		checksum = checksum * 31 + workers[i].checksum;
		calls += workers[i].calls;
	}
	printf("checksum %#llx calls %llu\n", (unsigned long long)checksum, (unsigned long long)calls);
	return 0;
}
