/* Calls that fail: prints each code and last error as the program sees them, and, as JSON lines,
 * the events that must follow (calls.h). The output is the same with and without a tracer. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "calls.h"

#define MUCH      ((size_t)1 << 50)
#define NOBODYS   0x1234000
#define UNTOUCHED 0x55

static CUstream stream;

static void told(int code)
{
	printf("%s gives %d\n", current_symbol, code);
}

#define TRY(function, ...)                    \
	do {                                  \
		current_symbol = #function;   \
		code = function(__VA_ARGS__); \
		told(code);                   \
	} while (0)

static void expect_failed(const char *what, const char *space, int device, size_t bytes, int code)
{
	EXPECT(.what = what, .space = space, .device = device, .bytes = bytes, .name = "status",
	       .value = (unsigned)code);
}

static void expect_failed_free(const char *what, const char *space, uint64_t address, size_t bytes,
			       int code)
{
	EXPECT(.what = what, .space = space, .device = NO_DEVICE, .address = address,
	       .bytes = bytes);
	EXPECT(.what = "free_failed", .space = space, .device = NO_DEVICE, .address = address,
	       .bytes = bytes, .name = "status", .value = (unsigned)code);
}

static void fail_to_allocate(void)
{
	int code;
	CUdeviceptr pointer = UNTOUCHED;
	size_t pitch;
	void *host;
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	TRY(cuMemAlloc_v2, &pointer, MUCH);
	expect_failed("oom", "device", 0, MUCH, code);
	printf("pointer %#llx\n", pointer);
	TRY(cuMemAlloc_v2, &pointer, 0);
	expect_failed("failed", "device", 0, 0, code);
	TRY(cuMemAlloc_v2, NULL, 100);
	expect_failed("failed", "device", 0, 100, code);
	TRY(cuMemAllocPitch_v2, &pointer, &pitch, MUCH, 2, 4);
	expect_failed("oom", "device", 0, MUCH * 2, code);
	TRY(cuMemAllocManaged, &pointer, 100, 77);
	expect_failed("failed", "managed", 0, 100, code);
	TRY(cuMemAllocAsync, &pointer, MUCH, stream);
	expect_failed("oom", "stream", 0, MUCH, code);
	TRY(cuMemCreate, &handle, MUCH, &properties, 0);
	expect_failed("oom", "vmm", 0, MUCH, code);
	TRY(cuMemCreate, &handle, 5, &properties, 0);
	expect_failed("failed", "vmm", 0, 5, code);
	TRY(cuMemHostAlloc, &host, 0, 0);
	expect_failed("failed", "pinned", NO_DEVICE, 0, code);
}

/* Pointers that nobody knows: the call goes through, and its code comes back. */
static void fail_to_free(void)
{
	int code;
	CUmemoryPool pool;
	CUdeviceptr pointer = NOBODYS;
	TRY(cuMemFree_v2, pointer);
	expect_failed_free("free", "device", pointer, 0, code);
	TRY(cuMemFreeAsync, pointer, stream);
	expect_failed_free("free", "stream", pointer, 0, code);
	TRY(cuMemFreeHost, (void *)pointer);
	expect_failed_free("free", "pinned", pointer, 0, code);
	TRY(cuMemHostUnregister, (void *)pointer);
	expect_failed_free("free", "registered", pointer, 0, code);
	TRY(cuMemRelease, 77);
	expect_failed_free("free", "vmm", 77, 0, code);
	TRY(cuMemUnmap, 0x200000, 0x200000);
	expect_failed_free("unmap", "vmm", 0x200000, 0x200000, code);
	TRY(cuMemAddressFree, 0x200000, 0x200000);
	expect_failed_free("release", "vmm", 0x200000, 0x200000, code);
	TRY(cuDeviceGetDefaultMemPool, &pool, 0);
	EXPECT(.what = "pool_create", .space = "stream", .address = (uintptr_t)pool);
	TRY(cuMemPoolDestroy, pool);
	expect_failed_free("pool_destroy", "stream", (uintptr_t)pool, 0, code);
	/* These leave nothing behind: a failure of theirs is no event of memory. */
	TRY(cuMemMap, 0x200000, 0x200000, 0, 77, 0);
	TRY(cuMemRetainAllocationHandle, NULL, (void *)pointer);
	TRY(cuMemPoolTrimTo, NULL, 0);
}

