/* What the programs strange and ends share: they do what is allowed and seldom done, on two devices of the simulated
 * GPU, whose own account of each change is compared with ours. A scene is a function; main picks one by its name. */
#ifndef TESTS_STRANGE_H
#define TESTS_STRANGE_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

struct scene {
	const char *name;
	void (*run)(void);
};

static CUcontext primary[2];

#define MUST(call) must(#call, (int)(call))

static inline void must(const char *call, int result)
{
	if (result) {
		fprintf(stderr, "%s: error %d\n", call, result);
		exit(1);
	}
}

static inline void work_on(int device)
{
	MUST(cuCtxSetCurrent(primary[device]));
}

static inline CUdeviceptr take(size_t bytes)
{
	CUdeviceptr pointer;
	MUST(cuMemAlloc(&pointer, bytes));
	return pointer;
}

static inline CUstream stream_on(int device)
{
	CUstream stream;
	work_on(device);
	MUST(cuStreamCreate(&stream, 0));
	work_on(0);
	return stream;
}

static inline void in_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;
	MUST(pthread_create(&thread, NULL, run, argument));
	MUST(pthread_join(thread, NULL));
}

static inline void start(void)
{
	MUST(cuInit(0));
	for (int i = 0; i < 2; i++)
		MUST(cuDevicePrimaryCtxRetain(&primary[i], i));
	work_on(0);
}

/* Without a name prints them all. */
static inline int run_scene(const struct scene *scenes, int count, char **arguments)
{
	for (; scenes->name; scenes++) {
		if (count < 2) {
			puts(scenes->name);
		} else if (!strcmp(scenes->name, arguments[1])) {
			scenes->run();
			return 0;
		}
	}
	return count > 1;
}

#endif
