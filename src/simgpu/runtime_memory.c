/*
 * Memory entries of the runtime.  Owns nothing: each is a driver entry, with the runtime's own
 * rules for a size of zero and for NULL.
 */
#include "runtime.h"

#include <string.h>

/* An allocation of nothing succeeds and gives NULL. */
#define RETURN_NULL_FOR_NOTHING(address, bytes)                       \
	do {                                                          \
		if ((address) == NULL)                                \
			return runtime_result(cudaErrorInvalidValue); \
		if ((bytes) == 0) {                                   \
			*(address) = NULL;                            \
			return runtime_result(runtime_enter());       \
		}                                                     \
	} while (0)

/* ---- linear ---- */

cudaError_t cudaMalloc(void **address, size_t bytes)
{
	RETURN_NULL_FOR_NOTHING(address, bytes);
	RUNTIME_CALL(cuMemAlloc, (CUdeviceptr *)address, bytes);
}

cudaError_t cudaFree(void *address)
{
	if (address == NULL)
		return runtime_result(runtime_enter()); /* the usual way to make the context */
	RUNTIME_CALL(cuMemFree, (CUdeviceptr)address);
}

cudaError_t cudaMallocPitch(void **address, size_t *pitch, size_t width_bytes, size_t height)
{
	RUNTIME_CALL(cuMemAllocPitch, (CUdeviceptr *)address, pitch, width_bytes, height, 4);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
	void *address;
	size_t pitch;

	if (pitched == NULL)
		return runtime_result(cudaErrorInvalidValue);
	cudaError_t error =
		cudaMallocPitch(&address, &pitch, extent.width, extent.height * extent.depth);
	if (error == cudaSuccess)
		*pitched = (struct cudaPitchedPtr){address, pitch, extent.width, extent.height};
	return error;
}

cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned flags)
{
	if (bytes == 0)
		return runtime_result(cudaErrorInvalidValue);
	RUNTIME_CALL(cuMemAllocManaged, (CUdeviceptr *)address, bytes, flags);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	RUNTIME_CALL(cuMemGetInfo, free_bytes, total_bytes);
}

/* ---- the host's ---- */

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags)
{
	RETURN_NULL_FOR_NOTHING(address, bytes);
	RUNTIME_CALL(cuMemHostAlloc, address, bytes, flags);
}

cudaError_t cudaMallocHost(void **address, size_t bytes)
{
	return cudaHostAlloc(address, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *address)
{
	if (address == NULL)
		return runtime_result(runtime_enter());
	RUNTIME_CALL(cuMemFreeHost, address);
}

cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned flags)
{
	RUNTIME_CALL(cuMemHostRegister, address, bytes, flags);
}

cudaError_t cudaHostUnregister(void *address)
{
	RUNTIME_CALL(cuMemHostUnregister, address);
}

cudaError_t cudaHostGetDevicePointer(void **address, void *host_address, unsigned flags)
{
	RUNTIME_CALL(cuMemHostGetDevicePointer, (CUdeviceptr *)address, host_address, flags);
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *host_address)
{
	RUNTIME_CALL(cuMemHostGetFlags, flags, host_address);
}

/* ---- what an address is ---- */

static unsigned pointer_number(const void *address, CUpointer_attribute attribute)
{
	unsigned value = 0;

	runtime_driver.cuPointerGetAttribute(&value, attribute, (CUdeviceptr)address);
	return value;
}

static void describe_known(struct cudaPointerAttributes *attributes, const void *address,
			   unsigned memory_type)
{
	bool is_managed = pointer_number(address, CU_POINTER_ATTRIBUTE_IS_MANAGED) != 0;
	bool is_host = memory_type == CU_MEMORYTYPE_HOST;

	attributes->device = (int)pointer_number(address, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
	attributes->devicePointer = (void *)(uintptr_t)address;
	if (is_managed || is_host)
		attributes->hostPointer = (void *)(uintptr_t)address;
	attributes->type = is_host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
	if (is_managed)
		attributes->type = cudaMemoryTypeManaged;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
	unsigned memory_type = 0;
	cudaError_t error = attributes != NULL ? runtime_enter() : cudaErrorInvalidValue;

	if (error != cudaSuccess)
		return runtime_result(error);
	memset(attributes, 0, sizeof(*attributes));
	CUresult result = runtime_driver.cuPointerGetAttribute(
		&memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)address);
	if (result == CUDA_SUCCESS) {
		describe_known(attributes, address, memory_type);
		return cudaSuccess;
	}
	attributes->type = cudaMemoryTypeUnregistered;
	attributes->device = cudaInvalidDeviceId;
	attributes->hostPointer = (void *)(uintptr_t)address;
	return cudaSuccess;
}
