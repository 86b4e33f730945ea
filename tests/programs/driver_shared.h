/* Cases of driver_calls.c: memory that is shared with other processes, devices and APIs. What comes
 * in is external: it is known, and counted by nobody but its owner. */
#ifndef TESTS_DRIVER_SHARED_H
#define TESTS_DRIVER_SHARED_H

#include <fcntl.h>
#include <unistd.h>

static void expect_export(const char *space, uint64_t address)
{
	EXPECT(.what = "export", .space = space, .address = address);
}

/* ---------- physical memory ---------- */

void case_cuMemExportToShareableHandle(void)
{
	CUmemGenericAllocationHandle handle = create_handle(0, 2 * MIB), imported;
	int descriptor;
	CALL(call_cuMemExportToShareableHandle(&descriptor, handle,
					       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	expect_export("vmm", handle);
	CALL(call_cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)descriptor,
						 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	expect_external("vmm", imported, 0);
	close(descriptor);
	release_handle(handle);
	release_handle(imported);
}

void case_cuMemImportFromShareableHandle(void)
{
	case_cuMemExportToShareableHandle();
}

void case_cuMemSetAccess(void)
{
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
				  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr address = reserve(2 * MIB);
	CUmemGenericAllocationHandle handle = create_handle(0, 2 * MIB);
	map(address, 2 * MIB, handle);
	CALL(call_cuMemSetAccess(address, 2 * MIB, &access, 1));
	unmap(address, 2 * MIB);
	release_handle(handle);
	unreserve(address, 2 * MIB);
}

/* ---------- multicast ---------- */

static CUmemGenericAllocationHandle create_multicast(void)
{
	CUmemGenericAllocationHandle multicast;
	CUmulticastObjectProp properties = {.numDevices = 2, .size = 2 * MIB};
	CALL(call_cuMulticastCreate(&multicast, &properties));
	expect_external("vmm", multicast, 2 * MIB);
	CALL(call_cuMulticastAddDevice(multicast, 0));
	CALL(call_cuMulticastAddDevice(multicast, 1));
	return multicast;
}

static void expect_bind(CUmemGenericAllocationHandle multicast, uint64_t memory)
{
	EXPECT(.what = "bind", .space = "vmm", .address = multicast, .bytes = 2 * MIB,
	       .name = "shows", .value = memory);
}

static void unbind(CUmemGenericAllocationHandle multicast, int device)
{
	CALL(call_cuMulticastUnbind(multicast, device, 0, 2 * MIB));
	EXPECT(.what = "unbind", .space = "vmm", .device = device, .address = multicast,
	       .bytes = 2 * MIB);
}

/* It is mapped as any handle is; what it shows is counted where it was created. */
void case_cuMulticastBindMem(void)
{
	CUmemGenericAllocationHandle multicast = create_multicast();
	CUmemGenericAllocationHandle memory = create_handle(1, 2 * MIB);
	CUdeviceptr address = reserve(2 * MIB);
	CALL(call_cuMulticastBindMem(multicast, 0, memory, 0, 2 * MIB, 0));
	expect_bind(multicast, memory);
	map(address, 2 * MIB, multicast);
	unmap(address, 2 * MIB);
	unbind(multicast, 1);
	unreserve(address, 2 * MIB);
	release_handle(memory);
	release_handle(multicast);
}

void case_cuMulticastBindAddr(void)
{
	CUmemGenericAllocationHandle multicast = create_multicast();
	CUmemGenericAllocationHandle memory = create_handle(0, 2 * MIB);
	CUdeviceptr address = reserve(2 * MIB);
	map(address, 2 * MIB, memory);
	CALL(call_cuMulticastBindAddr(multicast, 0, address, 2 * MIB, 0));
	expect_bind(multicast, address);
	unbind(multicast, 0);
	unmap(address, 2 * MIB);
	release_handle(memory);
	unreserve(address, 2 * MIB);
	release_handle(multicast);
}

void case_cuMulticastCreate(void)
{
	release_handle(create_multicast());
}

void case_cuMulticastAddDevice(void)
{
	release_handle(create_multicast());
}

void case_cuMulticastUnbind(void)
{
	case_cuMulticastBindMem();
}

/* ---------- pools ---------- */

static CUmemoryPool share_pool(CUmemoryPool pool)
{
	CUmemoryPool imported;
	int descriptor;
	CALL(call_cuMemPoolExportToShareableHandle(&descriptor, pool,
						   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	expect_export("stream", (uintptr_t)pool);
	CALL(call_cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)descriptor,
						     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	expect_pool(imported, NO_DEVICE, 3);
	close(descriptor);
	return imported;
}

void case_cuMemPoolExportToShareableHandle(void)
{
	CUmemoryPool pool = create_pool(0);
	destroy_pool(share_pool(pool));
	destroy_pool(pool);
}

void case_cuMemPoolImportFromShareableHandle(void)
{
	case_cuMemPoolExportToShareableHandle();
}

void case_cuMemPoolExportPointer(void)
{
	CUmemoryPool pool = create_pool(0), imported = share_pool(pool);
	CUmemPoolPtrExportData data;
	CUdeviceptr pointer, seen;
	CALL(call_cuMemAllocFromPoolAsync(&pointer, 12000, pool, stream));
	EXPECT(.what = "alloc", .space = "stream", .address = pointer, .bytes = 12000,
	       .stream = stream, .name = "pool", .value = (uintptr_t)pool);
	CALL(call_cuMemPoolExportPointer(&data, pointer));
	expect_export("device", pointer);
	CALL(call_cuMemPoolImportPointer(&seen, imported, &data));
	expect_external("device", seen, 0);
	CALL(call_cuMemFreeAsync(seen, stream));
	expect_stream_free(seen);
	CALL(call_cuMemFreeAsync(pointer, stream));
	expect_stream_free(pointer);
	destroy_pool(imported);
	destroy_pool(pool);
}

void case_cuMemPoolImportPointer(void)
{
	case_cuMemPoolExportPointer();
}

void case_cuMemGetDefaultMemPool(void)
{
	CUmemoryPool pool;
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
	CALL(call_cuMemGetDefaultMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
	expect_pool(pool, 1, 1);
}

void case_cuMemGetMemPool(void)
{
	CUmemoryPool pool;
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
	CALL(call_cuMemGetMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
	expect_pool(pool, 1, 2);
}

void case_cuMemSetMemPool(void)
{
	CUmemoryPool pool = create_pool(1);
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
	CALL(call_cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
	expect_pool(pool, 1, 2);
	destroy_pool(pool);
}

void case_cuMemPoolSetAccess(void)
{
	CUmemoryPool pool = create_pool(0);
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
				  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CALL(call_cuMemPoolSetAccess(pool, &access, 1));
	destroy_pool(pool);
}

void case_cuMemPoolGetAccess(void)
{
	CUmemoryPool pool = create_pool(0);
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
	CUmemAccess_flags flags;
	CALL(call_cuMemPoolGetAccess(&flags, pool, &location));
	destroy_pool(pool);
}

/* ---------- IPC ---------- */

/* Opened twice, it is at one address, and closed twice. */
static void open_and_close(CUresult (*open_handle)(CUdeviceptr *, CUipcMemHandle, unsigned))
{
	CUdeviceptr pointer = alloc_in(NULL, 0), first, second;
	CUipcMemHandle shared;
	CALL(call_cuIpcGetMemHandle(&shared, pointer));
	expect_export("device", pointer);
	CALL(open_handle(&first, shared, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	expect_external("device", first, 0);
	CALL(open_handle(&second, shared, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	expect_external("device", second, 0);
	CALL(call_cuIpcCloseMemHandle(first));
	expect_free("device", first);
	CALL(call_cuIpcCloseMemHandle(second));
	expect_free("device", second);
	free_device(pointer);
}

void case_cuIpcGetMemHandle(void)
{
	open_and_close(call_cuIpcOpenMemHandle_v2);
}

void case_cuIpcOpenMemHandle(void)
{
	open_and_close(call_cuIpcOpenMemHandle);
}

void case_cuIpcOpenMemHandle_v2(void)
{
	open_and_close(call_cuIpcOpenMemHandle_v2);
}

void case_cuIpcCloseMemHandle(void)
{
	open_and_close(call_cuIpcOpenMemHandle_v2);
}

/* ---------- other APIs ---------- */

static CUexternalMemory import_external(uint64_t bytes)
{
	CUexternalMemory memory;
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC descriptor = {
		.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
		.handle.fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
		.size = bytes};
	CALL(call_cuImportExternalMemory(&memory, &descriptor));
	expect_external("external", (uintptr_t)memory, bytes);
	return memory;
}

static void destroy_external(CUexternalMemory memory)
{
	CALL(call_cuDestroyExternalMemory(memory));
	expect_free("external", (uintptr_t)memory);
}

void case_cuImportExternalMemory(void)
{
	destroy_external(import_external(64 * MIB));
}

void case_cuDestroyExternalMemory(void)
{
	destroy_external(import_external(MIB));
}

void case_cuExternalMemoryGetMappedBuffer(void)
{
	CUexternalMemory memory = import_external(64 * MIB);
	CUdeviceptr pointer;
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC descriptor = {.offset = MIB, .size = 8 * MIB};
	CALL(call_cuExternalMemoryGetMappedBuffer(&pointer, memory, &descriptor));
	expect_external("device", pointer, 8 * MIB);
	free_device(pointer);
	destroy_external(memory);
}

void case_cuExternalMemoryGetMappedMipmappedArray(void)
{
	CUexternalMemory memory = import_external(64 * MIB);
	CUmipmappedArray array;
	CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC descriptor = {
		.arrayDesc = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0}, .numLevels = 1};
	CALL(call_cuExternalMemoryGetMappedMipmappedArray(&array, memory, &descriptor));
	expect_external("array", (uintptr_t)array, 0);
	CALL(call_cuMipmappedArrayDestroy(array));
	expect_free("array", (uintptr_t)array);
	destroy_external(memory);
}

#endif
