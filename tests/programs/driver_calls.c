/* Calls every function of the driver that the table of hooks has, and prints the events that must
 * follow. Needs two devices.
 *
 *   driver_calls WAY [SYMBOL...]
 *
 * WAY is how the functions are found: linked (by the linker; driver_calls_opened is not linked with
 * CUDA), dlsym (on a handle of libcuda.so.1), getproc (cuGetProcAddress_v2), getproc_thread (the
 * same, with a default stream a thread) or getproc_v1 (cuGetProcAddress). */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "calls.h"

#ifdef OPENED
#define LINKED(symbol) NULL
#else
#define LINKED(symbol) ((void *)symbol)
#endif

#define RUNTIME(...)
#define OTHER(symbol)
#define DRIVER(symbol, base, note, when, parameters, arguments) \
	static CUresult(*call_##symbol) parameters;             \
	void case_##symbol(void) __attribute__((weak));
#include "hooks/hooks.def"

#define RUNTIME(...)
#define OTHER(symbol)
#define DRIVER(symbol, base, ...) \
	{NULL, #symbol, #base, (void **)&call_##symbol, LINKED(symbol), case_##symbol},
static const struct row rows[] = {
#include "hooks/hooks.def"
};
#define ROW_COUNT (sizeof rows / sizeof *rows)

#define MIB     (UINT64_C(1) << 20)
#define VERSION 13000

static CUcontext context_0, context_1;
static CUstream stream;

#include "driver_work.h"

/* ---------- linear memory ---------- */

static void free_device(CUdeviceptr pointer)
{
	CALL(call_cuMemFree_v2(pointer));
	expect_free("device", pointer);
}

/* `context`: one of the program's own, or NULL. */
static CUdeviceptr alloc_in(CUcontext context, int device)
{
	CUdeviceptr pointer;
	CALL(call_cuMemAlloc_v2(&pointer, 5000));
	EXPECT(.what = "alloc", .space = "device", .device = device, .address = pointer,
	       .bytes = 5000, .name = "context", .value = (uintptr_t)context);
	return pointer;
}

static void alloc_on(int device)
{
	free_device(alloc_in(NULL, device));
}

void case_cuMemAlloc_v2(void)
{
	alloc_on(0);
}

void case_cuMemFree_v2(void)
{
	alloc_on(0);
	CALL(call_cuMemFree_v2(0)); /* nothing is freed: no event */
}

void case_cuMemAllocPitch_v2(void)
{
	CUdeviceptr pointer;
	size_t pitch;
	CALL(call_cuMemAllocPitch_v2(&pointer, &pitch, 1000, 30, 4));
	EXPECT(.what = "alloc", .space = "device", .address = pointer, .bytes = pitch * 30);
	free_device(pointer);
}

void case_cuMemAllocManaged(void)
{
	CUdeviceptr pointer;
	CALL(call_cuMemAllocManaged(&pointer, 3 * MIB, CU_MEM_ATTACH_GLOBAL));
	EXPECT(.what = "alloc", .space = "managed", .address = pointer, .bytes = 3 * MIB);
	free_device(pointer);
}

/* ---------- memory of the host ---------- */

static void expect_pinned(void *pointer, uint64_t bytes, unsigned flags)
{
	EXPECT(.what = "alloc", .space = "pinned", .device = NO_DEVICE,
	       .address = (uintptr_t)pointer, .bytes = bytes, .name = "flags", .value = flags);
	CALL(call_cuMemFreeHost(pointer));
	expect_free("pinned", (uintptr_t)pointer);
}

void case_cuMemHostAlloc(void)
{
	void *pointer;
	CALL(call_cuMemHostAlloc(&pointer, 7000, CU_MEMHOSTALLOC_WRITECOMBINED));
	expect_pinned(pointer, 7000, CU_MEMHOSTALLOC_WRITECOMBINED);
}

void case_cuMemAllocHost_v2(void)
{
	void *pointer;
	CALL(call_cuMemAllocHost_v2(&pointer, 9000));
	expect_pinned(pointer, 9000, 0);
}

void case_cuMemFreeHost(void)
{
	case_cuMemHostAlloc();
}

void case_cuMemHostRegister_v2(void)
{
	static char memory[8192];
	CALL(call_cuMemHostRegister_v2(memory, sizeof memory, CU_MEMHOSTREGISTER_PORTABLE));
	EXPECT(.what = "alloc", .space = "registered", .device = NO_DEVICE,
	       .address = (uintptr_t)memory, .bytes = sizeof memory, .name = "flags",
	       .value = CU_MEMHOSTREGISTER_PORTABLE);
	CALL(call_cuMemHostUnregister(memory));
	expect_free("registered", (uintptr_t)memory);
}

void case_cuMemHostUnregister(void)
{
	case_cuMemHostRegister_v2();
}

/* ---------- stream-ordered memory ---------- */

static void expect_stream(CUdeviceptr pointer, uint64_t bytes)
{
	EXPECT(.what = "alloc", .space = "stream", .address = pointer, .bytes = bytes,
	       .stream = stream);
}

static void expect_stream_free(CUdeviceptr pointer)
{
	EXPECT(.what = "free", .space = "stream", .device = NO_DEVICE, .address = pointer,
	       .stream = stream);
}

#define ASYNC_PAIR(twin)                                                   \
	void case_cuMemAllocAsync##twin(void)                              \
	{                                                                  \
		CUdeviceptr pointer;                                       \
		CALL(call_cuMemAllocAsync##twin(&pointer, 11000, stream)); \
		expect_stream(pointer, 11000);                             \
		CALL(call_cuMemFreeAsync##twin(pointer, stream));          \
		expect_stream_free(pointer);                               \
	}                                                                  \
	void case_cuMemFreeAsync##twin(void)                               \
	{                                                                  \
		case_cuMemAllocAsync##twin();                              \
		CALL(call_cuMemFreeAsync##twin(0, stream));                \
	}
ASYNC_PAIR()
ASYNC_PAIR(_ptsz)

static CUmemoryPool create_pool(int device)
{
	CUmemoryPool pool;
	CUmemPoolProps properties = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	CALL(call_cuMemPoolCreate(&pool, &properties));
	EXPECT(.what = "pool_create", .space = "stream", .device = device,
	       .address = (uintptr_t)pool, .name = "is_default", .value = 0);
	return pool;
}

static void destroy_pool(CUmemoryPool pool)
{
	CALL(call_cuMemPoolDestroy(pool));
	EXPECT(.what = "pool_destroy", .space = "stream", .device = NO_DEVICE,
	       .address = (uintptr_t)pool);
}

#define FROM_POOL(twin)                                                                        \
	void case_cuMemAllocFromPoolAsync##twin(void)                                          \
	{                                                                                      \
		CUmemoryPool pool = create_pool(0);                                            \
		CUdeviceptr pointer;                                                           \
		CALL(call_cuMemAllocFromPoolAsync##twin(&pointer, 12000, pool, stream));       \
		EXPECT(.what = "alloc", .space = "stream", .address = pointer, .bytes = 12000, \
		       .stream = stream, .name = "pool", .value = (uintptr_t)pool);            \
		CALL(call_cuMemFreeAsync##twin(pointer, stream));                              \
		expect_stream_free(pointer);                                                   \
		destroy_pool(pool);                                                            \
	}
FROM_POOL()
FROM_POOL(_ptsz)

void case_cuMemPoolCreate(void)
{
	destroy_pool(create_pool(1));
}

void case_cuMemPoolDestroy(void)
{
	destroy_pool(create_pool(0));
}

void case_cuMemPoolTrimTo(void)
{
	CUmemoryPool pool = create_pool(0);
	CALL(call_cuMemPoolTrimTo(pool, 4096));
	EXPECT(.what = "pool_trim", .space = "stream", .device = NO_DEVICE,
	       .address = (uintptr_t)pool, .bytes = 4096);
	destroy_pool(pool);
}

static void expect_attribute(const char *what, CUmemoryPool pool, CUmemPool_attribute attribute,
			     uint64_t value)
{
	EXPECT(.what = what, .space = "stream", .device = NO_DEVICE, .address = (uintptr_t)pool,
	       .bytes = value, .name = "attribute", .value = attribute);
}

void case_cuMemPoolSetAttribute(void)
{
	CUmemoryPool pool = create_pool(0);
	cuuint64_t threshold = 64 * MIB;
	struct { /* the first attributes are ints: what lies behind is not looked at */
		int value, behind;
	} off = {0, -1};
	CALL(call_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	expect_attribute("pool_set", pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, threshold);
	CALL(call_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off));
	expect_attribute("pool_set", pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
	destroy_pool(pool);
}

void case_cuMemPoolGetAttribute(void)
{
	CUmemoryPool pool = create_pool(0);
	cuuint64_t bytes = 1;
	struct {
		int value, behind;
	} reuse = {0, -1};
	CALL(call_cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &bytes));
	expect_attribute("pool_read", pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, bytes);
	CALL(call_cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
					&reuse));
	expect_attribute("pool_read", pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
			 (unsigned)reuse.value);
	destroy_pool(pool);
}

static void expect_pool(CUmemoryPool pool, int device, uint64_t is_default)
{
	EXPECT(.what = "pool_create", .space = "stream", .device = device,
	       .address = (uintptr_t)pool, .name = "is_default", .value = is_default);
}

void case_cuDeviceGetDefaultMemPool(void)
{
	CUmemoryPool pool;
	CALL(call_cuDeviceGetDefaultMemPool(&pool, 1));
	expect_pool(pool, 1, 1);
}

void case_cuDeviceGetMemPool(void)
{
	CUmemoryPool pool;
	CALL(call_cuDeviceGetMemPool(&pool, 1));
	expect_pool(pool, 1, 2);
}

void case_cuDeviceSetMemPool(void)
{
	CUmemoryPool pool = create_pool(1);
	CALL(call_cuDeviceSetMemPool(1, pool));
	expect_pool(pool, 1, 2);
	destroy_pool(pool);
}

/* ---------- virtual memory ---------- */

static CUmemGenericAllocationHandle create_handle(int device, uint64_t bytes)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	CALL(call_cuMemCreate(&handle, bytes, &properties, 0));
	EXPECT(.what = "alloc", .space = "vmm", .device = device, .address = handle,
	       .bytes = bytes);
	return handle;
}

static void release_handle(CUmemGenericAllocationHandle handle)
{
	CALL(call_cuMemRelease(handle));
	expect_free("vmm", handle);
}

static CUdeviceptr reserve(uint64_t bytes)
{
	CUdeviceptr address;
	CALL(call_cuMemAddressReserve(&address, bytes, 0, 0, 0));
	EXPECT(.what = "reserve", .space = "vmm", .device = NO_DEVICE, .address = address,
	       .bytes = bytes);
	return address;
}

static void unreserve(CUdeviceptr address, uint64_t bytes)
{
	CALL(call_cuMemAddressFree(address, bytes));
	EXPECT(.what = "release", .space = "vmm", .device = NO_DEVICE, .address = address,
	       .bytes = bytes);
}

static void map(CUdeviceptr address, uint64_t bytes, CUmemGenericAllocationHandle handle)
{
	CALL(call_cuMemMap(address, bytes, 0, handle, 0));
	EXPECT(.what = "map", .space = "vmm", .device = NO_DEVICE, .address = address,
	       .bytes = bytes, .name = "handle", .value = handle);
}

static void unmap(CUdeviceptr address, uint64_t bytes)
{
	CALL(call_cuMemUnmap(address, bytes));
	EXPECT(.what = "unmap", .space = "vmm", .device = NO_DEVICE, .address = address,
	       .bytes = bytes);
}

void case_cuMemCreate(void)
{
	release_handle(create_handle(1, 4 * MIB));
}

void case_cuMemRelease(void)
{
	release_handle(create_handle(0, 2 * MIB));
}

void case_cuMemAddressReserve(void)
{
	unreserve(reserve(64 * MIB), 64 * MIB);
}

void case_cuMemAddressFree(void)
{
	unreserve(reserve(2 * MIB), 2 * MIB);
}

void case_cuMemMap(void)
{
	CUdeviceptr address = reserve(8 * MIB);
	CUmemGenericAllocationHandle handle = create_handle(0, 4 * MIB);
	map(address + 2 * MIB, 4 * MIB, handle);
	release_handle(handle);
	unmap(address + 2 * MIB, 4 * MIB);
	unreserve(address, 8 * MIB);
}

void case_cuMemUnmap(void)
{
	case_cuMemMap();
}

void case_cuMemRetainAllocationHandle(void)
{
	CUdeviceptr address = reserve(2 * MIB);
	CUmemGenericAllocationHandle handle = create_handle(0, 2 * MIB), again;
	map(address, 2 * MIB, handle);
	CALL(call_cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(address + 4096)));
	EXPECT(.what = "retain", .space = "vmm", .device = NO_DEVICE, .address = again);
	release_handle(handle);
	unmap(address, 2 * MIB);
	release_handle(again);
	unreserve(address, 2 * MIB);
}

/* ---------- what a device says of itself ---------- */

void case_cuMemGetInfo_v2(void)
{
	size_t unused_bytes, total_bytes;
	CALL(call_cuMemGetInfo_v2(&unused_bytes, &total_bytes));
	EXPECT(.what = "meminfo", .bytes = unused_bytes, .name = "total_bytes",
	       .value = total_bytes);
}

/* No event: it is in the report. The device must have been used to be there. */
static void use_device_1(void)
{
	CALL(call_cuCtxSetCurrent(context_1));
	alloc_on(1);
	CALL(call_cuCtxSetCurrent(context_0));
}

void case_cuDeviceGetName(void)
{
	char name[100];
	CALL(call_cuDeviceGetName(name, sizeof name, 1));
	use_device_1();
	printf("{\"row\": \"cuDeviceGetName\", \"report\": {\"device\": 1, \"name\": \"%s\"}}\n",
	       name);
}

void case_cuDeviceTotalMem_v2(void)
{
	size_t bytes;
	CALL(call_cuDeviceTotalMem_v2(&bytes, 1));
	use_device_1();
	printf("{\"row\": \"cuDeviceTotalMem_v2\", \"report\": {\"device\": 1, \"total_bytes\": "
	       "%zu}}\n",
	       bytes);
}

/* ---------- stream capture ---------- */

/* `graph`: what came of it; NULL: it begins. */
static void expect_capture(CUgraph graph)
{
	EXPECT(.what = "capture", .stream = stream, .address = (uintptr_t)graph, .name = "begins", .value = !graph);
}

/* It goes by the stream until it is a graph. */
static void expect_captured(const char *what, CUdeviceptr pointer, uint64_t bytes)
{
	EXPECT(.what = what, .space = "stream", .address = pointer, .bytes = bytes, .name = "graph",
	       .value = (uintptr_t)stream);
}

#define CAPTURE(twin)                                                                             \
	void case_cuStreamBeginCapture_v2##twin(void)                                             \
	{                                                                                         \
		CUdeviceptr pointer;                                                              \
		CUgraph graph;                                                                    \
		CALL(call_cuStreamBeginCapture_v2##twin(stream, CU_STREAM_CAPTURE_MODE_RELAXED)); \
		expect_capture(NULL);                                                             \
		CALL(call_cuMemAllocAsync##twin(&pointer, 600, stream));                          \
		expect_captured("graph_alloc", pointer, 600);                                     \
		CALL(call_cuMemFreeAsync##twin(pointer, stream));                                 \
		expect_captured("graph_free", pointer, 0);                                        \
		CALL(call_cuStreamEndCapture##twin(stream, &graph));                              \
		expect_capture(graph);                                                            \
	}                                                                                         \
	void case_cuStreamEndCapture##twin(void)                                                  \
	{                                                                                         \
		case_cuStreamBeginCapture_v2##twin();                                             \
	}
CAPTURE()
CAPTURE(_ptsz)

#define CAPTURE_OTHERWISE(twin)                                                                      \
	static void end_capture##twin(void)                                                          \
	{                                                                                            \
		CUgraph graph;                                                                       \
		expect_capture(NULL);                                                                \
		CALL(call_cuStreamEndCapture##twin(stream, &graph));                                 \
		expect_capture(graph);                                                               \
	}                                                                                            \
	void case_cuStreamBeginCapture##twin(void)                                                   \
	{                                                                                            \
		CALL(call_cuStreamBeginCapture##twin(stream));                                       \
		end_capture##twin();                                                                 \
	}                                                                                            \
	void case_cuStreamBeginCaptureToGraph##twin(void)                                            \
	{                                                                                            \
		CUgraph graph;                                                                       \
		CALL(HELPER(cuGraphCreate)(&graph, 0));                                              \
		CALL(call_cuStreamBeginCaptureToGraph##twin(stream, graph, NULL, NULL, 0,            \
							    CU_STREAM_CAPTURE_MODE_RELAXED));        \
		end_capture##twin();                                                                 \
	}
CAPTURE_OTHERWISE()
CAPTURE_OTHERWISE(_ptsz)

/* ---------- look-ups ---------- */

static void use_found(void *alloc, void *release)
{
	CUdeviceptr pointer;
	CALL(((__typeof__(cuMemAlloc_v2) *)alloc)(&pointer, 1234));
	EXPECT(.what = "alloc", .space = "device", .address = pointer, .bytes = 1234);
	CALL(((__typeof__(cuMemFree_v2) *)release)(pointer));
	expect_free("device", pointer);
}

void case_cuGetProcAddress(void)
{
	void *alloc, *release;
	CALL(call_cuGetProcAddress("cuMemAlloc", &alloc, VERSION, 0));
	CALL(call_cuGetProcAddress("cuMemFree", &release, VERSION, 0));
	use_found(alloc, release);
}

/* Also what must pass untouched: no name, an unknown name, a function that is not in the table. */
void case_cuGetProcAddress_v2(void)
{
	void *alloc, *release, *other;
	CUdriverProcAddressQueryResult found;
	CALL(call_cuGetProcAddress_v2("cuMemAlloc", &alloc, VERSION, 0, &found));
	CALL(call_cuGetProcAddress_v2("cuMemFree", &release, VERSION, 0, NULL));
	use_found(alloc, release);
	call_cuGetProcAddress_v2("", &other, 0, 0, &found);
	call_cuGetProcAddress_v2("cuNoSuchFunction", &other, VERSION, 0, &found);
	call_cuGetProcAddress_v2(NULL, &other, VERSION, 0, &found);
	call_cuGetProcAddress_v2("cuMemAlloc", NULL, VERSION, 0, NULL);
	CALL(call_cuGetProcAddress_v2("cuMemcpyDtoH", &other, VERSION, 0, &found));
	CALL(other != dlsym(library, "cuMemcpyDtoH_v2"));
}

#include "driver_arrays.h"
#include "driver_code.h"
#include "driver_contexts.h"
#include "driver_graphs.h"
#include "driver_shared.h"

/* ---------- finding the functions ---------- */

/* The version at which a base name means this function, where the newest is not it. */
static int version_of(const char *symbol)
{
	static const struct {
		const char *symbol;
		int version;
	} older[] = {
		{"cuCtxCreate", 3020},
		{"cuCtxCreate_v2", 11000},
		{"cuCtxCreate_v3", 12000},
		{"cuDevicePrimaryCtxRelease", 7000},
		{"cuDevicePrimaryCtxReset", 7000},
		{"cuGetProcAddress", 11030},
		{"cuGraphAddNode", 12020},
		{"cuGraphInstantiate", 10000},
		{"cuGraphInstantiate_v2", 11000},
		{"cuIpcOpenMemHandle", 4010},
	};
	for (size_t i = 0; i < sizeof older / sizeof *older; i++)
		if (!strcmp(older[i].symbol, symbol))
			return older[i].version;
	return VERSION;
}

static void *find(const struct row *row, const char *way)
{
	const char *suffix = strrchr(row->symbol, '_');
	int is_twin = suffix && (!strcmp(suffix, "_ptsz") || !strcmp(suffix, "_ptds"));
	cuuint64_t flags = is_twin || !strcmp(way, "getproc_thread")
				   ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
				   : 0;
	void *found = NULL;
	if (!strcmp(way, "linked"))
		return row->linked;
	if (!strcmp(way, "dlsym"))
		return dlsym(library, row->symbol);
	if (!strcmp(way, "getproc_v1"))
		HELPER(cuGetProcAddress)(row->base, &found, version_of(row->symbol), flags);
	else
		HELPER(cuGetProcAddress_v2)
	(row->base, &found, version_of(row->symbol), flags, NULL);
	return found;
}

int main(int argc, char **argv)
{
	if (argc < 2 || !(library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))) {
		fprintf(stderr, "usage: driver_calls "
				"linked|dlsym|getproc|getproc_thread|getproc_v1 [SYMBOL...]\n");
		return 2;
	}
	for (size_t i = 0; i < ROW_COUNT; i++)
		*rows[i].call = find(&rows[i], argv[1]);
	CALL(HELPER(cuInit)(0));
	CALL(call_cuDevicePrimaryCtxRetain(&context_0, 0));
	CALL(call_cuDevicePrimaryCtxRetain(&context_1, 1));
	CALL(call_cuCtxSetCurrent(context_0));
	CALL(HELPER(cuStreamCreate)(&stream, 0));
	run_rows(rows, ROW_COUNT, argc - 2, argv + 2);
	return 0;
}
