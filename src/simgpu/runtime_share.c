/*
 * Memory of other processes and APIs, in the runtime: the driver's entries under other names. Their
 * structures have the same layout.  Owns nothing.
 */
#include "runtime.h"

#include <string.h>

/* ---- between processes ---- */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *address)
{
	RUNTIME_CALL(cuIpcGetMemHandle, (CUipcMemHandle *)(void *)handle, (CUdeviceptr)address);
}

cudaError_t cudaIpcOpenMemHandle(void **address, cudaIpcMemHandle_t handle, unsigned flags)
{
	CUipcMemHandle driver_handle;

	memcpy(&driver_handle, &handle, sizeof(driver_handle));
	RUNTIME_CALL(cuIpcOpenMemHandle, (CUdeviceptr *)address, driver_handle, flags);
}

cudaError_t cudaIpcCloseMemHandle(void *address)
{
	RUNTIME_CALL(cuIpcCloseMemHandle, (CUdeviceptr)address);
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	RUNTIME_CALL(cuIpcGetEventHandle, (CUipcEventHandle *)(void *)handle, (CUevent)event);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	CUipcEventHandle driver_handle;

	memcpy(&driver_handle, &handle, sizeof(driver_handle));
	RUNTIME_CALL(cuIpcOpenEventHandle, (CUevent *)event, driver_handle);
}

cudaError_t cudaMemPoolExportToShareableHandle(void *shared, cudaMemPool_t pool,
					       enum cudaMemAllocationHandleType type,
					       unsigned flags)
{
	RUNTIME_CALL(cuMemPoolExportToShareableHandle, shared, (CUmemoryPool)pool,
		     (CUmemAllocationHandleType)type, flags);
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *shared,
						 enum cudaMemAllocationHandleType type,
						 unsigned flags)
{
	RUNTIME_CALL(cuMemPoolImportFromShareableHandle, (CUmemoryPool *)pool, shared,
		     (CUmemAllocationHandleType)type, flags);
}

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data, void *address)
{
	RUNTIME_CALL(cuMemPoolExportPointer, (CUmemPoolPtrExportData *)(void *)data,
		     (CUdeviceptr)address);
}

cudaError_t cudaMemPoolImportPointer(void **address, cudaMemPool_t pool,
				     struct cudaMemPoolPtrExportData *data)
{
	RUNTIME_CALL(cuMemPoolImportPointer, (CUdeviceptr *)address, (CUmemoryPool)pool,
		     (CUmemPoolPtrExportData *)(void *)data);
}

/* ---- other APIs ---- */

cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *memory,
				     const struct cudaExternalMemoryHandleDesc *descriptor)
{
	RUNTIME_CALL(cuImportExternalMemory, (CUexternalMemory *)memory,
		     (const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *)(const void *)descriptor);
}

cudaError_t cudaExternalMemoryGetMappedBuffer(void **address, cudaExternalMemory_t memory,
					      const struct cudaExternalMemoryBufferDesc *descriptor)
{
	RUNTIME_CALL(cuExternalMemoryGetMappedBuffer, (CUdeviceptr *)address,
		     (CUexternalMemory)memory,
		     (const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *)(const void *)descriptor);
}

cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t memory)
{
	RUNTIME_CALL(cuDestroyExternalMemory, (CUexternalMemory)memory);
}
