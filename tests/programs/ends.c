/* Memory that ends with something else, or is a graph's: see strange.h.
 *
 *   ends          prints the scenes
 *   ends SCENE    plays one */
#include "strange.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------- contexts ---------- */

static void fill(void)
{
	CUDA_ARRAY3D_DESCRIPTOR deep = {40, 30, 20, CU_AD_FORMAT_FLOAT, 2, 0};
	CUarray array;
	CUmipmappedArray levels;
	CUdeviceptr managed, streamed;
	void *host;
	take(3 * MIB);
	MUST(cuArray3DCreate(&array, &deep));
	MUST(cuMipmappedArrayCreate(&levels, &deep, 4));
	MUST(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
	MUST(cuMemAllocAsync(&streamed, 2 * MIB, NULL)); /* the device's, not the context's */
	MUST(cuMemHostAlloc(&host, 4096, 0));
}

static void *end_it(void *context)
{
	MUST(cuCtxDestroy(context));
	return NULL;
}

static void contexts_with_live_memory(void)
{
	CUcontext outer, inner, popped;
	void *by_runtime;
	take(512);
	MUST(cuCtxCreate(&outer, NULL, 0, 1));
	fill();
	MUST(cuCtxCreate(&inner, NULL, 0, 0));
	fill();
	MUST(cudaMalloc(&by_runtime, 5 * MIB)); /* in the current context */
	MUST(cuCtxPopCurrent(&popped));
	take(MIB);
	MUST(cuCtxDestroy(inner));
	MUST(cuCtxPopCurrent(&popped));
	in_thread(end_it, outer);
	MUST(cuCtxCreate(&outer, NULL, 0, 1)); /* which may have the handle of one before */
	take(7 * MIB);
	MUST(cuCtxDestroy(outer)); /* while it is current */
	take(9 * MIB);
}

static void primary_contexts_reset(void)
{
	work_on(1);
	fill();
	work_on(0);
	fill();
	MUST(cuDevicePrimaryCtxReset(1));
	take(MIB);
	MUST(cuDevicePrimaryCtxReset(0));
	for (int i = 0; i < 2; i++)
		MUST(cuDevicePrimaryCtxRetain(&primary[i], i));
	work_on(1);
	take(2 * MIB);
}

static void the_last_release(void)
{
	CUcontext again;
	fill();
	MUST(cuDevicePrimaryCtxRetain(&again, 0));
	MUST(cuDevicePrimaryCtxRelease(0));
	take(MIB);
	MUST(cuDevicePrimaryCtxRelease(0));
	MUST(cuDevicePrimaryCtxRetain(&primary[0], 0));
	work_on(0);
	take(2 * MIB);
}

static void the_runtime_s_reset(void)
{
	struct cudaChannelFormatDesc channels = {8, 8, 8, 8, cudaChannelFormatKindUnsigned};
	cudaArray_t array;
	void *pointer;
	for (int i = 0; i < 2; i++) {
		MUST(cudaSetDevice(i));
		MUST(cudaMalloc(&pointer, 3 * MIB));
		MUST(cudaMallocArray(&array, &channels, 100, 100, 0));
		MUST(cudaMallocManaged(&pointer, MIB, cudaMemAttachGlobal));
	}
	MUST(cudaDeviceReset());
	MUST(cudaSetDevice(1));
	MUST(cudaMalloc(&pointer, MIB));
	MUST(cudaDeviceReset());
	MUST(cudaDeviceReset());
}

static void parts_of_a_device(void)
{
	CUdevResource resources = {0};
	CUdevResourceDesc description;
	CUgreenCtx green;
	CUcontext context;
	CUdeviceptr pointer;
	MUST(cuDevResourceGenerateDesc(&description, &resources, 1));
	MUST(cuGreenCtxCreate(&green, description, 1, CU_GREEN_CTX_DEFAULT_STREAM));
	MUST(cuCtxFromGreenCtx(&context, green));
	MUST(cuCtxPushCurrent(context));
	fill();
	pointer = take(MIB);
	MUST(cuCtxPopCurrent(&context));
	MUST(cuGreenCtxDestroy(green));
	MUST(cuMemFree(pointer));
	MUST(cuDevicePrimaryCtxReset(1)); /* with it goes the rest */
}

/* ---------- processes and copies of libraries ---------- */

static void use_and_leave(void)
{
	take(2 * MIB);
	MUST(cuMemFree(take(3 * MIB)));
	take(MIB);
}

/* Before this process has begun with CUDA; a child of one that has cannot use it. */
static void a_child_of_its_own(void)
{
	int status;
	pid_t child = fork();
	if (!child) {
		start();
		use_and_leave();
		exit(0);
	}
	MUST(waitpid(child, &status, 0) != child || status);
	start();
	use_and_leave();
	child = fork();
	if (!child) {
		CUdeviceptr pointer;
		_exit(!cuInit(0) || !cuMemAlloc(&pointer, MIB));
	}
	MUST(waitpid(child, &status, 0) != child || status);
	take(5 * MIB);
}

typedef int allocate_function(void **, size_t);
typedef int release_function(void *);

static void *opened(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	MUST(!library);
	return library;
}

/* What one allocates the other frees. */
static void mix(void *first, void *second)
{
	allocate_function *allocate = (allocate_function *)dlsym(first, "cudaMalloc");
	release_function *release = (release_function *)dlsym(second, "cudaFree");
	void *pointer;
	MUST(allocate(&pointer, 3 * MIB));
	MUST(release(pointer));
	MUST(allocate(&pointer, MIB));
}

static void two_runtimes(void)
{
	void *old = opened("libcudart.so.12"), *new = opened("libcudart.so.13");
	start();
	mix(old, new);
	mix(new, old);
}

/* COPY: the path of another file with the same runtime. */
static void a_copy_of_the_runtime(void)
{
	void *usual = opened("libcudart.so.13"), *copy = opened(getenv("COPY"));
	start();
	mix(usual, copy);
	mix(copy, usual);
	mix(copy, copy);
}

/* ---------- graphs ---------- */

static CUdeviceptr add_alloc(CUgraph graph, int device, size_t bytes)
{
	CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}},
		.bytesize = bytes};
	CUgraphNode node;
	MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters));
	return parameters.dptr;
}

