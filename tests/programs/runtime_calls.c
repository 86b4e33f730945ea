/* Calls every function of the runtime that the table of hooks has, and prints the events that must
 * follow. Each contains a call of the driver, and is one event all the same. Needs two devices.
 *
 *   runtime_calls linked [SYMBOL...]
 *   runtime_calls_opened dlsym|dlvsym LIBRARY [SYMBOL...]
 *
 * The first is for the version node that it is built for (NODE: 11, 12 or 13); the second is linked
 * with no runtime and opens any. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>
#undef cudaGetDeviceProperties /* CUDA 12 renames it, and both names are in the table */

#include "calls.h"

#ifdef OPENED
#define NODE 0 /* linked with none */
#elif !defined(NODE)
#define NODE 13
#endif

#define IS_LINKED_V11 (NODE == 11)
#define IS_LINKED_V12 (NODE == 12)
#define IS_LINKED_V13 (NODE == 13)
#define NAME_V11      "libcudart.so.11.0"
#define NAME_V12      "libcudart.so.12"
#define NAME_V13      "libcudart.so.13"

/* One pointer a name: a process here works with one node. */
#define DRIVER(...)
#define OTHER(symbol)
#define RUNTIME(node, symbol, note, when, parameters, arguments)                \
	extern cudaError_t linked_##node##_##symbol parameters __asm__(#symbol) \
		__attribute__((weak));                                          \
	typedef cudaError_t node##_##symbol parameters;                         \
	static void *call_##symbol;                                             \
	void case_##symbol(void) __attribute__((weak));
#include "hooks/hooks.def"

