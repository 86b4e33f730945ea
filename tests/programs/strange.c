/* Memory that is obtained one way and given back another: see strange.h.
 *
 *   strange          prints the scenes
 *   strange SCENE    plays one */
#include "strange.h"

#include <unistd.h>

/* ---------- driver and runtime mixed ---------- */

static void linear_mixed(void)
{
	void *by_runtime;
	CUdeviceptr by_driver = take(3000);
	size_t pitch;
	MUST(cudaMalloc(&by_runtime, 2 * MIB));
	MUST(cudaFree((void *)by_driver));
	MUST(cuMemFree((CUdeviceptr)by_runtime));
	MUST(cudaMallocPitch(&by_runtime, &pitch, 1000, 20));
	MUST(cuMemFreeAsync((CUdeviceptr)by_runtime, NULL));
	MUST(cudaMallocAsync(&by_runtime, MIB, NULL));
	MUST(cuMemFree((CUdeviceptr)by_runtime));
	MUST(cuMemAllocAsync(&by_driver, MIB, NULL));
	MUST(cudaFree((void *)by_driver));
	MUST(cudaMallocManaged(&by_runtime, MIB, cudaMemAttachGlobal));
	MUST(cuMemFree((CUdeviceptr)by_runtime));
	take(77);
}

static void arrays_mixed(void)
{
	struct cudaChannelFormatDesc channels = {16, 16, 0, 0, cudaChannelFormatKindSigned};
	struct cudaExtent cube = {33, 17, 5};
	CUDA_ARRAY_DESCRIPTOR flat = {100, 30, CU_AD_FORMAT_HALF, 4};
	CUDA_ARRAY3D_DESCRIPTOR deep = {40, 30, 20, CU_AD_FORMAT_FLOAT, 2, 0};
	CUarray by_driver;
	cudaArray_t by_runtime;
	CUmipmappedArray levels;
	cudaMipmappedArray_t others;
	MUST(cuArrayCreate(&by_driver, &flat));
	MUST(cudaFreeArray((cudaArray_t)by_driver));
	MUST(cudaMalloc3DArray(&by_runtime, &channels, cube, cudaArrayLayered));
	MUST(cuArrayDestroy((CUarray)by_runtime));
	MUST(cuMipmappedArrayCreate(&levels, &deep, 4));
	MUST(cudaFreeMipmappedArray((cudaMipmappedArray_t)levels));
	MUST(cudaMallocMipmappedArray(&others, &channels, cube, 3, 0));
	MUST(cuMipmappedArrayDestroy((CUmipmappedArray)others));
	MUST(cudaMallocArray(&by_runtime, &channels, 64, 64, 0));
}

static void *on_device_1(void *nothing)
{
	void *pointer;
	MUST(cudaSetDevice(1));
	MUST(cudaMalloc(&pointer, 3 * MIB));
	MUST(cudaFree(nothing));
	MUST(cuMemFree(take(5 * MIB)));
	return pointer;
}

static void *on_no_device(void *of_another)
{
	void *pointer;
	MUST(cudaMalloc(&pointer, 7 * MIB)); /* 0 */
	MUST(cudaFree(of_another));
	return NULL;
}

static void threads_on_devices(void)
{
	in_thread(on_device_1, (void *)take(MIB));
	in_thread(on_no_device, (void *)take(MIB));
	work_on(1);
	take(MIB);
	in_thread(on_no_device, NULL); /* another thread's context is not its own */
}

/* The runtime works in the driver's current context; without one on the device that was set last. */
static void runtime_in_the_driver_s_context(void)
{
	void *pointer;
	CUcontext popped;
	MUST(cuCtxPushCurrent(primary[1]));
	MUST(cudaMalloc(&pointer, MIB));
	MUST(cuCtxPopCurrent(&popped));
	MUST(cudaMalloc(&pointer, 2 * MIB));
	MUST(cudaSetDevice(1));
	MUST(cudaMalloc(&pointer, 3 * MIB));
	MUST(cuCtxSetCurrent(NULL));
	MUST(cudaMalloc(&pointer, 5 * MIB));
	MUST(cudaFree(pointer));
	MUST(cuCtxSetCurrent(NULL));
	MUST(cudaSetDevice(0));
	MUST(cuCtxPopCurrent(&popped));
	MUST(cudaMalloc(&pointer, 7 * MIB));
}

/* ---------- stream-ordered memory ---------- */

