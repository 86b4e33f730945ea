/*
 * How the runtime finds the driver, and what each thread has current: device, context, last error.
 * The way is that of the real library, because a tracer watches exactly it: dlopen libcuda.so.1,
 * one dlsym for cuGetProcAddress_v2, everything else by name and version through that entry.
 */
#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

struct runtime_driver runtime_driver;
struct runtime_thread_driver runtime_thread_driver;

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static cudaError_t load_error;
static __typeof__(cuGetProcAddress_v2) *find_entry;

static __thread int current_device;
static __thread cudaError_t last_error;

static CUresult absent_entry(void)
{
	return CUDA_ERROR_NOT_FOUND;
}

static void *entry_or_absent(const char *symbol, int version, cuuint64_t flags)
{
	void *function = NULL;
	CUdriverProcAddressQueryResult status;

	if (version == 0)
		version = CUDART_VERSION;
	if (find_entry(symbol, &function, version, flags, &status) == CUDA_SUCCESS &&
	    function != NULL)
		return function;
	CUresult (*absent)(void) = absent_entry;
	memcpy(&function, &absent, sizeof(function));
	return function;
}

static void resolve_entries(void)
{
#define RESOLVE(entry, version)                                                              \
	{                                                                                    \
		void *found = entry_or_absent(#entry, version, CU_GET_PROC_ADDRESS_DEFAULT); \
		memcpy(&runtime_driver.entry, &found, sizeof(found));                        \
	}
	RUNTIME_DRIVER_ENTRIES(RESOLVE)
#undef RESOLVE
#define RESOLVE(entry)                                                                             \
	{                                                                                          \
		void *found =                                                                      \
			entry_or_absent(#entry, 0, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM); \
		memcpy(&runtime_thread_driver.entry, &found, sizeof(found));                       \
	}
	RUNTIME_THREAD_STREAM_ENTRIES(RESOLVE)
#undef RESOLVE
}

static void load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	void *function = library != NULL ? dlsym(library, "cuGetProcAddress_v2") : NULL;
	CUdriverProcAddressQueryResult status;

	if (function == NULL) {
		load_error = cudaErrorInsufficientDriver;
		return;
	}
	memcpy(&find_entry, &function, sizeof(find_entry));
	/* The real runtime begins with a nameless request too: nobody may stumble over it. */
	find_entry("", &function, 0, CU_GET_PROC_ADDRESS_DEFAULT, &status);
	resolve_entries();
	load_error = (cudaError_t)runtime_driver.cuInit(0);
}

cudaError_t runtime_load(void)
{
	pthread_once(&load_once, load);
	return load_error;
}

CUresult runtime_find_entry(const char *symbol, void **function, int version,
			    unsigned long long flags, CUdriverProcAddressQueryResult *status)
{
	cudaError_t error = runtime_load();

	if (find_entry == NULL)
		return (CUresult)error;
	return find_entry(symbol, function, version, flags, status);
}

/* ---- the calling thread ---- */

int runtime_device(void)
{
	return current_device;
}

/* Make the primary context of `device` current.  It is retained for good, as the real one is. */
static cudaError_t bind_device(int device)
{
	CUcontext context;
	CUresult result = runtime_driver.cuDevicePrimaryCtxRetain(&context, device);

	if (result == CUDA_SUCCESS)
		result = runtime_driver.cuCtxSetCurrent(context);
	return (cudaError_t)result;
}

cudaError_t runtime_enter(void)
{
	CUcontext context = NULL;
	cudaError_t error = runtime_load();

	if (error != cudaSuccess)
		return error;
	CUresult result = runtime_driver.cuCtxGetCurrent(&context);
	if (result != CUDA_SUCCESS)
		return (cudaError_t)result;
	return context != NULL ? cudaSuccess : bind_device(current_device);
}

cudaError_t runtime_use_device(int device)
{
	int count;
	cudaError_t error = runtime_load();

	if (error != cudaSuccess)
		return error;
	error = (cudaError_t)runtime_driver.cuDeviceGetCount(&count);
	if (error == cudaSuccess && (device < 0 || device >= count))
		error = cudaErrorInvalidDevice;
	if (error != cudaSuccess)
		return error;
	current_device = device;
	return bind_device(device);
}

/* ---- the last error ---- */

cudaError_t runtime_result(int error)
{
	if (error != cudaSuccess)
		last_error = (cudaError_t)error;
	return (cudaError_t)error;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last_error;

	last_error = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}
