/* A process with children. It takes 1000 and 2000 bytes, has its children, and frees the 2000 at
 * its end; what is true of it is then: 2 allocations, 1 free, 1000 bytes live. It prints the pids
 * of children that allocate.
 *
 *   family MODE [ARGUMENT...]
 *
 * MODE: silent (the child ends by _exit and has allocated nothing), silent_exit (by exit), child
 * (it takes 5000 bytes and ends by exit), threads (20 children that take 3 x 100 bytes, while four
 * threads of the parent allocate), clone (a child by clone, which allocates as in "child"), raw_clone
 * (the same by the system call itself), clone_shared (one that shares the parent's memory and ends by
 * _exit), locked (as "silent" and "child", by _exit, while another thread holds the loader's lock), closing (a
 * child that takes and gives back 5000, where the library ARGUMENT is listed and not mapped any more),
 * vfork (the child ends by _exit), vfork_exec and spawn (the child becomes ARGUMENT), exec (the process
 * itself becomes ARGUMENT). */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "take.h"

#define CHILDREN 20
#define THREADS  4

extern char **environ;
static char **words;
static atomic_bool enough;
static atomic_ulong rounds;

static int wait_for(pid_t child)
{
	int status = -1;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int child_is_silent(void)
{
	pid_t child = fork();
	if (!child)
		_exit(5);
	return wait_for(child) == 5;
}

static int child_is_silent_at_exit(void)
{
	pid_t child = fork();
	if (!child)
		exit(5);
	return wait_for(child) == 5;
}

static int child_allocates(void)
{
	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		take(5000);
		exit(5);
	}
	printf("%d\n", (int)child);
	return wait_for(child) == 5;
}

static int take_and_exit(void *nothing)
{
	(void)nothing;
	take(5000);
	exit(5);
}

static int exit_at_once(void *nothing)
{
	(void)nothing;
	_exit(5);
}

static int clone_child(int (*run)(void *), int flags)
{
	static char stack[1 << 20] __attribute__((aligned(16)));
	fflush(stdout);
	pid_t child = clone(run, stack + sizeof stack, flags | SIGCHLD, NULL);
	if (!(flags & CLONE_VM))
		printf("%d\n", (int)child);
	return wait_for(child) == 5;
}

static int cloned_child_allocates(void)
{
	return clone_child(take_and_exit, 0);
}

/* On a copy of this stack, unknown to libc. */
static int raw_child_allocates(void)
{
	fflush(stdout);
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!child)
		take_and_exit(NULL);
	printf("%d\n", (int)child);
	return wait_for(child) == 5;
}

static int cloned_child_shares(void)
{
	return clone_child(exit_at_once, CLONE_VM | CLONE_VFORK);
}

static int hold_lock(struct dl_phdr_info *info, size_t bytes, void *nothing)
{
	(void)info;
	(void)bytes;
	(void)nothing;
	atomic_fetch_add(&rounds, 1);
	while (!atomic_load(&enough))
		usleep(100);
	return 1;
}

static void *walk_objects(void *nothing)
{
	dl_iterate_phdr(hold_lock, nothing);
	return NULL;
}

static int children_beside_lock(void)
{
	pthread_t thread;
	int good = 1;
	pthread_create(&thread, NULL, walk_objects, NULL);
	while (!atomic_load(&rounds))
		usleep(100);
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();
		if (!child && i)
			give(take(5000));
		if (!child)
			_exit(5);
		good = wait_for(child) == 5 && good;
	}
	atomic_store(&enough, 1);
	pthread_join(thread, NULL);
	return good;
}

/* As if another thread had been in the middle of dlclose at the fork. */
static int child_beside_close(void)
{
	const struct link_map *library = dlopen(words[0], RTLD_NOW | RTLD_LOCAL);
	uintptr_t page = library ? (uintptr_t)library->l_ld & -(uintptr_t)sysconf(_SC_PAGESIZE) : 0;
	pid_t child = fork();
	if (!child) {
		if (!page || munmap((void *)page, 1))
			_exit(1);
		give(take(5000));
		_exit(5);
	}
	return wait_for(child) == 5;
}

static void *allocate_on(void *nothing)
{
	(void)nothing;
	while (!atomic_load(&enough)) {
		give(take(512));
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

static int children_beside_threads(void)
{
	pthread_t threads[THREADS];
	pid_t children[CHILDREN];
	int good = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, allocate_on, NULL);
	while (atomic_load(&rounds) < 1000)
		usleep(100);
	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		for (int j = 0; j < 3; j++)
			take(100);
		_exit(5);
	}
	for (int i = 0; i < CHILDREN; i++) {
		good = wait_for(children[i]) == 5 && good;
		printf("%d\n", (int)children[i]);
	}
	atomic_store(&enough, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("rounds %lu\n", atomic_load(&rounds));
	return good;
}

static int vfork_child_exits(void)
{
	pid_t child = vfork();
	if (!child)
		_exit(5);
	return wait_for(child) == 5;
}

static int vfork_child_becomes(void)
{
	pid_t child = vfork();
	if (!child) {
		execv(words[0], words);
		_exit(127);
	}
	return wait_for(child) == 0;
}

static int spawned_child(void)
{
	pid_t child;
	if (posix_spawn(&child, words[0], NULL, NULL, words, environ))
		return 0;
	return wait_for(child) == 0;
}

static int become(void)
{
	execv(words[0], words);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} modes[] = {
	{"silent", child_is_silent},  {"silent_exit", child_is_silent_at_exit},
	{"child", child_allocates},   {"threads", children_beside_threads},
	{"locked", children_beside_lock}, {"closing", child_beside_close}, {"clone", cloned_child_allocates},
	{"raw_clone", raw_child_allocates},
	{"clone_shared", cloned_child_shares},
	{"vfork", vfork_child_exits}, {"vfork_exec", vfork_child_becomes},
	{"spawn", spawned_child},     {"exec", become},
};

int main(int argc, char **argv)
{
	CUdeviceptr given;
	if (argc < 2)
		return 2;
	words = argv + 2;
	cuInit(0);
	take(1000);
	given = take(2000);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (!strcmp(modes[i].name, argv[1]) && !modes[i].run())
			return 1;
	give(given);
	return 0;
}
