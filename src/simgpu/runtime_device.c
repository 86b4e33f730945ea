/*
 * Devices as the runtime shows them: properties put together from the driver's attributes, the
 * current device, peers and limits.  Owns no state.
 */
#include "runtime.h"

#include <string.h>

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t error = runtime_load();

	if (error == cudaSuccess)
		return runtime_result(runtime_driver.cuDeviceGetCount(count));
	*count = 0;
	return runtime_result(error);
}

cudaError_t cudaGetDevice(int *device)
{
	if (device == NULL)
		return runtime_result(cudaErrorInvalidValue);
	*device = runtime_device();
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	return runtime_result(runtime_use_device(device));
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
	CUcontext context;
	cudaError_t error = runtime_load();

	if (error != cudaSuccess)
		return runtime_result(error);
	return runtime_result(runtime_driver.cuDevicePrimaryCtxRetain(&context, device));
}

cudaError_t cudaDriverGetVersion(int *version)
{
	*version = 0; /* what a machine without driver answers */
	if (runtime_load() == cudaErrorInsufficientDriver)
		return cudaSuccess;
	return runtime_result(runtime_driver.cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = RUNTIME_VERSION;
	return cudaSuccess;
}

/* ---- attributes and properties ---- */

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	cudaError_t error = runtime_load();

	if (error != cudaSuccess)
		return runtime_result(error);
	return runtime_result(
		runtime_driver.cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device));
}

static int attribute_of(int device, CUdevice_attribute attribute)
{
	int value = 0;

	runtime_driver.cuDeviceGetAttribute(&value, attribute, device);
	return value;
}

#define ATTRIBUTE(name) attribute_of(device, CU_DEVICE_ATTRIBUTE_##name)

static void fill_launch_limits(struct cudaDeviceProp *properties, int device)
{
	properties->warpSize = ATTRIBUTE(WARP_SIZE);
	properties->maxThreadsPerBlock = ATTRIBUTE(MAX_THREADS_PER_BLOCK);
	properties->maxThreadsDim[0] = ATTRIBUTE(MAX_BLOCK_DIM_X);
	properties->maxThreadsDim[1] = ATTRIBUTE(MAX_BLOCK_DIM_Y);
	properties->maxThreadsDim[2] = ATTRIBUTE(MAX_BLOCK_DIM_Z);
	properties->maxGridSize[0] = ATTRIBUTE(MAX_GRID_DIM_X);
	properties->maxGridSize[1] = ATTRIBUTE(MAX_GRID_DIM_Y);
	properties->maxGridSize[2] = ATTRIBUTE(MAX_GRID_DIM_Z);
	properties->maxThreadsPerMultiProcessor = ATTRIBUTE(MAX_THREADS_PER_MULTIPROCESSOR);
	properties->maxBlocksPerMultiProcessor = ATTRIBUTE(MAX_BLOCKS_PER_MULTIPROCESSOR);
	properties->regsPerBlock = ATTRIBUTE(MAX_REGISTERS_PER_BLOCK);
	properties->regsPerMultiprocessor = ATTRIBUTE(MAX_REGISTERS_PER_MULTIPROCESSOR);
}

static void fill_memory(struct cudaDeviceProp *properties, int device)
{
	runtime_driver.cuDeviceTotalMem(&properties->totalGlobalMem, device);
	properties->totalConstMem = (size_t)ATTRIBUTE(TOTAL_CONSTANT_MEMORY);
	properties->sharedMemPerBlock = (size_t)ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK);
	properties->sharedMemPerBlockOptin = (size_t)ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	properties->sharedMemPerMultiprocessor =
		(size_t)ATTRIBUTE(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
	properties->reservedSharedMemPerBlock = (size_t)ATTRIBUTE(RESERVED_SHARED_MEMORY_PER_BLOCK);
	properties->l2CacheSize = ATTRIBUTE(L2_CACHE_SIZE);
	properties->persistingL2CacheMaxSize = ATTRIBUTE(MAX_PERSISTING_L2_CACHE_SIZE);
	properties->memoryBusWidth = ATTRIBUTE(GLOBAL_MEMORY_BUS_WIDTH);
	properties->memPitch = (size_t)ATTRIBUTE(MAX_PITCH);
	properties->textureAlignment = (size_t)ATTRIBUTE(TEXTURE_ALIGNMENT);
	properties->texturePitchAlignment = (size_t)ATTRIBUTE(TEXTURE_PITCH_ALIGNMENT);
	properties->memoryPoolsSupported = ATTRIBUTE(MEMORY_POOLS_SUPPORTED);
	properties->memoryPoolSupportedHandleTypes =
		(unsigned)ATTRIBUTE(MEMPOOL_SUPPORTED_HANDLE_TYPES);
}

