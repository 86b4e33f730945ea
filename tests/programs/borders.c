/* Programs at the borders of what a guest may meet; each does one thing and tells what it saw.
 *   borders stdout      with descriptor 1 closed: allocates, prints, and tells by its status whether that failed
 *   borders stdin       with descriptor 0 closed: allocates, reads descriptor 0
 *   borders lowest      closes descriptor 0, allocates, opens a file: which number has it?
 *   borders stack       the first allocation of the process, on a thread with the smallest stack there may be
 *   borders end         allocates, then a handler on a signal stack of 8 KiB with nothing below ends the process
 *   borders cancel      a thread with a pending cancellation makes the first allocation; then 5 more by another
 *   borders jump        a timer's handler jumps out of allocations, the first one included */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static int pair(void)
{
	CUdeviceptr address;
	return cuMemAlloc(&address, 4096) || cuMemFree(address);
}

static int with_stdout_closed(void)
{
	pair();
	printf("the program's own words");
	return fflush(stdout) && errno == EBADF ? 3 : 0;
}

static int with_stdin_closed(void)
{
	char buffer[64];
	pair();
	return read(0, buffer, sizeof buffer) < 0 ? 3 : 0;
}

static int lowest(void)
{
	close(0);
	pair();
	return open("/dev/null", O_RDONLY) == 0 ? 3 : 0;
}

static void *allocate(void *count)
{
	for (int i = 0; i < *(int *)count; i++)
		pair();
	return NULL;
}

static int on_small_stack(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int count = 1;
	pthread_attr_init(&attributes);
	if (pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN) ||
	    pthread_create(&thread, &attributes, allocate, &count) || pthread_join(thread, NULL))
		return 1;
	return 3;
}

static void on_crash(int number)
{
	(void)number;
	_exit(3);
}

static int with_small_end(void)
{
	enum { BELOW = 1 << 16, STACK = 8192 };
	char *pages = mmap(NULL, BELOW + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = pages + BELOW, .ss_size = STACK};
	struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
	pair();
	if (pages == MAP_FAILED || mprotect(pages, BELOW, PROT_NONE) || sigaltstack(&stack, NULL) ||
	    sigaction(SIGUSR1, &action, NULL))
		return 1;
	raise(SIGUSR1);
	return 1;
}

static void *allocate_when_cancelled(void *count)
{
	pthread_cancel(pthread_self());
	return allocate(count);
}

static int with_cancellation(void)
{
	pthread_t thread;
	int count = 1;
	if (pthread_create(&thread, NULL, allocate_when_cancelled, &count) || pthread_join(thread, NULL))
		return 1;
	count = 5;
	allocate(&count);
	return 3;
}

static sigjmp_buf start;
static volatile int jumps, pairs;
static bool (*driver_is_locked)(void);

/* Not out of the driver's lock, which would stay locked for ever. */
static void on_alarm(int number)
{
	(void)number;
	if (!driver_is_locked())
		siglongjmp(start, ++jumps);
}

static int with_jumps(void)
{
	struct itimerval each = {.it_interval = {.tv_usec = 300}, .it_value = {.tv_usec = 300}};
	driver_is_locked = (bool (*)(void))dlsym(RTLD_DEFAULT, "fastcuda_is_locked");
	if (!driver_is_locked)
		return 2;
	signal(SIGALRM, on_alarm);
	sigsetjmp(start, 1);
	if (jumps == 0)
		setitimer(ITIMER_REAL, &each, NULL);
	for (; jumps < 100 || pairs < 1000; pairs++)
		pair();
	memset(&each, 0, sizeof each);
	setitimer(ITIMER_REAL, &each, NULL);
	return 3;
}

static const struct {
	const char *name;
	int (*run)(void);
} cases[] = {
	{"stdout", with_stdout_closed}, {"stdin", with_stdin_closed}, {"lowest", lowest},
	{"stack", on_small_stack},      {"cancel", with_cancellation}, {"jump", with_jumps},
	{"end", with_small_end},
};

int main(int argc, char **argv)
{
	cuInit(0);
	for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
		if (!strcmp(cases[i].name, argv[1]))
			return cases[i].run();
	return 2;
}