/* Memory comes from the pool of the stream's device, whichever the thread works on. */
static void streams_of_another_device(void)
{
	CUstream streams[2] = {stream_on(0), stream_on(1)};
	CUdeviceptr pointer;
	void *by_runtime;
	cudaStream_t made;
	MUST(cuMemAllocAsync(&pointer, 3 * MIB, streams[1]));
	MUST(cuMemFreeAsync(pointer, streams[0]));
	MUST(cudaMallocAsync(&by_runtime, 2 * MIB, streams[1]));
	work_on(1);
	MUST(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
	MUST(cuMemAllocAsync(&pointer, MIB, streams[0]));
	MUST(cuMemAllocAsync(&pointer, 5 * MIB, NULL));
	work_on(0);
	MUST(cudaMallocAsync(&by_runtime, 7 * MIB, made));
	MUST(cudaFreeAsync(by_runtime, streams[0]));
	MUST(cuStreamDestroy(streams[1]));
	MUST(cuMemAllocAsync(&pointer, 9 * MIB, stream_on(0))); /* may have the handle of the one before */
}

static CUmemoryPool pool_on(int device)
{
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	CUmemoryPool pool;
	MUST(cuMemPoolCreate(&pool, &properties));
	return pool;
}

static void pools_with_live_memory(void)
{
	CUmemoryPool pools[2] = {pool_on(0), pool_on(1)};
	CUdeviceptr pointers[4];
	for (int i = 0; i < 4; i++)
		MUST(cuMemAllocFromPoolAsync(&pointers[i], (size_t)(i + 1) * MIB, pools[i % 2], NULL));
	MUST(cuMemPoolDestroy(pools[0]));
	MUST(cuMemPoolDestroy(pools[1]));
	for (int i = 0; i < 3; i++)
		MUST(cuMemFreeAsync(pointers[i], NULL));
	pools[0] = pool_on(1); /* which may have the handle of the one before */
	MUST(cuMemAllocFromPoolAsync(&pointers[0], 6 * MIB, pools[0], NULL));
}

static void the_current_pool(void)
{
	CUmemoryPool own = pool_on(0), before;
	CUdeviceptr pointer;
	MUST(cuDeviceGetMemPool(&before, 0));
	MUST(cuDeviceSetMemPool(0, own));
	MUST(cuMemAllocAsync(&pointer, MIB, NULL));
	MUST(cuMemPoolDestroy(own));
	MUST(cuMemAllocAsync(&pointer, 2 * MIB, NULL));
	MUST(cuMemPoolTrimTo(before, 0));
	MUST(cuMemFreeAsync(pointer, NULL));
	MUST(cuCtxSynchronize());
	MUST(cuMemPoolTrimTo(before, 0));
}

static void a_pool_without_room(void)
{
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
				     .maxSize = 64 * MIB};
	CUmemoryPool pool;
	CUdeviceptr pointers[5];
	int count = 0;
	MUST(cuMemPoolCreate(&pool, &properties));
	while (count < 5 && !cuMemAllocFromPoolAsync(&pointers[count], 30 * MIB, pool, NULL))
		count++;
	MUST(count != 2);
	MUST(cuMemFreeAsync(pointers[0], NULL));
}

/* ---------- physical memory ---------- */

static CUmemGenericAllocationHandle create(int device, size_t bytes)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
					  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	CUmemGenericAllocationHandle handle;
	MUST(cuMemCreate(&handle, bytes, &properties, 0));
	return handle;
}

static CUdeviceptr reserve(size_t bytes)
{
	CUdeviceptr space;
	MUST(cuMemAddressReserve(&space, bytes, 0, 0, 0));
	return space;
}