static void fill_features(struct cudaDeviceProp *properties, int device)
{
	properties->unifiedAddressing = ATTRIBUTE(UNIFIED_ADDRESSING);
	properties->managedMemory = ATTRIBUTE(MANAGED_MEMORY);
	properties->concurrentManagedAccess = ATTRIBUTE(CONCURRENT_MANAGED_ACCESS);
	properties->concurrentKernels = ATTRIBUTE(CONCURRENT_KERNELS);
	properties->cooperativeLaunch = ATTRIBUTE(COOPERATIVE_LAUNCH);
	properties->asyncEngineCount = ATTRIBUTE(ASYNC_ENGINE_COUNT);
	properties->canMapHostMemory = ATTRIBUTE(CAN_MAP_HOST_MEMORY);
	properties->canUseHostPointerForRegisteredMem =
		ATTRIBUTE(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
	properties->hostRegisterSupported = ATTRIBUTE(HOST_REGISTER_SUPPORTED);
	properties->ECCEnabled = ATTRIBUTE(ECC_ENABLED);
	properties->streamPrioritiesSupported = ATTRIBUTE(STREAM_PRIORITIES_SUPPORTED);
	properties->globalL1CacheSupported = ATTRIBUTE(GLOBAL_L1_CACHE_SUPPORTED);
	properties->localL1CacheSupported = ATTRIBUTE(LOCAL_L1_CACHE_SUPPORTED);
	properties->computePreemptionSupported = ATTRIBUTE(COMPUTE_PREEMPTION_SUPPORTED);
	properties->clusterLaunch = ATTRIBUTE(CLUSTER_LAUNCH);
#if CUDART_VERSION < 13000
	properties->clockRate = ATTRIBUTE(CLOCK_RATE);
	properties->memoryClockRate = ATTRIBUTE(MEMORY_CLOCK_RATE);
	properties->deviceOverlap = ATTRIBUTE(GPU_OVERLAP);
	properties->singleToDoublePrecisionPerfRatio =
		ATTRIBUTE(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
#endif
}

static cudaError_t fill_properties(struct cudaDeviceProp *properties, int device)
{
	CUuuid uuid;
	cudaError_t error = properties != NULL ? runtime_load() : cudaErrorInvalidValue;

	if (error != cudaSuccess)
		return runtime_result(error);
	memset(properties, 0, sizeof(*properties));
	CUresult result =
		runtime_driver.cuDeviceGetName(properties->name, sizeof(properties->name), device);
	if (result == CUDA_SUCCESS)
		result = runtime_driver.cuDeviceGetUuid(&uuid, device);
	if (result != CUDA_SUCCESS)
		return runtime_result(result);
	memcpy(&properties->uuid, &uuid, sizeof(uuid));
	properties->major = ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR);
	properties->minor = ATTRIBUTE(COMPUTE_CAPABILITY_MINOR);
	properties->multiProcessorCount = ATTRIBUTE(MULTIPROCESSOR_COUNT);
	properties->pciBusID = ATTRIBUTE(PCI_BUS_ID);
	properties->pciDeviceID = ATTRIBUTE(PCI_DEVICE_ID);
	properties->pciDomainID = ATTRIBUTE(PCI_DOMAIN_ID);
	fill_launch_limits(properties, device);
	fill_memory(properties, device);
	fill_features(properties, device);
	return cudaSuccess;
}

#if RUNTIME_VERSION < 12000
/* Until CUDA 12 the structure ended where today's has hostRegisterSupported. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
	struct cudaDeviceProp all;
	cudaError_t error = fill_properties(properties != NULL ? &all : NULL, device);

	if (error == cudaSuccess)
		memcpy(properties, &all, offsetof(struct cudaDeviceProp, hostRegisterSupported));
	return error;
}
#endif

#if CUDART_VERSION >= 13000
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
#else
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *properties, int device)
#endif
{
	return fill_properties(properties, device);
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int room, int device)
{
	cudaError_t error = runtime_load();

	if (error != cudaSuccess)
		return runtime_result(error);
	return runtime_result(runtime_driver.cuDeviceGetPCIBusId(text, room, device));
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
	cudaError_t error = runtime_load();

	if (error != cudaSuccess)
		return runtime_result(error);
	return runtime_result(runtime_driver.cuDeviceGetByPCIBusId(device, text));
}

/* ---- peers ---- */

cudaError_t cudaDeviceCanAccessPeer(int *can_access, int device, int peer)
{
	cudaError_t error = runtime_load();

	if (error != cudaSuccess)
		return runtime_result(error);
	return runtime_result(runtime_driver.cuDeviceCanAccessPeer(can_access, device, peer));
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int device,
				      int peer)
{
	RUNTIME_CALL(cuDeviceGetP2PAttribute, value, (CUdevice_P2PAttribute)attribute, device,
		     peer);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	return runtime_result(runtime_enter());
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	return runtime_result(runtime_enter());
}

/* ---- the whole device ---- */

cudaError_t cudaDeviceSynchronize(void)
{
	RUNTIME_CALL(cuCtxSynchronize);
}

cudaError_t cudaDeviceReset(void)
{
	RUNTIME_CALL(cuDevicePrimaryCtxReset, runtime_device());
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
	cudaError_t error = runtime_load();

	if (error != cudaSuccess)
		return runtime_result(error);
	return runtime_result(runtime_driver.cuDevicePrimaryCtxSetFlags(runtime_device(), flags));
}

cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
	cudaError_t error = runtime_load();
	int is_active;

	if (error != cudaSuccess)
		return runtime_result(error);
	return runtime_result(
		runtime_driver.cuDevicePrimaryCtxGetState(runtime_device(), flags, &is_active));
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	RUNTIME_CALL(cuCtxGetLimit, value, (CUlimit)limit);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	RUNTIME_CALL(cuCtxSetLimit, (CUlimit)limit, value);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	RUNTIME_CALL(cuCtxGetStreamPriorityRange, least, greatest);
}
