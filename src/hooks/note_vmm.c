/* What calls about virtual memory mean: the handle is memory, counted once; a mapping shows it somewhere; a
 * reservation is address space only. References are counted by the model, as the driver counts them. */
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
