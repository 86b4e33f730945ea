/* What calls about virtual memory mean: the handle is memory, counted once; a mapping shows it somewhere; a
 * reservation is address space only. References are counted by the model, as the driver counts them. What a part
 * of a sparse array shows is recorded and not followed: its handle counts until it is released. */
#include "hooks/rows.h"
#include "recorder/record.h"

void note_cuMemCreate(struct call *call, CUmemGenericAllocationHandle *handle, size_t bytes,
		      const CUmemAllocationProp *properties, unsigned long long flags)
{
	(void)flags;
	bool on_device = properties && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	uint8_t device = on_device ? (uint8_t)properties->location.id : MEMTRACE_DEVICE_HOST;
	call_note_alloc(call, MEMTRACE_SPACE_VMM, device, call->status ? 0 : *handle, bytes, 0);
}

void note_cuMemRelease(struct call *call, CUmemGenericAllocationHandle handle)
{
	call_note_free(call, MEMTRACE_FREE, MEMTRACE_SPACE_VMM, handle, 0, 0);
}

void note_cuMemRetainAllocationHandle(struct call *call, CUmemGenericAllocationHandle *handle, void *address)
{
	(void)address;
	struct record record = { .what = MEMTRACE_RETAIN,
				 .space = MEMTRACE_SPACE_VMM,
				 .device = MEMTRACE_DEVICE_UNKNOWN,
				 .address = call->status ? 0 : *handle };
	if (!call->status)
		call_note(call, &record);
}

void note_cuMemMap(struct call *call, CUdeviceptr pointer, size_t bytes, size_t offset,
		   CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	(void)offset;
	(void)flags;
	struct record record = { .what = MEMTRACE_MAP,
				 .space = MEMTRACE_SPACE_VMM,
				 .device = MEMTRACE_DEVICE_UNKNOWN,
				 .address = pointer,
				 .bytes = bytes,
				 .extra = handle };
	if (!call->status)
		call_note(call, &record);
}

void note_cuMemUnmap(struct call *call, CUdeviceptr pointer, size_t bytes)
{
	call_note_free(call, MEMTRACE_UNMAP, MEMTRACE_SPACE_VMM, pointer, bytes, 0);
}

void note_cuMemAddressReserve(struct call *call, CUdeviceptr *pointer, size_t bytes, size_t alignment,
			      CUdeviceptr wish, unsigned long long flags)
{
	(void)alignment;
	(void)wish;
	(void)flags;
	struct record record = { .what = MEMTRACE_RESERVE,
				 .space = MEMTRACE_SPACE_VMM,
				 .device = MEMTRACE_DEVICE_UNKNOWN,
				 .address = call->status ? 0 : *pointer,
				 .bytes = bytes };
	if (!call->status)
		call_note(call, &record);
}

void note_cuMemAddressFree(struct call *call, CUdeviceptr pointer, size_t bytes)
{
	call_note_free(call, MEMTRACE_RELEASE, MEMTRACE_SPACE_VMM, pointer, bytes, 0);
}

/* ---------- parts of sparse arrays ---------- */

static void note_array_part(struct call *call, const CUarrayMapInfo *part)
{
	bool is_map = part->memOperationType == CU_MEM_OPERATION_TYPE_MAP;
	bool is_tail = part->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
	bool is_mipmap = part->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	const void *array = is_mipmap ? (const void *)part->resource.mipmap : (const void *)part->resource.array;
	struct record record = { .what = is_map ? MEMTRACE_MAP : MEMTRACE_UNMAP,
				 .space = MEMTRACE_SPACE_ARRAY,
				 .device = MEMTRACE_DEVICE_UNKNOWN,
				 .address = (uint64_t)(uintptr_t)array,
				 .bytes = is_tail ? part->subresource.miptail.size : 0,
				 .extra = is_map ? part->memHandle.memHandle : 0 };
	call_note(call, &record);
}

void note_cuMemMapArrayAsync(struct call *call, CUarrayMapInfo *parts, unsigned int count, CUstream stream)
{
	(void)stream;
	for (unsigned i = 0; !call->status && i < count; i++)
		note_array_part(call, &parts[i]);
}

/* ---------- multicast: an object that shows memory of several devices and has none ---------- */

void note_cuMulticastCreate(struct call *call, CUmemGenericAllocationHandle *handle,
			    const CUmulticastObjectProp *properties)
{
	call_note_external(call, MEMTRACE_SPACE_VMM, call->status ? 0 : *handle, properties ? properties->size : 0);
}

void note_cuMulticastBindMem(struct call *call, CUmemGenericAllocationHandle handle, size_t offset,
			     CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes,
			     unsigned long long flags)
{
	(void)offset;
	(void)memory_offset;
	(void)flags;
	call_tell(call, MEMTRACE_BIND, MEMTRACE_SPACE_VMM, handle, bytes, memory);
}

void note_cuMulticastBindAddr(struct call *call, CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr memory,
			      size_t bytes, unsigned long long flags)
{
	(void)offset;
	(void)flags;
	call_tell(call, MEMTRACE_BIND, MEMTRACE_SPACE_VMM, handle, bytes, memory);
}

void note_cuMulticastUnbind(struct call *call, CUmemGenericAllocationHandle handle, CUdevice device, size_t offset,
			    size_t bytes)
{
	struct record record = { .what = MEMTRACE_UNBIND,
				 .space = MEMTRACE_SPACE_VMM,
				 .device = (uint8_t)device,
				 .address = handle,
				 .bytes = bytes };
	(void)offset;
	if (!call->status)
		call_note(call, &record);
}