static void add_free(CUgraph graph, CUdeviceptr pointer)
{
	CUgraphNode node;
	MUST(cuGraphAddMemFreeNode(&node, graph, NULL, 0, pointer));
}

static void graphs_that_allocate(void)
{
	CUgraph graph, other;
	CUgraphExec first, second;
	CUdeviceptr kept, freed_by_other;
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphCreate(&other, 0));
	kept = add_alloc(graph, 0, 3 * MIB);
	freed_by_other = add_alloc(graph, 1, 5 * MIB);
	add_free(other, freed_by_other);
	MUST(cuGraphInstantiate(&first, graph, 0));
	MUST(cuGraphInstantiate(&second, other, 0));
	MUST(cuGraphDestroy(graph)); /* the executable one goes on */
	MUST(cuGraphLaunch(first, NULL));
	MUST(!cuGraphLaunch(first, NULL)); /* what it allocated is still there */
	MUST(cuGraphLaunch(second, NULL));
	MUST(!cuGraphLaunch(first, NULL)); /* half of it is */
	MUST(!cuGraphLaunch(second, NULL)); /* and half is not */
	MUST(cuMemFree(kept));
	MUST(cuGraphLaunch(first, NULL));
	MUST(cuMemFreeAsync(kept, NULL));
	MUST(cuGraphExecDestroy(first));
	MUST(cuGraphExecDestroy(second));
	MUST(cuGraphDestroy(other));
	MUST(cuDeviceGraphMemTrim(0));
	MUST(cuDeviceGraphMemTrim(1));
	MUST(cuMemFree(freed_by_other));
}

