/* Allocates from every kind of native frame: deep recursion with frames of all sizes, alloca, aligned stacks,
 * callbacks of libc, tail calls, calls through the PLT, signal handlers, libraries opened and closed meanwhile,
 * other threads. The driver beneath (witness) writes down what glibc's backtrace() says at each call.
 *   native_stacks PLUGIN...   PLUGIN: path of a libplugin.so; they are opened and closed in turn */
#include <alloca.h>
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

static NOINLINE void allocate(void)
{
	CUdeviceptr address;
	if (cuMemAlloc(&address, 4096))
		exit(1);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

static void allocate_as_callback(void *unused)
{
	(void)unused;
	allocate();
	__asm__ volatile("" ::: "memory");
}

static NOINLINE int recurse(int depth, char *outer)
{
	char *room = alloca(32 + (size_t)depth * 24);
	memset(room, depth, 32 + (size_t)depth * 24);
	if (depth == 0)
		allocate();
	int below = depth ? recurse(depth - 1, room) : 0;
	return below + room[3] + (outer ? outer[0] : 0);
}

static NOINLINE void large_frame(void)
{
	volatile char room[100000];
	room[0] = room[99999] = 1;
	allocate();
	room[1] = room[0];
}

static NOINLINE void aligned_frame(void)
{
	_Alignas(128) volatile char room[256];
	room[0] = 1;
	allocate();
	room[1] = room[0];
}

static NOINLINE long many_registers(long a, long b, long c, long d, long e, long f, long g)
{
	long p = a * b, q = c * d, r = e * f, s = g * a, t = b * c;
	allocate();
	return p + q * r - s + t * a + b * c + d * e + f * g;
}

static NOINLINE void tail_calling(void)
{
	allocate_as_callback(NULL); /* may be a jump: then this frame is not there for anyone */
}

static int compare(const void *a, const void *b)
{
	allocate();
	return *(const int *)a - *(const int *)b;
}

static void on_signal(int number)
{
	(void)number;
	allocate();
}

static void everything(void)
{
	int numbers[] = { 3, 1, 2, 5, 4 };
	for (int depth = 0; depth < 40; depth += 3)
		recurse(depth, NULL);
	large_frame();
	aligned_frame();
	many_registers(1, 2, 3, 4, 5, 6, 7);
	tail_calling();
	qsort(numbers, 5, sizeof *numbers, compare);
	raise(SIGUSR1);
}

static void *thread_main(void *unused)
{
	for (int round = 0; round < 20; round++)
		everything();
	return unused;
}

static void open_and_close(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*run)(void (*)(void *), void *) =
		library ? (void (*)(void (*)(void *), void *))dlsym(library, "plugin_run") : NULL;
	void (*at_end)(void (*)(void *)) =
		library ? (void (*)(void (*)(void *)))dlsym(library, "plugin_at_end") : NULL;
	if (!run || !at_end) {
		fprintf(stderr, "native_stacks: %s\n", dlerror());
		exit(1);
	}
	run(allocate_as_callback, NULL);
	at_end(allocate_as_callback);
	dlclose(library);
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	signal(SIGUSR1, on_signal);
	cuInit(0);
	everything();
	for (int round = 0; argc > 1 && round < 50; round++)
		open_and_close(argv[1 + round % (argc - 1)]);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, thread_main, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	puts("done");
	return 0;
}
