/* A process that allocates 1000, 2000 and 3000 bytes, frees the 2000, and leaves in one of many
 * ways. The status is 3 where a way has one.
 *
 *   leave return|exit|_exit|_Exit|quick_exit|abort|segv|term|kill|atexit|thread|outlive|abort_late|two
 *   leave signal NUMBER
 *   leave chroot FOLDER
 *
 * outlive: main's thread ends before the 3000 are allocated, by another one. signal: that one's default
 * action. chroot: before the end FOLDER becomes the root. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "take.h"

static CUdeviceptr kept[2];
static const char *word;

static void exit_quickly(void)
{
	quick_exit(3);
}

static void exit_by_exit(void)
{
	exit(3);
}

static void exit_at_once(void)
{
	_exit(3);
}

static void exit_by_standard(void)
{
	_Exit(3);
}

static void *exit_of_thread(void *nothing)
{
	(void)nothing;
	exit(3);
}

static void exit_in_thread(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, exit_of_thread, NULL);
	for (;;)
		pause();
}

static void touch_nothing(void)
{
	*(volatile int *)8 = 1;
}

static void terminate(void)
{
	raise(SIGTERM);
}

static void be_killed(void)
{
	raise(SIGKILL);
}

static void give_first(void)
{
	give(kept[0]);
}

static void exit_with_handler(void)
{
	atexit(give_first);
	exit(3);
}


static void be_signalled(void)
{
	signal(atoi(word), SIG_DFL);
	raise(atoi(word));
}

static void change_root(void)
{
	if (chroot(word) || chdir("/"))
		exit(9);
	exit(3);
}

static void *outlive(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	take(3000);
	puts("done");
	exit(3);
}

static void outlive_main(void)
{
	static pthread_t main_thread, thread;
	main_thread = pthread_self();
	pthread_create(&thread, NULL, outlive, &main_thread);
	pthread_exit(NULL);
}

static int aborts_late;
static int is_ending;

static void *end_beside_main(void *nothing)
{
	(void)nothing;
	while (!__atomic_load_n(&is_ending, __ATOMIC_ACQUIRE))
		;
	usleep((useconds_t)atoi(word));
	_exit(3);
}

static void exit_in_two_threads(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, end_beside_main, NULL);
	__atomic_store_n(&is_ending, 1, __ATOMIC_RELEASE);
	exit(3);
}

static void exit_and_abort(void)
{
	aborts_late = 1;
	exit(3);
}

/* Only with "atexit" and "abort_late": what a C++ program does in static destructors. */
__attribute__((destructor)) static void give_second(void)
{
	if (aborts_late)
		abort();
	if (kept[1])
		give(kept[1]);
}

static const struct {
	const char *name;
	void (*leave)(void);
} ways[] = {
	{"exit", exit_by_exit},     {"_exit", exit_at_once},      {"_Exit", exit_by_standard},
	{"abort", abort},           {"quick_exit", exit_quickly}, {"segv", touch_nothing},
	{"term", terminate},        {"kill", be_killed},          {"atexit", exit_with_handler},
	{"thread", exit_in_thread}, {"signal", be_signalled},     {"chroot", change_root},
	{"abort_late", exit_and_abort}, {"two", exit_in_two_threads},
};

int main(int argc, char **argv)
{
	CUdeviceptr first, second;
	const char *way = argc > 1 ? argv[1] : "return";
	cuInit(0);
	first = take(1000);
	second = take(2000);
	give(second);
	word = argc > 2 ? argv[2] : "";
	if (!strcmp(way, "outlive"))
		outlive_main();
	second = take(3000);
	puts("done");
	fflush(stdout);
	if (!strcmp(way, "atexit")) {
		kept[0] = first;
		kept[1] = second;
	}
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		if (!strcmp(ways[i].name, way))
			ways[i].leave();
	return 0;
}
