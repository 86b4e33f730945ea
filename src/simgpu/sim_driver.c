/*
 * Looking the driver's entries up by name, by way of cuGetProcAddress. Owns the handle of the
 * driver library, which is never closed. Must never initialise the driver: a caller has a context.
 */
#define _GNU_SOURCE
#include "sim_driver.h"

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>

#define DRIVER_API_VERSION 12000

static __typeof__(cuGetProcAddress) *look_up;

static void load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (library)
		look_up = dlsym(library, "cuGetProcAddress_v2");
}

void *sim_driver_entry(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	CUdriverProcAddressQueryResult found;
	void *entry = NULL;

	pthread_once(&once, load);
	if (!look_up)
		return NULL;
	if (look_up(name, &entry, DRIVER_API_VERSION, 0, &found) != CUDA_SUCCESS)
		return NULL;
	return entry;
}

void sim_driver_zero_words(void *address, size_t count, void *stream)
{
	__typeof__(cuMemsetD32Async) *zero;

	if (!address || count == 0)
		return;
	zero = sim_driver_entry("cuMemsetD32Async");
	if (zero)
		zero((CUdeviceptr)address, 0, count, stream);
}