static CUmemGenericAllocationHandle import(CUmemGenericAllocationHandle handle)
{
	CUmemGenericAllocationHandle imported;
	int descriptor;
	MUST(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	MUST(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)descriptor,
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	MUST(close(descriptor));
	return imported;
}

static void handles_that_come_back(void)
{
	CUdeviceptr space = reserve(16 * MIB);
	CUmemGenericAllocationHandle first = create(1, 4 * MIB), again;
	MUST(cuMemMap(space, 4 * MIB, 0, first, 0));
	MUST(cuMemRelease(first)); /* held by the mapping, and got back from it */
	MUST(cuMemRetainAllocationHandle(&again, (void *)(space + 3 * MIB)));
	MUST(cuMemUnmap(space, 4 * MIB));
	MUST(cuMemMap(space + 8 * MIB, 2 * MIB, 2 * MIB, again, 0));
	MUST(cuMemRelease(again));
	MUST(cuMemUnmap(space + 8 * MIB, 2 * MIB));
	first = create(0, 6 * MIB);
	again = import(import(first));
	MUST(cuMemRelease(first));
	MUST(cuMemRelease(again));
	MUST(cuMemMap(space, 6 * MIB, 0, first, 0));
	MUST(cuMemRelease(first));
	MUST(!cuMemRelease(first)); /* once too often */
	MUST(cuMemUnmap(space, 6 * MIB));
	MUST(cuMemAddressFree(space, 16 * MIB));
}

static void ranges_in_parts(void)
{
	CUdeviceptr space = reserve(16 * MIB);
	CUmemGenericAllocationHandle handles[3] = {create(0, 4 * MIB), create(1, 4 * MIB), create(0, 2 * MIB)};
	MUST(cuMemMap(space, 4 * MIB, 0, handles[0], 0));
	MUST(cuMemMap(space + 4 * MIB, 2 * MIB, 0, handles[1], 0));
	MUST(cuMemMap(space + 6 * MIB, 2 * MIB, 2 * MIB, handles[1], 0));
	MUST(cuMemMap(space + 8 * MIB, 2 * MIB, 0, handles[2], 0));
	for (int i = 0; i < 3; i++)
		MUST(cuMemRelease(handles[i]));
	MUST(!cuMemUnmap(space, 2 * MIB));          /* half of a mapping */
	MUST(!cuMemUnmap(space + 2 * MIB, 4 * MIB)); /* half of one and a whole one */
	MUST(!cuMemAddressFree(space, 16 * MIB));
	MUST(cuMemUnmap(space + 4 * MIB, 2 * MIB)); /* the other half is still mapped */
	MUST(cuMemUnmap(space + 6 * MIB, 4 * MIB)); /* two at once, of two devices */
	MUST(cuMemMap(space + 4 * MIB, 2 * MIB, 0, create(1, 2 * MIB), 0));
	MUST(cuMemUnmap(space, 6 * MIB));
	MUST(cuMemAddressFree(space, 16 * MIB));
}

static void memory_shown_to_many(void)
{
	CUmulticastObjectProp properties = {.numDevices = 2, .size = 8 * MIB};
	CUmemGenericAllocationHandle object, memory[2] = {create(0, 8 * MIB), create(1, 8 * MIB)};
	CUdeviceptr space = reserve(8 * MIB);
	MUST(cuMulticastCreate(&object, &properties));
	for (int i = 0; i < 2; i++) {
		MUST(cuMulticastAddDevice(object, i));
		MUST(cuMulticastBindMem(object, 0, memory[i], 0, 8 * MIB, 0));
	}
	MUST(cuMemMap(space, 8 * MIB, 0, object, 0));
	MUST(cuMulticastUnbind(object, 0, 0, 8 * MIB));
	MUST(cuMemRelease(memory[0]));
	MUST(cuMemUnmap(space, 8 * MIB));
	MUST(cuMemRelease(object));
}

static void memory_of_the_host(void)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
					  .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr space = reserve(2 * MIB);
	MUST(cuMemCreate(&handle, 2 * MIB, &properties, 0));
	MUST(cuMemMap(space, 2 * MIB, 0, handle, 0));
	take(MIB);
	MUST(cuMemRelease(handle));
	MUST(cuMemUnmap(space, 2 * MIB));
}

/* ---------- handles of other processes, in this one ---------- */

static void opened_in_the_same_process(void)
{
	CUdeviceptr pointer = take(2 * MIB), opened, again;
	CUipcMemHandle shared;
	MUST(cuIpcGetMemHandle(&shared, pointer));
	MUST(cuIpcOpenMemHandle(&opened, shared, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	MUST(cuIpcOpenMemHandle(&again, shared, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	MUST(cuIpcCloseMemHandle(opened));
	take(MIB);
	MUST(cuIpcCloseMemHandle(again));
	MUST(cuMemFree(pointer));
}

static const struct scene scenes[] = {
	{"linear_mixed", linear_mixed},
	{"arrays_mixed", arrays_mixed},
	{"threads_on_devices", threads_on_devices},
	{"runtime_in_the_driver_s_context", runtime_in_the_driver_s_context},
	{"streams_of_another_device", streams_of_another_device},
	{"pools_with_live_memory", pools_with_live_memory},
	{"the_current_pool", the_current_pool},
	{"a_pool_without_room", a_pool_without_room},
	{"handles_that_come_back", handles_that_come_back},
	{"ranges_in_parts", ranges_in_parts},
	{"memory_shown_to_many", memory_shown_to_many},
	{"memory_of_the_host", memory_of_the_host},
	{"opened_in_the_same_process", opened_in_the_same_process},
	{NULL, NULL},
};

int main(int count, char **arguments)
{
	if (count > 1)
		start();
	return run_scene(scenes, count, arguments);
}
