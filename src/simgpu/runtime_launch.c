/*
 * Code as the runtime sees it: registration by the compiler's start-up code, launches, and what is
 * asked about a kernel.  A kernel is known by its host address, which is handed to the driver and
 * followed by nobody; of its registration only is kept which image it is in (runtime_fatbin.c).  Owns the addresses of device variables that were asked for.
 */
#include "runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the compiler's start-up code calls; no header declares it for C ---- */

void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int thread_limit, uint3 *thread, uint3 *block, dim3 *block_dim,
			    dim3 *grid_dim, int *warp_size);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int is_extern,
		       size_t bytes, int is_constant, int is_global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
			      int is_extern, size_t bytes, int is_constant, int is_global);
char __cudaInitModule(void **handle);

void **__cudaRegisterFatBinary(void *image)
{
	/* Never freed: what a kernel is in is asked for until the process ends. */
	return (void **)fatbin_note(image);
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
}

void __cudaUnregisterFatBinary(void **handle)
{
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int thread_limit, uint3 *thread, uint3 *block, dim3 *block_dim,
			    dim3 *grid_dim, int *warp_size)
{
	fatbin_note_kernel((const struct fatbin *)handle, host);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int is_extern,
		       size_t bytes, int is_constant, int is_global)
{
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
			      int is_extern, size_t bytes, int is_constant, int is_global)
{
}

char __cudaInitModule(void **handle)
{
	return 1;
}

/* ---- kernel<<<...>>>() pushes its configuration and pops it in the stub ---- */

#define CONFIGURATION_DEPTH 8

struct configuration {
	dim3 grid, block;
	size_t shared_bytes;
	void *stream;
};
static __thread struct configuration configurations[CONFIGURATION_DEPTH];
static __thread unsigned configuration_count;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
				     struct CUstream_st *stream);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
				     struct CUstream_st *stream)
{
	struct configuration *at = &configurations[configuration_count++ % CONFIGURATION_DEPTH];

	*at = (struct configuration){grid, block, shared_bytes, stream};
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
	const struct configuration *at =
		&configurations[--configuration_count % CONFIGURATION_DEPTH];

	*grid = at->grid;
	*block = at->block;
	*shared_bytes = at->shared_bytes;
	memcpy(stream, &at->stream, sizeof(at->stream));
	return cudaSuccess;
}

/* ---- for which GPUs there is code ---- */

static int runtime_capability(void)
{
	int major = 0, minor = 0;

	cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, runtime_device());
	cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, runtime_device());
	return 10 * major + minor;
}

/* Of kernels whose registration was not understood. */
static int newest_known_target(int capability)
{
	static const int targets[] = {120, 100, 90, 86, 80, 75, 70, 60, 50};
	size_t i = 0;

	while (i + 1 < sizeof(targets) / sizeof(targets[0]) && targets[i] > capability)
		i++;
	return targets[i];
}

static bool has_code(const void *kernel)
{
	static __thread const void *last; /* most launches are of a few kernels in turn */
	struct fatbin_choice choice;

	if (kernel == last)
		return true;
	if (fatbin_choose(kernel, runtime_capability(), &choice) == FATBIN_NONE)
		return false;
	last = kernel;
	return true;
}

/* ---- launches ---- */