#define DRIVER(...)
#define OTHER(symbol)
#define RUNTIME(node, symbol, ...)                                   \
	{NAME_##node,                                                \
	 #symbol,                                                    \
	 NULL,                                                       \
	 &call_##symbol,                                             \
	 IS_LINKED_##node ? (void *)linked_##node##_##symbol : NULL, \
	 case_##symbol},
static const struct row rows[] = {
#include "hooks/hooks.def"
};
#define ROW_COUNT (sizeof rows / sizeof *rows)

#define RT(symbol) ((V13_##symbol *)call_##symbol)

#define MIB ((size_t)1 << 20)

static const char *node;
static cudaStream_t stream;

/* ---------- linear memory ---------- */

static void expect_alloc(const char *space, const void *pointer, size_t bytes)
{
	EXPECT(.what = "alloc", .space = space, .address = (uintptr_t)pointer, .bytes = bytes);
}

static void free_device(void *pointer)
{
	CALL(RT(cudaFree)(pointer));
	expect_free("device", (uintptr_t)pointer);
}

static void alloc_on(int device)
{
	void *pointer;
	CALL(RT(cudaMalloc)(&pointer, 5000));
	EXPECT(.what = "alloc", .space = "device", .device = device, .address = (uintptr_t)pointer,
	       .bytes = 5000);
	free_device(pointer);
}

void case_cudaMalloc(void)
{
	void *nothing;
	alloc_on(0);
	CALL(RT(cudaMalloc)(&nothing, 0)); /* no memory: no event */
}

void case_cudaFree(void)
{
	alloc_on(0);
	CALL(RT(cudaFree)(NULL));
}

void case_cudaMallocPitch(void)
{
	void *pointer;
	size_t pitch;
	CALL(RT(cudaMallocPitch)(&pointer, &pitch, 1000, 30));
	expect_alloc("device", pointer, pitch * 30);
	free_device(pointer);
}

void case_cudaMalloc3D(void)
{
	struct cudaPitchedPtr pitched;
	CALL(RT(cudaMalloc3D)(&pitched, (struct cudaExtent){100, 20, 3}));
	expect_alloc("device", pitched.ptr, pitched.pitch * 20 * 3);
	free_device(pitched.ptr);
}

void case_cudaMallocManaged(void)
{
	void *pointer;
	CALL(RT(cudaMallocManaged)(&pointer, 3 * MIB, cudaMemAttachGlobal));
	expect_alloc("managed", pointer, 3 * MIB);
	free_device(pointer);
}

#include "runtime_work.h"

/* ---------- memory of the host ---------- */

static void expect_pinned(void *pointer, size_t bytes)
{
	EXPECT(.what = "alloc", .space = "pinned", .device = NO_DEVICE,
	       .address = (uintptr_t)pointer, .bytes = bytes);
	CALL(RT(cudaFreeHost)(pointer));
	expect_free("pinned", (uintptr_t)pointer);
}

void case_cudaHostAlloc(void)
{
	void *pointer;
	CALL(RT(cudaHostAlloc)(&pointer, 7000, 0));
	expect_pinned(pointer, 7000);
}

void case_cudaMallocHost(void)
{
	void *pointer;
	CALL(RT(cudaMallocHost)(&pointer, 9000));
	expect_pinned(pointer, 9000);
}

void case_cudaFreeHost(void)
{
	case_cudaHostAlloc();
	CALL(RT(cudaFreeHost)(NULL));
}

void case_cudaHostRegister(void)
{
	static char memory[8192];
	CALL(RT(cudaHostRegister)(memory, sizeof memory, 0));
	EXPECT(.what = "alloc", .space = "registered", .device = NO_DEVICE,
	       .address = (uintptr_t)memory, .bytes = sizeof memory);
	CALL(RT(cudaHostUnregister)(memory));
	expect_free("registered", (uintptr_t)memory);
}

void case_cudaHostUnregister(void)
{
	case_cudaHostRegister();
}

/* ---------- stream-ordered memory ---------- */

static void expect_stream_free(void *pointer)
{
	EXPECT(.what = "free", .space = "stream", .device = NO_DEVICE,
	       .address = (uintptr_t)pointer, .stream = stream);
}

#define ASYNC_PAIR(twin)                                                                  \
	void case_cudaMallocAsync##twin(void)                                             \
	{                                                                                 \
		void *pointer;                                                            \
		CALL(RT(cudaMallocAsync##twin)(&pointer, 11000, stream));                 \
		EXPECT(.what = "alloc", .space = "stream", .address = (uintptr_t)pointer, \
		       .bytes = 11000, .stream = stream);                                 \
		CALL(RT(cudaFreeAsync##twin)(pointer, stream));                           \
		expect_stream_free(pointer);                                              \
	}                                                                                 \
	void case_cudaFreeAsync##twin(void)                                               \
	{                                                                                 \
		case_cudaMallocAsync##twin();                                             \
		CALL(RT(cudaFreeAsync##twin)(NULL, stream));                              \
	}
ASYNC_PAIR()
ASYNC_PAIR(_ptsz)

static void expect_pool(cudaMemPool_t pool, int device, uint64_t is_default)
{
	EXPECT(.what = "pool_create", .space = "stream", .device = device,
	       .address = (uintptr_t)pool, .name = "is_default", .value = is_default);
}

static cudaMemPool_t create_pool(int device)
{
	cudaMemPool_t pool;
	struct cudaMemPoolProps properties = {
		.allocType = cudaMemAllocationTypePinned,
		.location = {.type = cudaMemLocationTypeDevice, .id = device}};
	CALL(RT(cudaMemPoolCreate)(&pool, &properties));
	expect_pool(pool, device, 0);
	return pool;
}

static void destroy_pool(cudaMemPool_t pool)
{
	CALL(RT(cudaMemPoolDestroy)(pool));
	EXPECT(.what = "pool_destroy", .space = "stream", .device = NO_DEVICE,
	       .address = (uintptr_t)pool);
}

#define FROM_POOL(twin)                                                                   \
	void case_cudaMallocFromPoolAsync##twin(void)                                     \
	{                                                                                 \
		cudaMemPool_t pool = create_pool(0);                                      \
		void *pointer;                                                            \
		CALL(RT(cudaMallocFromPoolAsync##twin)(&pointer, 12000, pool, stream));   \
		EXPECT(.what = "alloc", .space = "stream", .address = (uintptr_t)pointer, \
		       .bytes = 12000, .stream = stream, .name = "pool",                  \
		       .value = (uintptr_t)pool);                                         \
		CALL(RT(cudaFreeAsync##twin)(pointer, stream));                           \
		expect_stream_free(pointer);                                              \
		destroy_pool(pool);                                                       \
	}
FROM_POOL()
FROM_POOL(_ptsz)

void case_cudaMemPoolCreate(void)
{
	destroy_pool(create_pool(1));
}

void case_cudaMemPoolDestroy(void)
{
	destroy_pool(create_pool(0));
}

void case_cudaMemPoolTrimTo(void)
{
	cudaMemPool_t pool = create_pool(0);
	CALL(RT(cudaMemPoolTrimTo)(pool, 4096));
	EXPECT(.what = "pool_trim", .space = "stream", .device = NO_DEVICE,
	       .address = (uintptr_t)pool, .bytes = 4096);
	destroy_pool(pool);
}

static void expect_attribute(const char *what, cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
			     uint64_t value)
{
	EXPECT(.what = what, .space = "stream", .device = NO_DEVICE, .address = (uintptr_t)pool,
	       .bytes = value, .name = "attribute", .value = attribute);
}

void case_cudaMemPoolSetAttribute(void)
{
	cudaMemPool_t pool = create_pool(0);
	uint64_t threshold = 64 * MIB;
	CALL(RT(cudaMemPoolSetAttribute)(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	expect_attribute("pool_set", pool, cudaMemPoolAttrReleaseThreshold, threshold);
	destroy_pool(pool);
}

void case_cudaMemPoolGetAttribute(void)
{
	cudaMemPool_t pool = create_pool(0);
	uint64_t bytes = 1;
	CALL(RT(cudaMemPoolGetAttribute)(pool, cudaMemPoolAttrReservedMemCurrent, &bytes));
	expect_attribute("pool_read", pool, cudaMemPoolAttrReservedMemCurrent, bytes);
	destroy_pool(pool);
}

void case_cudaDeviceGetDefaultMemPool(void)
{
	cudaMemPool_t pool;
	CALL(RT(cudaDeviceGetDefaultMemPool)(&pool, 1));
	expect_pool(pool, 1, 1);
}

void case_cudaDeviceGetMemPool(void)
{
	cudaMemPool_t pool;
	CALL(RT(cudaDeviceGetMemPool)(&pool, 1));
	expect_pool(pool, 1, 2);
}

void case_cudaDeviceSetMemPool(void)
{
	cudaMemPool_t pool = create_pool(1);
	CALL(RT(cudaDeviceSetMemPool)(1, pool));
	expect_pool(pool, 1, 2);
	destroy_pool(pool);
}

/* ---------- devices ---------- */

void case_cudaMemGetInfo(void)
{
	size_t unused_bytes, total_bytes;
	CALL(RT(cudaMemGetInfo)(&unused_bytes, &total_bytes));
	EXPECT(.what = "meminfo", .bytes = unused_bytes, .name = "total_bytes",
	       .value = total_bytes);
}

void case_cudaSetDevice(void)
{
	CALL(RT(cudaSetDevice)(1));
	alloc_on(1);
	CALL(RT(cudaSetDevice)(0));
	alloc_on(0);
}

/* The simulated GPU has functions that only say so. */
static int is_missing(cudaError_t error)
{
	if (error == cudaErrorNotSupported)
		printf("{\"row\": \"%s\", \"missing\": \"simulation\"}\n", current_symbol);
	return error == cudaErrorNotSupported;
}

/* No event: it is in the report. The structure's size differs between versions, its beginning does
 * not. */
static void expect_properties(cudaError_t (*get_properties)(struct cudaDeviceProp *, int))
{
	union {
		struct cudaDeviceProp known;
		char room[8192];
	} properties;
	cudaError_t error = get_properties(&properties.known, 1);
	if (is_missing(error))
		return;
	CALL(error);
	case_cudaSetDevice();
	printf("{\"row\": \"%s\", \"report\": {\"device\": 1, \"name\": \"%s\", \"total_bytes\": "
	       "%zu}}\n",
	       current_symbol, properties.known.name, properties.known.totalGlobalMem);
}

void case_cudaGetDeviceProperties(void)
{
	expect_properties(RT(cudaGetDeviceProperties));
}

void case_cudaGetDeviceProperties_v2(void)
{
	expect_properties((V12_cudaGetDeviceProperties_v2 *)call_cudaGetDeviceProperties_v2);
}

/* ---------- stream capture ---------- */

/* `graph`: what came of it; NULL: it begins. */
static void expect_capture(cudaGraph_t graph)
{
	EXPECT(.what = "capture", .stream = stream, .address = (uintptr_t)graph, .name = "begins", .value = !graph);
}

/* It goes by the stream until it is a graph. */
static void expect_captured(const char *what, void *pointer, uint64_t bytes)
{
	EXPECT(.what = what, .space = "stream", .address = (uintptr_t)pointer, .bytes = bytes, .name = "graph",
	       .value = (uintptr_t)stream);
}

#define CAPTURE(twin)                                                                         \
	void case_cudaStreamBeginCapture##twin(void)                                          \
	{                                                                                     \
		void *pointer;                                                                \
		cudaGraph_t graph;                                                            \
		CALL(RT(cudaStreamBeginCapture##twin)(stream, cudaStreamCaptureModeRelaxed)); \
		expect_capture(NULL);                                                         \
		CALL(RT(cudaMallocAsync##twin)(&pointer, 600, stream));                       \
		expect_captured("graph_alloc", pointer, 600);                                 \
		CALL(RT(cudaFreeAsync##twin)(pointer, stream));                               \
		expect_captured("graph_free", pointer, 0);                                    \
		CALL(RT(cudaStreamEndCapture##twin)(stream, &graph));                         \
		expect_capture(graph);                                                        \
	}                                                                                     \
	void case_cudaStreamEndCapture##twin(void)                                            \
	{                                                                                     \
		case_cudaStreamBeginCapture##twin();                                          \
	}
CAPTURE()
CAPTURE(_ptsz)

#define CAPTURE_TO_GRAPH(twin)                                                                       \
	void case_cudaStreamBeginCaptureToGraph##twin(void)                                          \
	{                                                                                            \
		cudaGraph_t graph;                                                                   \
		CALL(HELPER(cudaGraphCreate)(&graph, 0));                                             \
		CALL(RT(cudaStreamBeginCaptureToGraph##twin)(stream, graph, NULL, NULL, 0,           \
							     cudaStreamCaptureModeRelaxed));         \
		expect_capture(NULL);                                                                \
		CALL(RT(cudaStreamEndCapture##twin)(stream, &graph));                                \
		expect_capture(graph);                                                               \
	}
CAPTURE_TO_GRAPH()
CAPTURE_TO_GRAPH(_ptsz)

/* ---------- entry points of the driver ---------- */

typedef cudaError_t getter(const void *call, const char *name, void **function,
			   unsigned long long flags);

static cudaError_t entry_point(const void *call, const char *name, void **function,
			       unsigned long long flags)
{
	enum cudaDriverEntryPointQueryResult found;
	if (!strcmp(node, NAME_V11))
		return ((V11_cudaGetDriverEntryPoint *)call)(name, function, flags);
	return ((V12_cudaGetDriverEntryPoint *)call)(name, function, flags, &found);
}

static cudaError_t entry_point_by_version(const void *call, const char *name, void **function,
					  unsigned long long flags)
{
	enum cudaDriverEntryPointQueryResult found;
	return ((V12_cudaGetDriverEntryPointByVersion *)call)(name, function, 12000, flags, &found);
}

/* Linear memory, and virtual memory as PyTorch and NCCL get it. */
static void *entry(getter *get, const void *call, const char *name, unsigned long long flags)
{
	void *function = NULL;
	CALL(get(call, name, &function, flags));
	return function;
}

static void expect_entry_points(getter *get, const void *call)
{
	void *function;
	if (is_missing(get(call, "cuMemAlloc", &function, 0)))
		return;
	CUdeviceptr pointer;
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CALL(RT(cudaFree)(NULL)); /* the context */
	CALL(((__typeof__(cuMemAlloc_v2) *)entry(get, call, "cuMemAlloc", 0))(&pointer, 1234));
	expect_alloc("device", (void *)(uintptr_t)pointer, 1234);
	CALL(((__typeof__(cuMemFree_v2) *)entry(get, call, "cuMemFree", 0))(pointer));
	expect_free("device", pointer);
	CALL(((__typeof__(cuMemAllocAsync) *)entry(
		get, call, "cuMemAllocAsync", cudaEnablePerThreadDefaultStream))(&pointer, 1235,
										 (CUstream)stream));
	EXPECT(.what = "alloc", .space = "stream", .address = pointer, .bytes = 1235,
	       .stream = stream);
	CALL(((__typeof__(cuMemFreeAsync) *)entry(get, call, "cuMemFreeAsync", 0))(
		pointer, (CUstream)stream));
	expect_stream_free((void *)(uintptr_t)pointer);
	CALL(((__typeof__(cuMemCreate) *)entry(get, call, "cuMemCreate", 0))(&handle, 2 * MIB,
									     &properties, 0));
	EXPECT(.what = "alloc", .space = "vmm", .address = handle, .bytes = 2 * MIB);
	CALL(((__typeof__(cuMemRelease) *)entry(get, call, "cuMemRelease", 0))(handle));
	expect_free("vmm", handle);
}

void case_cudaGetDriverEntryPoint(void)
{
	expect_entry_points(entry_point, call_cudaGetDriverEntryPoint);
}

void case_cudaGetDriverEntryPoint_ptsz(void)
{
	expect_entry_points(entry_point, call_cudaGetDriverEntryPoint_ptsz);
}

void case_cudaGetDriverEntryPointByVersion(void)
{
	expect_entry_points(entry_point_by_version, call_cudaGetDriverEntryPointByVersion);
}

void case_cudaGetDriverEntryPointByVersion_ptsz(void)
{
	expect_entry_points(entry_point_by_version, call_cudaGetDriverEntryPointByVersion_ptsz);
}

#include "runtime_arrays.h"
#include "runtime_graphs.h"
#include "runtime_rest.h"
#include "runtime_shared.h"

/* ---------- finding the functions ---------- */

static void *find(const struct row *row, const char *way)
{
	if (!strcmp(way, "linked"))
		return row->linked;
	if (!strcmp(way, "dlvsym"))
		return dlvsym(library, row->symbol, row->node);
	return dlsym(library, row->symbol);
}

static void choose_node(int argc, char **argv, int *used)
{
#if defined(OPENED)
	if (argc > 2)
		node = argv[2];
	*used = 3;
#else
	(void)argc;
	(void)argv;
	*used = 2;
	node = NODE == 11 ? NAME_V11 : NODE == 12 ? NAME_V12 : NAME_V13;
#if NODE != 11
	/* A reference that is not weak: without one the linker would leave the library out. */
	if (cudaDeviceSynchronize())
		node = NULL;
#endif
#endif
}

int main(int argc, char **argv)
{
	struct row own[ROW_COUNT];
	size_t own_count = 0;
	int used;
	choose_node(argc, argv, &used);
	if (argc < used || !node || !(library = dlopen(node, RTLD_NOW | RTLD_LOCAL))) {
		fprintf(stderr, "usage: runtime_calls linked|dlsym|dlvsym [LIBRARY] [SYMBOL...]\n");
		return 2;
	}
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (strcmp(rows[i].node, node))
			continue;
		*rows[i].call = find(&rows[i], argv[1]);
		own[own_count++] = rows[i];
	}
	CALL(HELPER(cudaStreamCreate)(&stream));
	/* Contexts and code that are there before the first allocation are in no trace. */
	void *variable;
	CALL(HELPER(cudaSetDevice)(1));
	CALL(HELPER(cudaSetDevice)(0));
	CALL(HELPER(cudaGetSymbolAddress)(&variable, &stream));
	run_rows(own, own_count, argc - used, argv + used);
	return 0;
}