/* Arrays, imports, and what has no size: a failure of the latter is no event. */
static void fail_elsewhere(void)
{
	int code;
	CUDA_ARRAY3D_DESCRIPTOR large = {MUCH / 8, 2, 0, CU_AD_FORMAT_FLOAT, 2, 0};
	CUarray array = (CUarray)(uintptr_t)NOBODYS;
	CUmipmappedArray mipmap = (CUmipmappedArray)(uintptr_t)NOBODYS;
	CUexternalMemory memory;
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC closed = {
		.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle.fd = -1, .size = 4096};
	CUdeviceptr pointer;
	CUmemGenericAllocationHandle handle;
	CUipcMemHandle nobodys = {{0}};
	TRY(cuArray3DCreate_v2, &array, &large);
	expect_failed("oom", "array", 0, MUCH * 2, code);
	TRY(cuMipmappedArrayCreate, &mipmap, &large, 0);
	expect_failed("failed", "array", 0, 0, code);
	TRY(cuArray3DCreate_v2, &array, NULL);
	expect_failed("failed", "array", 0, 0, code);
	TRY(cuArrayDestroy, array);
	expect_failed_free("free", "array", NOBODYS, 0, code);
	TRY(cuMipmappedArrayDestroy, mipmap);
	expect_failed_free("free", "array", NOBODYS, 0, code);
	TRY(cuImportExternalMemory, &memory, &closed);
	expect_failed("failed", "external", 0, 4096, code);
	TRY(cuIpcOpenMemHandle_v2, &pointer, nobodys, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	expect_failed("failed", "external", 0, 0, code);
	TRY(cuIpcCloseMemHandle, NOBODYS);
	expect_failed_free("free", "device", NOBODYS, 0, code);
	TRY(cuMemImportFromShareableHandle, &handle, (void *)-1,
	    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	expect_failed("failed", "external", 0, 0, code);
	TRY(cuIpcGetMemHandle, &nobodys, NOBODYS);
	TRY(cuModuleUnload, NULL);
	TRY(cuCtxDestroy_v2, NULL);
	TRY(cuGraphLaunch, NULL, stream);
	TRY(cuGraphExecDestroy, NULL);
}

static void fail_in_runtime(void)
{
	int code;
	void *pointer = (void *)UNTOUCHED;
	TRY(cudaMalloc, &pointer, MUCH);
	expect_failed("oom", "device", 0, MUCH, code);
	printf("pointer %p\n", pointer);
	TRY(cudaPeekAtLastError);
	TRY(cudaGetLastError);
	TRY(cudaGetLastError);
	TRY(cudaMallocAsync, &pointer, MUCH, (cudaStream_t)stream);
	expect_failed("oom", "stream", 0, MUCH, code);
	TRY(cudaFree, (void *)NOBODYS);
	expect_failed_free("free", "device", NOBODYS, 0, code);
	TRY(cudaFreeHost, (void *)NOBODYS);
	expect_failed_free("free", "pinned", NOBODYS, 0, code);
	TRY(cudaGetLastError);
}

/* A free that is refused because a capture is under way: the memory is still there. */
static void fail_while_capturing(void)
{
	int code;
	CUdeviceptr pointer;
	CUgraph graph;
	TRY(cuMemAlloc_v2, &pointer, 4242);
	EXPECT(.what = "alloc", .space = "device", .address = pointer, .bytes = 4242);
	TRY(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	EXPECT(.what = "capture", .stream = stream);
	TRY(cuMemFree_v2, pointer);
	expect_failed_free("free", "device", pointer, 0, code);
	TRY(cuStreamEndCapture, stream, &graph);
	EXPECT(.what = "capture", .stream = stream); /* it is over all the same */
}

int main(void)
{
	CUcontext context;
	CALL(cuInit(0));
	CALL(cuDevicePrimaryCtxRetain(&context, 0));
	CALL(cuCtxSetCurrent(context));
	CALL(cuStreamCreate(&stream, 0));
	library = NULL;
	fail_to_allocate();
	fail_to_free();
	fail_elsewhere();
	fail_in_runtime();
	fail_while_capturing();
	return 0;
}
