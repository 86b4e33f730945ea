/* Allocations under another teller than the hooks.
 *
 *   cupti plain        one allocation by each way that CUPTI knows, the first of them given back
 *   cupti async        two stream-ordered ones, one given back
 *   cupti reuse        one address again and again, by several threads
 *   cupti early_exit   as plain, then _exit
 *   cupti fork         as plain, in a child that is forked before CUDA begins
 *   cupti endless      until it is killed
 *
 * CUPTI_BUSY in the environment: another tool has subscribed before. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "take.h"

#define MIB        ((size_t)1 << 20)
#define MUST(call) must(#call, call)

static CUstream stream;
static CUcontext context;

static void must(const char *call, CUresult result)
{
	if (!result)
		return;
	fprintf(stderr, "%s: error %d\n", call, (int)result);
	exit(1);
}

static void subscribe(void)
{
	static char callback, *subscriber;
	void *library = dlopen("libcupti.so.13", RTLD_NOW);
	int (*function)(void *, void *, void *) = library ? dlsym(library, "cuptiSubscribe") : NULL;
	if (!function || function(&subscriber, &callback, NULL)) {
		fprintf(stderr, "cannot subscribe\n");
		exit(9);
	}
}

static void begin(void)
{
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	MUST(cuStreamCreate(&stream, 0));
}

static void async(void)
{
	CUdeviceptr first, second;
	MUST(cuMemAllocAsync(&first, 3 * MIB, stream));
	MUST(cuMemAllocAsync(&second, 4 * MIB, stream));
	MUST(cuMemFreeAsync(first, stream));
}

static void plain(void)
{
	CUDA_ARRAY3D_DESCRIPTOR flat = {
		.Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	CUdeviceptr managed;
	CUarray array;
	void *pinned;
	give(take(2 * MIB));
	take(2 * MIB);
	MUST(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
	MUST(cuMemHostAlloc(&pinned, 5 * MIB, 0));
	MUST(cuMemFreeHost(pinned));
	MUST(cuMemHostAlloc(&pinned, 6 * MIB, 0));
	MUST(cuArray3DCreate(&array, &flat));
	async();
}

static void *take_and_give(void *unused)
{
	(void)unused;
	MUST(cuCtxSetCurrent(context));
	for (int i = 0; i < 500; i++)
		give(take(2 * MIB));
	return NULL;
}

static void reuse(void)
{
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, take_and_give, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	take(2 * MIB);
}

static void run_in_child(void)
{
	int status;
	pid_t child = fork();
	if (!child) {
		begin();
		plain();
		exit(0);
	}
	waitpid(child, &status, 0);
	exit(status);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "plain";
	if (getenv("CUPTI_BUSY"))
		subscribe();
	if (!strcmp(what, "fork"))
		run_in_child();
	begin();
	if (!strcmp(what, "async"))
		async();
	else if (!strcmp(what, "reuse"))
		reuse();
	else if (!strcmp(what, "endless"))
		for (;;)
			give(take(MIB));
	else
		plain();
	if (!strcmp(what, "early_exit"))
		_exit(3);
	return 0;
}
