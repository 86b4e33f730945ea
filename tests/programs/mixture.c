/* Memory by every way in at once, each size such that the simulated GPU takes exactly what is asked
 * for. After each step it prints, a JSON line each, what the driver says is in use.
 *
 *   mixture STEPS
 *
 * It ends after so many steps, of 18, without giving anything back: the trace ends with what the
 * driver said.
 *
 * Of managed memory and of imports the simulated GPU charges nothing: the first is given back
 * before anything is read. Pools are charged in steps of their own, so what is taken from them adds
 * up to whole ones. */
#include <cuda.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MIB       ((size_t)1 << 20)
#define POOL_STEP (32 * MIB)

static CUcontext primary;
static CUstream stream;
static const CUmemLocation device_0 = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};

#define MUST(call) must(#call, call)

static void must(const char *call, CUresult result)
{
	if (result) {
		fprintf(stderr, "%s: error %d\n", call, (int)result);
		exit(1);
	}
}

static int steps_left;
static unsigned context_count;

static void tell(const char *step)
{
	size_t unused_bytes, total_bytes;
	MUST(cuMemGetInfo(&unused_bytes, &total_bytes));
	printf("{\"step\": \"%s\", \"contexts\": %u, \"used_bytes\": %zu}\n", step, context_count,
	       total_bytes - unused_bytes);
	if (!--steps_left)
		exit(0);
}

static CUdeviceptr take(size_t bytes)
{
	CUdeviceptr pointer;
	MUST(cuMemAlloc(&pointer, bytes));
	return pointer;
}

/* ---------- the ways ---------- */

static void linear(void)
{
	CUdeviceptr first = take(4 * MIB), pitched, managed;
	size_t pitch;
	take(512);
	MUST(cuMemAllocPitch(&pitched, &pitch, 2048, 1024, 4));
	tell("linear and pitched");
	MUST(cuMemFree(first));
	MUST(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
	MUST(cuMemFree(managed));
	tell("one freed");
}

static void arrays(void)
{
	CUDA_ARRAY3D_DESCRIPTOR cube = {
		.Width = 256,
		.Height = 256,
		.Depth = 8,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 2,
	};
	CUDA_ARRAY3D_DESCRIPTOR flat = {
		.Width = 2048, .Height = 1024, .Format = CU_AD_FORMAT_HALF, .NumChannels = 1};
	CUarray array;
	CUmipmappedArray mipmap;
	MUST(cuArray3DCreate(&array, &cube));
	MUST(cuMipmappedArrayCreate(&mipmap, &flat, 1));
	tell("array and mipmap");
	MUST(cuArrayDestroy(array));
	tell("array destroyed");
}

static void pools(void)
{
	CUmemoryPool pool;
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = device_0};
	CUdeviceptr pointer, own;
	MUST(cuMemPoolCreate(&pool, &properties));
	MUST(cuMemAllocAsync(&pointer, POOL_STEP, stream));
	MUST(cuMemAllocFromPoolAsync(&own, 2 * POOL_STEP, pool, stream));
	tell("two pools");
	MUST(cuMemFreeAsync(own, stream));
	MUST(cuStreamSynchronize(stream));
	tell("one emptied");
	MUST(cuMemPoolDestroy(pool));
}

static void physical(void)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
					  .location = device_0};
	CUmemGenericAllocationHandle kept, dropped, imported;
	CUdeviceptr space;
	int descriptor;
	MUST(cuMemAddressReserve(&space, 8 * MIB, 0, 0, 0));
	MUST(cuMemCreate(&kept, 4 * MIB, &properties, 0));
	MUST(cuMemCreate(&dropped, 2 * MIB, &properties, 0));
	MUST(cuMemMap(space, 4 * MIB, 0, kept, 0));
	MUST(cuMemExportToShareableHandle(&descriptor, dropped,
					  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	MUST(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)descriptor,
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	MUST(cuMemRelease(dropped));
	tell("handles, one held by an import");
	MUST(cuMemRelease(imported));
	MUST(cuMemRelease(kept));
	tell("released, one held by a mapping");
}

static void external(void)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC object = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
						   .handle.fd =
							   open("/dev/null", O_RDONLY | O_CLOEXEC),
						   .size = 64 * MIB};
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = 8 * MIB};
	CUexternalMemory memory;
	CUdeviceptr pointer, opened;
	CUipcMemHandle shared;
	MUST(cuImportExternalMemory(&memory, &object));
	MUST(cuExternalMemoryGetMappedBuffer(&pointer, memory, &buffer));
	MUST(cuIpcGetMemHandle(&shared, take(2 * MIB)));
	MUST(cuIpcOpenMemHandle(&opened, shared, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	tell("imports");
	MUST(cuIpcCloseMemHandle(opened));
	MUST(cuMemFree(pointer));
	MUST(cuDestroyExternalMemory(memory));
	tell("imports given back");
}

static void graphs(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = device_0},
		.bytesize = 3 * MIB};
	CUdeviceptr inside;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec executable;
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters));
	inside = parameters.dptr;
	parameters.bytesize = 5 * MIB;
	MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters));
	MUST(cuGraphAddMemFreeNode(&node, graph, NULL, 0, inside));
	MUST(cuGraphInstantiate(&executable, graph,
				CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	tell("a graph that is not launched");
	MUST(cuGraphLaunch(executable, stream));
	tell("launched");
	MUST(cuGraphLaunch(executable, stream));
	tell("launched again");
	MUST(cuGraphExecDestroy(executable));
	MUST(cuGraphDestroy(graph));
	tell("gone, but for what it allocated");
	MUST(cuMemFree(parameters.dptr));
	tell("freed");
}

static void contexts(void)
{
	CUcontext own, popped;
	MUST(cuCtxCreate(&own, NULL, 0, 0));
	context_count++;
	take(6 * MIB);
	take(2 * MIB);
	MUST(cuCtxPopCurrent(&popped));
	take(2 * MIB);
	tell("another context");
	MUST(cuCtxDestroy(own));
	context_count--;
	tell("and its end");
	MUST(cuDevicePrimaryCtxReset(0));
	MUST(cuDevicePrimaryCtxRetain(&primary, 0));
	tell("a reset");
}

int main(int argc, char **argv)
{
	steps_left = argc > 1 ? atoi(argv[1]) : 0;
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&primary, 0));
	context_count++;
	MUST(cuCtxSetCurrent(primary));
	MUST(cuStreamCreate(&stream, 0));
	linear();
	arrays();
	pools();
	physical();
	external();
	graphs();
	contexts();
	return 0;
}
