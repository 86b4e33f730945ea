/* Memory by every way in, as a real card allows it: scripts/check-gpu.sh runs it on one. After each step it asks what
 * is in use. What a device does not support is left out, and said. Nothing is mapped from other processes, no managed
 * memory is there when it asks (where that is, is the driver's affair), and no code is loaded. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device); /* older drivers have no other */

static const CUmemLocation device_0 = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
static const CUmemPoolProps pool_properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
					       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
static CUcontext primary;
static CUstream stream;

#define MUST(call) must(#call, call)

static void must(const char *call, CUresult result)
{
	if (result) {
		printf("%s: error %d\n", call, (int)result);
		exit(1);
	}
}

/* Waits first, because what is freed on a stream is there until then. */
static void ask(const char *step)
{
	size_t unused_bytes, total_bytes;
	MUST(cuStreamSynchronize(stream));
	MUST(cuMemGetInfo(&unused_bytes, &total_bytes));
	printf("%-10s %zu MiB in use\n", step, (total_bytes - unused_bytes) / MIB);
}

static int supports(CUdevice_attribute attribute, const char *what)
{
	int value = 0;
	if (cuDeviceGetAttribute(&value, attribute, 0) || !value)
		printf("%-10s not supported\n", what);
	return value;
}

static CUdeviceptr take(size_t bytes)
{
	CUdeviceptr pointer;
	MUST(cuMemAlloc(&pointer, bytes));
	return pointer;
}

static void linear(void)
{
	CUdeviceptr first = take(64 * MIB), pitched, managed;
	void *host;
	size_t pitch;
	take(16 * MIB);
	MUST(cuMemAllocPitch(&pitched, &pitch, 2048, 4096, 4));
	ask("linear");
	MUST(cuMemFree(first));
	MUST(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
	MUST(cuMemFree(managed));
	MUST(cuMemHostAlloc(&host, 8 * MIB, 0));
	ask("freed");
	MUST(cuMemFreeHost(host));
}

static void arrays(void)
{
	CUDA_ARRAY3D_DESCRIPTOR cube = {256, 256, 64, CU_AD_FORMAT_FLOAT, 2, 0};
	CUDA_ARRAY3D_DESCRIPTOR flat = {2048, 2048, 0, CU_AD_FORMAT_HALF, 4, 0};
	CUarray array;
	CUmipmappedArray mipmap;
	MUST(cuArray3DCreate(&array, &cube));
	MUST(cuMipmappedArrayCreate(&mipmap, &flat, 8));
	ask("arrays");
	MUST(cuArrayDestroy(array));
	MUST(cuMipmappedArrayDestroy(mipmap));
	ask("destroyed");
}

static void pools(void)
{
	CUmemoryPool pool;
	CUdeviceptr pointer, own;
	if (!supports(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, "pools"))
		return;
	MUST(cuMemPoolCreate(&pool, &pool_properties));
	MUST(cuMemAllocAsync(&pointer, 64 * MIB, stream));
	MUST(cuMemAllocFromPoolAsync(&own, 32 * MIB, pool, stream));
	ask("pools");
	MUST(cuMemFreeAsync(own, stream));
	MUST(cuMemFreeAsync(pointer, stream));
	MUST(cuStreamSynchronize(stream));
	MUST(cuMemPoolTrimTo(pool, 0));
	ask("trimmed");
	MUST(cuMemPoolDestroy(pool));
}

static void physical(void)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
					  .location = device_0,
					  .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
	CUmemGenericAllocationHandle handle, imported;
	CUdeviceptr space;
	size_t step, bytes;
	int descriptor;
	if (!supports(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "handles") ||
	    !supports(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "export"))
		return;
	MUST(cuMemGetAllocationGranularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
	bytes = (32 * MIB + step - 1) / step * step;
	MUST(cuMemAddressReserve(&space, 2 * bytes, 0, 0, 0));
	MUST(cuMemCreate(&handle, bytes, &properties, 0));
	MUST(cuMemMap(space, bytes, 0, handle, 0));
	MUST(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	MUST(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)descriptor,
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(descriptor);
	MUST(cuMemMap(space + bytes, bytes, 0, imported, 0));
	ask("mapped"); /* twice, and there once */
	MUST(cuMemRelease(handle));
	MUST(cuMemUnmap(space, bytes));
	ask("imported");
	MUST(cuMemRelease(imported));
	MUST(cuMemUnmap(space + bytes, bytes));
	MUST(cuMemAddressFree(space, 2 * bytes));
	ask("released");
}

static void graphs(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS parameters = {.poolProps = pool_properties, .bytesize = 48 * MIB};
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec executable;
	if (!supports(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, "graphs"))
		return;
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters));
	MUST(cuGraphInstantiate(&executable, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	MUST(cuGraphLaunch(executable, stream));
	ask("launched");
	MUST(cuGraphLaunch(executable, stream));
	MUST(cuMemFreeAsync(parameters.dptr, stream));
	MUST(cuStreamSynchronize(stream));
	MUST(cuGraphExecDestroy(executable));
	MUST(cuGraphDestroy(graph));
	MUST(cuDeviceGraphMemTrim(0));
	ask("graph gone");
}

static void contexts(void)
{
	CUcontext own;
	MUST(cuCtxCreate_v2(&own, 0, 0));
	take(128 * MIB);
	MUST(cuCtxDestroy(own));
	MUST(cuCtxSetCurrent(primary));
	ask("context");
}

int main(void)
{
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&primary, 0));
	MUST(cuCtxSetCurrent(primary));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	linear();
	arrays();
	pools();
	physical();
	graphs();
	contexts();
	return 0;
}