static void graphs_that_free_before(void)
{
	CUgraph graph;
	CUgraphExec executable;
	CUdeviceptr kept, inside;
	MUST(cuGraphCreate(&graph, 0));
	kept = add_alloc(graph, 0, 3 * MIB);
	inside = add_alloc(graph, 0, 5 * MIB);
	add_free(graph, inside);
	MUST(cuGraphInstantiate(&executable, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	for (int i = 0; i < 3; i++)
		MUST(cuGraphLaunch(executable, NULL));
	MUST(cuMemFree(kept));
	MUST(cuDeviceGraphMemTrim(0));
	MUST(cuGraphLaunch(executable, NULL));
	MUST(cuGraphExecDestroy(executable));
	MUST(cuGraphDestroy(graph));
	take(MIB);
	MUST(cuMemFree(kept));
}

static void graphs_that_find_no_room(void)
{
	CUgraph graph;
	CUgraphExec executable;
	size_t unused_bytes, total_bytes;
	CUdeviceptr large;
	MUST(cuMemGetInfo(&unused_bytes, &total_bytes));
	large = take(unused_bytes - 8 * MIB);
	MUST(cuGraphCreate(&graph, 0));
	add_alloc(graph, 0, 6 * MIB);
	add_alloc(graph, 0, 6 * MIB);
	MUST(cuGraphInstantiate(&executable, graph, 0));
	MUST(!cuGraphLaunch(executable, NULL));
	MUST(cuMemFree(large));
	MUST(cuGraphLaunch(executable, NULL));
}

/* ---------- stream-ordered memory in captures ---------- */

static CUgraphExec captured(CUstream stream, unsigned long long flags)
{
	CUgraph graph;
	CUgraphExec executable;
	MUST(cuStreamEndCapture(stream, &graph));
	MUST(cuGraphInstantiate(&executable, graph, flags));
	MUST(cuGraphDestroy(graph));
	return executable;
}

/* What is captured is memory from each launch on, if the graph does not free it itself. */
static void graphs_captured(void)
{
	CUstream stream = stream_on(0);
	CUdeviceptr kept, inside, before = take(MIB);
	void *by_runtime;
	CUgraphExec executable;
	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	MUST(cuMemAllocAsync(&kept, 3 * MIB, stream));
	MUST(cuMemAllocAsync(&inside, 5 * MIB, stream));
	MUST(cudaMallocAsync(&by_runtime, 7 * MIB, stream));
	MUST(cudaFreeAsync((void *)inside, stream));
	MUST(!cuMemFreeAsync(before, stream)); /* no graph's memory */
	executable = captured(stream, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	take(512);
	MUST(cuGraphLaunch(executable, stream));
	MUST(cuGraphLaunch(executable, stream));
	MUST(cuMemFreeAsync(kept, stream));
	MUST(cuMemFree(before));
	MUST(cuGraphLaunch(executable, stream));
	MUST(cuGraphExecDestroy(executable));
	MUST(cuMemFree((CUdeviceptr)by_runtime));
}

/* A second stream is drawn in by an event; one graph is added to, one capture comes to nothing. */
static void graphs_captured_in_parts(void)
{
	CUstream stream = stream_on(0), side = stream_on(0);
	CUdeviceptr pointer, lost;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec executable;
	CUevent event;
	MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	MUST(cuGraphCreate(&graph, 0));
	add_alloc(graph, 0, MIB);
	MUST(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	MUST(cuEventRecord(event, stream));
	MUST(cuStreamWaitEvent(side, event, 0));
	MUST(cuMemAllocAsync(&pointer, 3 * MIB, side));
	MUST(cuEventRecord(event, side));
	MUST(cuStreamWaitEvent(stream, event, 0));
	MUST(cuStreamEndCapture(stream, &graph));
	MUST(cuGraphAddMemFreeNode(&node, graph, NULL, 0, pointer));
	MUST(cuGraphInstantiate(&executable, graph, 0));
	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	MUST(cuMemAllocAsync(&lost, 9 * MIB, stream));
	MUST(!cuStreamSynchronize(stream));
	MUST(!cuStreamEndCapture(stream, &graph));
	MUST(cuMemAllocAsync(&lost, 2 * MIB, stream)); /* no capture's any more */
	MUST(cuGraphLaunch(executable, stream));
	MUST(cuMemFreeAsync(lost, stream));
}

static const struct scene scenes[] = {
	{"contexts_with_live_memory", contexts_with_live_memory},
	{"primary_contexts_reset", primary_contexts_reset},
	{"the_last_release", the_last_release},
	{"the_runtime_s_reset", the_runtime_s_reset},
	{"parts_of_a_device", parts_of_a_device},
	{"a_child_of_its_own", a_child_of_its_own},
	{"two_runtimes", two_runtimes},
	{"a_copy_of_the_runtime", a_copy_of_the_runtime},
	{"graphs_that_allocate", graphs_that_allocate},
	{"graphs_that_free_before", graphs_that_free_before},
	{"graphs_that_find_no_room", graphs_that_find_no_room},
	{"graphs_captured", graphs_captured},
	{"graphs_captured_in_parts", graphs_captured_in_parts},
	{NULL, NULL},
};

int main(int count, char **arguments)
{
	const char *starts_later[] = {"a_child_of_its_own", "two_runtimes", "a_copy_of_the_runtime"};
	bool is_later = count < 2;
	for (int i = 0; i < 3; i++)
		is_later |= count > 1 && !strcmp(arguments[1], starts_later[i]);
	if (!is_later)
		start();
	return run_scene(scenes, count, arguments);
}