static cudaError_t launch(const void *kernel, dim3 grid, dim3 block, void **arguments,
			  size_t shared_bytes, cudaStream_t stream)
{
	if (!has_code(kernel))
		return runtime_result(cudaErrorNoKernelImageForDevice);
	RUNTIME_CALL(cuLaunchKernel, (CUfunction)(uintptr_t)kernel, grid.x, grid.y, grid.z, block.x,
		     block.y, block.z, (unsigned)shared_bytes, (CUstream)stream, arguments, NULL);
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
			     size_t shared_bytes, cudaStream_t stream)
{
	return launch(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
			       size_t shared_bytes, cudaStream_t stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
			       size_t shared_bytes, cudaStream_t stream)
{
	return launch(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	*kernel = (cudaKernel_t)(uintptr_t)host;
	return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel,
				void **arguments)
{
	return launch(kernel, config->gridDim, config->blockDim, arguments,
		      config->dynamicSmemBytes, config->stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
					size_t shared_bytes, cudaStream_t stream)
{
	if (!has_code(kernel))
		return runtime_result(cudaErrorNoKernelImageForDevice);
	RUNTIME_CALL(cuLaunchCooperativeKernel, (CUfunction)(uintptr_t)kernel, grid.x, grid.y,
		     grid.z, block.x, block.y, block.z, (unsigned)shared_bytes, (CUstream)stream,
		     arguments);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
	*function = (cudaFunction_t)(uintptr_t)symbol;
	return cudaSuccess;
}

/* ---- attributes and occupancy ---- */

/*
 * What the kernel was built for, not the device's own capability: CUB looks for an exact match in
 * the list of its targets.
 */
static cudaError_t choose_binary(const void *kernel, struct cudaFuncAttributes *attributes)
{
	struct fatbin_choice choice;
	int capability = runtime_capability();

	switch (fatbin_choose(kernel, capability, &choice)) {
	case FATBIN_NONE:
		return cudaErrorNoKernelImageForDevice;
	case FATBIN_UNKNOWN:
		choice.code = choice.ptx = newest_known_target(capability);
		break;
	case FATBIN_FOUND:
		break;
	}
	/* PTX is compiled for the device when it is loaded. */
	attributes->binaryVersion = choice.code > 0 ? choice.code : capability;
	attributes->ptxVersion = choice.code > 0 ? choice.code : choice.ptx;
	return cudaSuccess;
}

/* Until CUDA 12 the structure ended before what is about clusters. */
#if RUNTIME_VERSION < 12000
#define ATTRIBUTES_BYTES offsetof(struct cudaFuncAttributes, clusterDimMustBeSet)
#else
#define ATTRIBUTES_BYTES sizeof(struct cudaFuncAttributes)
#endif

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel)
{
	int shared_bytes = 0;
	cudaError_t error = cudaDeviceGetAttribute(
		&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, runtime_device());

	if (error != cudaSuccess)
		return error;
	memset(attributes, 0, ATTRIBUTES_BYTES);
	attributes->maxThreadsPerBlock = 1024;
	attributes->numRegs = 32;
	attributes->maxDynamicSharedSizeBytes = shared_bytes;
	return runtime_result(choose_binary(kernel, attributes));
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
	return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void *kernel, enum cudaFuncCache config)
{
	return cudaSuccess;
}

#if CUDART_VERSION >= 12080
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute,
					    int value, int device)
{
	return cudaSuccess;
}
#endif

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count, const void *kernel,
							  int block_threads, size_t shared_bytes)
{
	*count = 2;
	return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, const void *kernel,
								   int block_threads,
								   size_t shared_bytes,
								   unsigned flags)
{
	*count = 2;
	return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveClusters(int *count, const void *kernel,
					   const cudaLaunchConfig_t *config)
{
	*count = 8;
	return cudaSuccess;
}

/* ---- device variables ---- */

static pthread_mutex_t image_lock = PTHREAD_MUTEX_INITIALIZER;
static CUlibrary image; /* one library stands for everything linked into the program */

static CUresult find_variable(CUdeviceptr *address, const char *name)
{
	size_t bytes;
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&image_lock);
	if (image == NULL)
		result = runtime_driver.cuLibraryLoadData(&image, "", NULL, NULL, 0, NULL, NULL, 0);
	pthread_mutex_unlock(&image_lock);
	if (result != CUDA_SUCCESS)
		return result;
	return runtime_driver.cuLibraryGetGlobal(address, &bytes, image, name);
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
	char name[32];
	cudaError_t error = address != NULL ? runtime_enter() : cudaErrorInvalidValue;

	if (error != cudaSuccess)
		return runtime_result(error);
	snprintf(name, sizeof(name), "%p", symbol);
	return runtime_result(find_variable((CUdeviceptr *)address, name));
}

/* ---- libraries loaded at run time ---- */

#if CUDART_VERSION >= 12080
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
				enum cudaJitOption *jit_options, void **jit_values,
				unsigned jit_count, enum cudaLibraryOption *options, void **values,
				unsigned count)
{
	RUNTIME_CALL(cuLibraryLoadData, (CUlibrary *)library, code, NULL, NULL, 0, NULL, NULL, 0);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
	RUNTIME_CALL(cuLibraryGetKernel, (CUkernel *)kernel, (CUlibrary)library, name);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	RUNTIME_CALL(cuLibraryUnload, (CUlibrary)library);
}
#endif

/* ---- the profiler ---- */

cudaError_t cudaProfilerInitialize(const char *settings, const char *output, int mode);
cudaError_t cudaProfilerInitialize(const char *settings, const char *output, int mode)
{
	return cudaSuccess;
}

cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStart(void)
{
	return cudaSuccess;
}

cudaError_t cudaProfilerStop(void);
cudaError_t cudaProfilerStop(void)
{
	return cudaSuccess;
}
