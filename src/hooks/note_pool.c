/* What calls about stream-ordered memory and its pools mean. How a pool grows is the driver's secret: nothing
 * here guesses it; the figures that the program itself reads from a pool are recorded instead. */
#include "hooks/capture.h"
#include "hooks/graph.h"
#include "hooks/rows.h"
#include "hooks/stream.h"
#include "recorder/record.h"

static uint64_t bits_of(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

/* Captured, it is a node of a graph and no memory before that is launched. False: it is memory now. */
static bool is_captured(struct call *call, uint8_t device, uint64_t address, size_t bytes, const void *stream)
{
	uint64_t graph = call->status ? 0 : capture_of(stream);
	if (graph)
		graph_note_alloc(call, graph, device, address, bytes);
	return graph;
}

static void note_async(struct call *call, uint8_t current, uint64_t address, size_t bytes, const void *stream)
{
	uint8_t device = stream_device(stream, current);
	if (!is_captured(call, device, address, bytes, stream))
		call_note_alloc(call, MEMTRACE_SPACE_STREAM, device, address, bytes, bits_of(stream));
}

void note_cuMemAllocAsync(struct call *call, CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
	note_async(call, call_device(), call->status ? 0 : *pointer, bytes, stream);
}

void note_cudaMallocAsync(struct call *call, void **pointer, size_t bytes, cudaStream_t stream)
{
	note_async(call, call_runtime_device(), call->status ? 0 : bits_of(*pointer), bytes, stream);
}

static void note_from_pool(struct call *call, uint8_t device, const void *pointer, size_t bytes, const void *pool,
			   const void *stream)
{
	struct record record = { .what = MEMTRACE_ALLOC,
				 .space = MEMTRACE_SPACE_STREAM,
				 .device = device,
				 .flags = MEMTRACE_ASYNC_POOL,
				 .address = bits_of(pointer),
				 .bytes = bytes,
				 .extra = bits_of(pool),
				 .stream = bits_of(stream) };
	if (is_captured(call, stream_device(stream, device), bits_of(pointer), bytes, stream))
		return;
	if (call->status || pointer)
		call_note(call, &record);
}

void note_cuMemAllocFromPoolAsync(struct call *call, CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
				  CUstream stream)
{
	note_from_pool(call, call_device(), call->status ? NULL : (void *)*pointer, bytes, pool, stream);
}

void note_cudaMallocFromPoolAsync(struct call *call, void **pointer, size_t bytes, cudaMemPool_t pool,
				  cudaStream_t stream)
{
	note_from_pool(call, call_runtime_device(), call->status ? NULL : *pointer, bytes, pool, stream);
}

/* Captured, it is a node that frees at each launch, and there is one when the call has succeeded. */
void note_cuMemFreeAsync(struct call *call, CUdeviceptr pointer, CUstream stream)
{
	uint64_t graph = pointer ? capture_of(stream) : 0;
	if (graph && call->phase == CALL_AFTER)
		graph_note_free(call, graph, pointer);
	else if (!graph && (call->phase == CALL_BEFORE || call->status))
		call_note_free(call, MEMTRACE_FREE, MEMTRACE_SPACE_STREAM, pointer, 0, bits_of(stream));
}

void note_cudaFreeAsync(struct call *call, void *pointer, cudaStream_t stream)
{
	note_cuMemFreeAsync(call, bits_of(pointer), stream);
}

static void note_pool(struct call *call, enum memtrace_what what, uint8_t device, const void *pool, uint64_t bytes,
		      uint64_t extra)
{
	struct record record = { .what = what,
				 .space = MEMTRACE_SPACE_STREAM,
				 .device = device,
				 .address = bits_of(pool),
				 .bytes = bytes,
				 .extra = extra };
	if (!call->status)
		call_note(call, &record);
}

static uint8_t device_of_location(CUmemLocationType type, int id)
{
	return type == CU_MEM_LOCATION_TYPE_DEVICE ? (uint8_t)id : MEMTRACE_DEVICE_HOST;
}

void note_cuMemPoolCreate(struct call *call, CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	if (call->status)
		return;
	uint8_t device = device_of_location(properties->location.type, properties->location.id);
	note_pool(call, MEMTRACE_POOL_CREATE, device, *pool, 0, 0);
}

void note_cuMemPoolDestroy(struct call *call, CUmemoryPool pool)
{
	call_note_free(call, MEMTRACE_POOL_DESTROY, MEMTRACE_SPACE_STREAM, bits_of(pool), 0, 0);
}

void note_cuMemPoolTrimTo(struct call *call, CUmemoryPool pool, size_t keep)
{
	note_pool(call, MEMTRACE_POOL_TRIM, MEMTRACE_DEVICE_UNKNOWN, pool, keep, 0);
}

/* The first attributes are ints (reuse policies); from the release threshold on they are 64-bit sizes. */
static uint64_t attribute_value(int attribute, const void *value)
{
	return attribute >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? *(const uint64_t *)value :
								(uint64_t) * (const int *)value;
}

void note_cuMemPoolSetAttribute(struct call *call, CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	if (!call->status)
		note_pool(call, MEMTRACE_POOL_SET, MEMTRACE_DEVICE_UNKNOWN, pool,
			  attribute_value((int)attribute, value), attribute);
}

void note_cuMemPoolGetAttribute(struct call *call, CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	if (!call->status)
		note_pool(call, MEMTRACE_POOL_READ, MEMTRACE_DEVICE_UNKNOWN, pool,
			  attribute_value((int)attribute, value), attribute);
}

void note_cuDeviceGetDefaultMemPool(struct call *call, CUmemoryPool *pool, CUdevice device)
{
	if (!call->status)
		note_pool(call, MEMTRACE_POOL_CREATE, (uint8_t)device, *pool, 0, 1);
}

void note_cuDeviceGetMemPool(struct call *call, CUmemoryPool *pool, CUdevice device)
{
	if (!call->status)
		note_pool(call, MEMTRACE_POOL_CREATE, (uint8_t)device, *pool, 0, 2);
}

static void note_pool_of_location(struct call *call, const CUmemoryPool *pool, const CUmemLocation *location,
				  uint64_t extra)
{
	if (!call->status)
		note_pool(call, MEMTRACE_POOL_CREATE, device_of_location(location->type, location->id), *pool, 0, extra);
}

void note_cuMemGetDefaultMemPool(struct call *call, CUmemoryPool *pool, CUmemLocation *location,
				 CUmemAllocationType type)
{
	(void)type;
	note_pool_of_location(call, pool, location, 1);
}

void note_cuMemGetMemPool(struct call *call, CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	(void)type;
	note_pool_of_location(call, pool, location, 2);
}

void note_cuDeviceSetMemPool(struct call *call, CUdevice device, CUmemoryPool pool)
{
	note_pool(call, MEMTRACE_POOL_CREATE, (uint8_t)device, pool, 0, 2);
}

void note_cuMemSetMemPool(struct call *call, CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	(void)type;
	note_pool_of_location(call, &pool, location, 2);
}

/* Of another process: nothing is allocated from it here, only pointers into it come in. */
void note_cuMemPoolImportFromShareableHandle(struct call *call, CUmemoryPool *pool, void *shared,
					     CUmemAllocationHandleType type, unsigned long long flags)
{
	(void)shared;
	(void)type;
	(void)flags;
	if (!call->status)
		note_pool(call, MEMTRACE_POOL_CREATE, MEMTRACE_DEVICE_UNKNOWN, *pool, 0, 3);
}

void note_cuDeviceGraphMemTrim(struct call *call, CUdevice device)
{
	note_pool(call, MEMTRACE_POOL_TRIM, (uint8_t)device, NULL, 0, 0);
}

void note_cudaMemPoolCreate(struct call *call, cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
	if (call->status)
		return;
	uint8_t device = device_of_location((CUmemLocationType)properties->location.type, properties->location.id);
	note_pool(call, MEMTRACE_POOL_CREATE, device, *pool, 0, 0);
}

void note_cudaMemPoolDestroy(struct call *call, cudaMemPool_t pool)
{
	note_cuMemPoolDestroy(call, pool);
}

void note_cudaMemPoolTrimTo(struct call *call, cudaMemPool_t pool, size_t keep)
{
	note_cuMemPoolTrimTo(call, pool, keep);
}

void note_cudaMemPoolSetAttribute(struct call *call, cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
	note_cuMemPoolSetAttribute(call, pool, (CUmemPool_attribute)attribute, value);
}

void note_cudaMemPoolGetAttribute(struct call *call, cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
	note_cuMemPoolGetAttribute(call, pool, (CUmemPool_attribute)attribute, value);
}

void note_cudaDeviceGetDefaultMemPool(struct call *call, cudaMemPool_t *pool, int device)
{
	note_cuDeviceGetDefaultMemPool(call, pool, device);
}

void note_cudaDeviceGetMemPool(struct call *call, cudaMemPool_t *pool, int device)
{
	note_cuDeviceGetMemPool(call, pool, device);
}

void note_cudaDeviceSetMemPool(struct call *call, int device, cudaMemPool_t pool)
{
	note_cuDeviceSetMemPool(call, device, pool);
}

static CUmemLocation driver_location(const struct cudaMemLocation *location)
{
	return (CUmemLocation){ .type = (CUmemLocationType)location->type, .id = location->id };
}

void note_cudaMemGetDefaultMemPool(struct call *call, cudaMemPool_t *pool, struct cudaMemLocation *location,
				   enum cudaMemAllocationType type)
{
	CUmemLocation same = driver_location(location);
	note_cuMemGetDefaultMemPool(call, pool, &same, (CUmemAllocationType)type);
}

void note_cudaMemGetMemPool(struct call *call, cudaMemPool_t *pool, struct cudaMemLocation *location,
			    enum cudaMemAllocationType type)
{
	CUmemLocation same = driver_location(location);
	note_cuMemGetMemPool(call, pool, &same, (CUmemAllocationType)type);
}

void note_cudaMemSetMemPool(struct call *call, struct cudaMemLocation *location, enum cudaMemAllocationType type,
			    cudaMemPool_t pool)
{
	CUmemLocation same = driver_location(location);
	note_cuMemSetMemPool(call, &same, (CUmemAllocationType)type, pool);
}

void note_cudaMemPoolImportFromShareableHandle(struct call *call, cudaMemPool_t *pool, void *shared,
					       enum cudaMemAllocationHandleType type, unsigned int flags)
{
	note_cuMemPoolImportFromShareableHandle(call, pool, shared, (CUmemAllocationHandleType)type, flags);
}

void note_cudaDeviceGraphMemTrim(struct call *call, int device)
{
	note_cuDeviceGraphMemTrim(call, device);
}
