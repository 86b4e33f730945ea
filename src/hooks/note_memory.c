/* What calls about linear, managed and page-locked memory mean. Sizes are those that were asked for; of pitched
 * memory what the pitch that CUDA chose makes of them. Output arguments are read only after success. */
#include "hooks/rows.h"
#include "recorder/record.h"

static uint64_t address_of(void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

void note_cuMemAlloc(struct call *call, CUdeviceptr *pointer, size_t bytes)
{
	call_note_alloc(call, MEMTRACE_SPACE_DEVICE, call_device(), call->status ? 0 : *pointer, bytes, 0);
}

void note_cuMemAllocPitch(struct call *call, CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
			  unsigned int element)
{
	(void)element;
	size_t row_bytes = call->status ? width : *pitch;
	call_note_alloc(call, MEMTRACE_SPACE_DEVICE, call_device(), call->status ? 0 : *pointer, row_bytes * height, 0);
}

void note_cuMemAllocManaged(struct call *call, CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
	(void)flags;
	call_note_alloc(call, MEMTRACE_SPACE_MANAGED, call_device(), call->status ? 0 : *pointer, bytes, 0);
}

void note_cuMemFree(struct call *call, CUdeviceptr pointer)
{
	call_note_free(call, MEMTRACE_FREE, MEMTRACE_SPACE_DEVICE, pointer, 0, 0);
}

void note_cudaMalloc(struct call *call, void **pointer, size_t bytes)
{
	uint64_t address = call->status ? 0 : address_of(*pointer);
	call_note_alloc(call, MEMTRACE_SPACE_DEVICE, call_runtime_device(), address, bytes, 0);
}

void note_cudaMallocPitch(struct call *call, void **pointer, size_t *pitch, size_t width, size_t height)
{
	uint64_t address = call->status ? 0 : address_of(*pointer);
	size_t row_bytes = call->status ? width : *pitch;
	call_note_alloc(call, MEMTRACE_SPACE_DEVICE, call_runtime_device(), address, row_bytes * height, 0);
}

void note_cudaMalloc3D(struct call *call, struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
	uint64_t address = call->status ? 0 : address_of(pitched->ptr);
	size_t row_bytes = call->status ? extent.width : pitched->pitch;
	call_note_alloc(call, MEMTRACE_SPACE_DEVICE, call_runtime_device(), address,
			row_bytes * extent.height * extent.depth, 0);
}

void note_cudaMallocManaged(struct call *call, void **pointer, size_t bytes, unsigned int flags)
{
	(void)flags;
	uint64_t address = call->status ? 0 : address_of(*pointer);
	call_note_alloc(call, MEMTRACE_SPACE_MANAGED, call_runtime_device(), address, bytes, 0);
}

void note_cudaFree(struct call *call, void *pointer)
{
	call_note_free(call, MEMTRACE_FREE, MEMTRACE_SPACE_DEVICE, address_of(pointer), 0, 0);
}

static void note_pinned(struct call *call, enum memtrace_space space, void *pointer, size_t bytes, unsigned int flags)
{
	struct record record = { .what = MEMTRACE_ALLOC,
				 .space = space,
				 .device = MEMTRACE_DEVICE_HOST,
				 .address = address_of(pointer),
				 .bytes = bytes,
				 .extra = flags };
	if (call->status || pointer)
		call_note(call, &record);
}

void note_cuMemHostAlloc(struct call *call, void **pointer, size_t bytes, unsigned int flags)
{
	note_pinned(call, MEMTRACE_SPACE_PINNED, call->status ? NULL : *pointer, bytes, flags);
}

void note_cuMemAllocHost(struct call *call, void **pointer, size_t bytes)
{
	note_cuMemHostAlloc(call, pointer, bytes, 0);
}

void note_cuMemFreeHost(struct call *call, void *pointer)
{
	call_note_free(call, MEMTRACE_FREE, MEMTRACE_SPACE_PINNED, address_of(pointer), 0, 0);
}

void note_cuMemHostRegister(struct call *call, void *pointer, size_t bytes, unsigned int flags)
{
	note_pinned(call, MEMTRACE_SPACE_REGISTERED, pointer, bytes, flags);
}

void note_cuMemHostUnregister(struct call *call, void *pointer)
{
	call_note_free(call, MEMTRACE_FREE, MEMTRACE_SPACE_REGISTERED, address_of(pointer), 0, 0);
}

void note_cudaHostAlloc(struct call *call, void **pointer, size_t bytes, unsigned int flags)
{
	note_cuMemHostAlloc(call, pointer, bytes, flags);
}

void note_cudaMallocHost(struct call *call, void **pointer, size_t bytes)
{
	note_cuMemAllocHost(call, pointer, bytes);
}

void note_cudaFreeHost(struct call *call, void *pointer)
{
	note_cuMemFreeHost(call, pointer);
}

void note_cudaHostRegister(struct call *call, void *pointer, size_t bytes, unsigned int flags)
{
	note_cuMemHostRegister(call, pointer, bytes, flags);
}

void note_cudaHostUnregister(struct call *call, void *pointer)
{
	note_cuMemHostUnregister(call, pointer);
}
