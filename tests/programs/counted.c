/* Threads that allocate and free until they are killed; each counts its completed calls in a shared
 * page, so that the truth outlives the process.
 *
 *   counted FILE THREADS [exit|waits]
 *
 * FILE (made here) holds one struct a thread. "ready" is printed once all threads run. With "exit" it
 * ends by itself after a moment, and while it does its threads go on; with "waits" so it does once there is
 * a file "go" in the working folder. */
#include <cuda.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct counted {
	atomic_ullong tid;
	atomic_ullong allocations; /* that have returned */
	atomic_ullong frees;
	atomic_ullong unused;
};

static struct counted *counters;
static atomic_uint running;

static void *work(void *argument)
{
	struct counted *own = &counters[(uintptr_t)argument];
	CUdeviceptr addresses[16];
	atomic_store(&own->tid, (unsigned long long)syscall(SYS_gettid));
	atomic_fetch_add(&running, 1);
	for (unsigned round = 0;; round++) {
		unsigned count = 1 + round % 16;
		for (unsigned i = 0; i < count; i++) {
			if (cuMemAlloc(&addresses[i], 4096 * (i + 1)))
				exit(1);
			atomic_fetch_add(&own->allocations, 1);
		}
		for (unsigned i = 0; i < count; i++) {
			if (cuMemFree(addresses[i]))
				exit(1);
			atomic_fetch_add(&own->frees, 1);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 4;
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
	if (fd < 0 || ftruncate(fd, 4096))
		return 2;
	counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cuInit(0);
	for (uintptr_t i = 0; i < count; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, work, (void *)i);
	}
	while (atomic_load(&running) < count)
		usleep(100);
	puts("ready");
	fflush(stdout);
	while (argc > 3 && !strcmp(argv[3], "waits") && access("go", F_OK))
		usleep(100);
	if (argc > 3)
		usleep(20000); /* no order hangs on it: they are to be at it */
	else
		pause();
	return 0;
}
