/* What calls mean that hand memory to other processes and APIs, or take it from them. What comes in is marked
 * external: whoever obtained it counts it. How much an imported pointer or handle shows, only the exporter knows. */
#include "hooks/rows.h"

static uint64_t bits_of(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

/* ---------- out ---------- */

static void note_export(struct call *call, enum memtrace_space space, uint64_t address)
{
	call_tell(call, MEMTRACE_EXPORT, space, address, 0, 0);
}

void note_cuIpcGetMemHandle(struct call *call, CUipcMemHandle *shared, CUdeviceptr pointer)
{
	(void)shared;
	note_export(call, MEMTRACE_SPACE_DEVICE, pointer);
}

void note_cudaIpcGetMemHandle(struct call *call, cudaIpcMemHandle_t *shared, void *pointer)
{
	(void)shared;
	note_export(call, MEMTRACE_SPACE_DEVICE, bits_of(pointer));
}

void note_cuMemExportToShareableHandle(struct call *call, void *shared, CUmemGenericAllocationHandle handle,
				       CUmemAllocationHandleType type, unsigned long long flags)
{
	(void)shared;
	(void)type;
	(void)flags;
	note_export(call, MEMTRACE_SPACE_VMM, handle);
}

void note_cuMemPoolExportToShareableHandle(struct call *call, void *shared, CUmemoryPool pool,
					   CUmemAllocationHandleType type, unsigned long long flags)
{
	(void)shared;
	(void)type;
	(void)flags;
	note_export(call, MEMTRACE_SPACE_STREAM, bits_of(pool));
}

void note_cudaMemPoolExportToShareableHandle(struct call *call, void *shared, cudaMemPool_t pool,
					     enum cudaMemAllocationHandleType type, unsigned int flags)
{
	(void)shared;
	(void)type;
	(void)flags;
	note_export(call, MEMTRACE_SPACE_STREAM, bits_of(pool));
}

void note_cuMemPoolExportPointer(struct call *call, CUmemPoolPtrExportData *data, CUdeviceptr pointer)
{
	(void)data;
	note_export(call, MEMTRACE_SPACE_DEVICE, pointer);
}

void note_cudaMemPoolExportPointer(struct call *call, struct cudaMemPoolPtrExportData *data, void *pointer)
{
	(void)data;
	note_export(call, MEMTRACE_SPACE_DEVICE, bits_of(pointer));
}

/* ---------- in ---------- */

void note_cuIpcOpenMemHandle(struct call *call, CUdeviceptr *pointer, CUipcMemHandle shared, unsigned int flags)
{
	(void)shared;
	(void)flags;
	call_note_external(call, MEMTRACE_SPACE_DEVICE, call->status ? 0 : *pointer, 0);
}

void note_cudaIpcOpenMemHandle(struct call *call, void **pointer, cudaIpcMemHandle_t shared, unsigned int flags)
{
	(void)shared;
	(void)flags;
	call_note_external(call, MEMTRACE_SPACE_DEVICE, call->status ? 0 : bits_of(*pointer), 0);
}

void note_cuIpcCloseMemHandle(struct call *call, CUdeviceptr pointer)
{
	call_note_close(call, pointer);
}

void note_cudaIpcCloseMemHandle(struct call *call, void *pointer)
{
	note_cuIpcCloseMemHandle(call, bits_of(pointer));
}

void note_cuMemImportFromShareableHandle(struct call *call, CUmemGenericAllocationHandle *handle, void *shared,
					 CUmemAllocationHandleType type)
{
	(void)shared;
	(void)type;
	call_note_external(call, MEMTRACE_SPACE_VMM, call->status ? 0 : *handle, 0);
}

void note_cuMemPoolImportPointer(struct call *call, CUdeviceptr *pointer, CUmemoryPool pool,
				 CUmemPoolPtrExportData *data)
{
	(void)pool;
	(void)data;
	call_note_external(call, MEMTRACE_SPACE_DEVICE, call->status ? 0 : *pointer, 0);
}

void note_cudaMemPoolImportPointer(struct call *call, void **pointer, cudaMemPool_t pool,
				   struct cudaMemPoolPtrExportData *data)
{
	(void)pool;
	(void)data;
	call_note_external(call, MEMTRACE_SPACE_DEVICE, call->status ? 0 : bits_of(*pointer), 0);
}

/* ---------- objects of graphics APIs ---------- */

void note_cuImportExternalMemory(struct call *call, CUexternalMemory *memory,
				 const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *descriptor)
{
	call_note_external(call, MEMTRACE_SPACE_EXTERNAL, call->status ? 0 : bits_of(*memory),
			   descriptor ? descriptor->size : 0);
}

void note_cudaImportExternalMemory(struct call *call, cudaExternalMemory_t *memory,
				   const struct cudaExternalMemoryHandleDesc *descriptor)
{
	call_note_external(call, MEMTRACE_SPACE_EXTERNAL, call->status ? 0 : bits_of(*memory),
			   descriptor ? descriptor->size : 0);
}

void note_cuDestroyExternalMemory(struct call *call, CUexternalMemory memory)
{
	call_note_free(call, MEMTRACE_FREE, MEMTRACE_SPACE_EXTERNAL, bits_of(memory), 0, 0);
}

void note_cudaDestroyExternalMemory(struct call *call, cudaExternalMemory_t memory)
{
	call_note_free(call, MEMTRACE_FREE, MEMTRACE_SPACE_EXTERNAL, bits_of(memory), 0, 0);
}

void note_cuExternalMemoryGetMappedBuffer(struct call *call, CUdeviceptr *pointer, CUexternalMemory memory,
					  const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *descriptor)
{
	(void)memory;
	call_note_external(call, MEMTRACE_SPACE_DEVICE, call->status ? 0 : *pointer, descriptor ? descriptor->size : 0);
}

void note_cudaExternalMemoryGetMappedBuffer(struct call *call, void **pointer, cudaExternalMemory_t memory,
					    const struct cudaExternalMemoryBufferDesc *descriptor)
{
	(void)memory;
	call_note_external(call, MEMTRACE_SPACE_DEVICE, call->status ? 0 : bits_of(*pointer),
			   descriptor ? descriptor->size : 0);
}

void note_cuExternalMemoryGetMappedMipmappedArray(struct call *call, CUmipmappedArray *array, CUexternalMemory memory,
						  const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *descriptor)
{
	(void)memory;
	(void)descriptor;
	call_note_external(call, MEMTRACE_SPACE_ARRAY, call->status ? 0 : bits_of(*array), 0);
}

void note_cudaExternalMemoryGetMappedMipmappedArray(struct call *call, cudaMipmappedArray_t *array,
						    cudaExternalMemory_t memory,
						    const struct cudaExternalMemoryMipmappedArrayDesc *descriptor)
{
	(void)memory;
	(void)descriptor;
	call_note_external(call, MEMTRACE_SPACE_ARRAY, call->status ? 0 : bits_of(*array), 0);
}
