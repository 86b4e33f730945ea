/* Cases of runtime_calls.c: memory that is shared with other processes and APIs. */
#ifndef TESTS_RUNTIME_SHARED_H
#define TESTS_RUNTIME_SHARED_H

#include <fcntl.h>
#include <unistd.h>

static void expect_export(const char *space, const void *address)
{
	EXPECT(.what = "export", .space = space, .address = (uintptr_t)address);
}

/* ---------- pools ---------- */

static cudaMemPool_t share_pool(cudaMemPool_t pool)
{
	cudaMemPool_t imported;
	int descriptor;
	CALL(RT(cudaMemPoolExportToShareableHandle)(&descriptor, pool,
						    cudaMemHandleTypePosixFileDescriptor, 0));
	expect_export("stream", pool);
	CALL(RT(cudaMemPoolImportFromShareableHandle)(&imported, (void *)(intptr_t)descriptor,
						      cudaMemHandleTypePosixFileDescriptor, 0));
	expect_pool(imported, NO_DEVICE, 3);
	close(descriptor);
	return imported;
}

void case_cudaMemPoolExportToShareableHandle(void)
{
	cudaMemPool_t pool = create_pool(0);
	destroy_pool(share_pool(pool));
	destroy_pool(pool);
}

void case_cudaMemPoolImportFromShareableHandle(void)
{
	case_cudaMemPoolExportToShareableHandle();
}

void case_cudaMemPoolExportPointer(void)
{
	cudaMemPool_t pool = create_pool(0), imported = share_pool(pool);
	struct cudaMemPoolPtrExportData data;
	void *pointer, *seen;
	CALL(RT(cudaMallocFromPoolAsync)(&pointer, 12000, pool, stream));
	EXPECT(.what = "alloc", .space = "stream", .address = (uintptr_t)pointer, .bytes = 12000,
	       .stream = stream, .name = "pool", .value = (uintptr_t)pool);
	CALL(RT(cudaMemPoolExportPointer)(&data, pointer));
	expect_export("device", pointer);
	CALL(RT(cudaMemPoolImportPointer)(&seen, imported, &data));
	expect_external("device", (uintptr_t)seen, 0);
	CALL(RT(cudaFreeAsync)(seen, stream));
	expect_stream_free(seen);
	CALL(RT(cudaFreeAsync)(pointer, stream));
	expect_stream_free(pointer);
	destroy_pool(imported);
	destroy_pool(pool);
}

void case_cudaMemPoolImportPointer(void)
{
	case_cudaMemPoolExportPointer();
}

void case_cudaMemGetDefaultMemPool(void)
{
	cudaMemPool_t pool;
	struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice, .id = 1};
	CALL(RT(cudaMemGetDefaultMemPool)(&pool, &location, cudaMemAllocationTypePinned));
	expect_pool(pool, 1, 1);
}

void case_cudaMemGetMemPool(void)
{
	cudaMemPool_t pool;
	struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice, .id = 1};
	CALL(RT(cudaMemGetMemPool)(&pool, &location, cudaMemAllocationTypePinned));
	expect_pool(pool, 1, 2);
}

void case_cudaMemSetMemPool(void)
{
	cudaMemPool_t pool = create_pool(1);
	struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice, .id = 1};
	CALL(RT(cudaMemSetMemPool)(&location, cudaMemAllocationTypePinned, pool));
	expect_pool(pool, 1, 2);
	destroy_pool(pool);
}

/* ---------- IPC ---------- */

void case_cudaIpcOpenMemHandle(void)
{
	cudaIpcMemHandle_t shared;
	void *pointer, *opened;
	CALL(RT(cudaMalloc)(&pointer, 5000));
	expect_alloc("device", pointer, 5000);
	CALL(RT(cudaIpcGetMemHandle)(&shared, pointer));
	expect_export("device", pointer);
	CALL(RT(cudaIpcOpenMemHandle)(&opened, shared, cudaIpcMemLazyEnablePeerAccess));
	expect_external("device", (uintptr_t)opened, 0);
	CALL(RT(cudaIpcCloseMemHandle)(opened));
	expect_free("device", (uintptr_t)opened);
	free_device(pointer);
}

void case_cudaIpcGetMemHandle(void)
{
	case_cudaIpcOpenMemHandle();
}

void case_cudaIpcCloseMemHandle(void)
{
	case_cudaIpcOpenMemHandle();
}

/* ---------- other APIs ---------- */

static cudaExternalMemory_t import_external(uint64_t bytes)
{
	cudaExternalMemory_t memory;
	struct cudaExternalMemoryHandleDesc descriptor = {
		.type = cudaExternalMemoryHandleTypeOpaqueFd,
		.handle.fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
		.size = bytes};
	CALL(RT(cudaImportExternalMemory)(&memory, &descriptor));
	expect_external("external", (uintptr_t)memory, bytes);
	return memory;
}

static void destroy_external(cudaExternalMemory_t memory)
{
	CALL(RT(cudaDestroyExternalMemory)(memory));
	expect_free("external", (uintptr_t)memory);
}

void case_cudaImportExternalMemory(void)
{
	destroy_external(import_external(64 * MIB));
}

void case_cudaDestroyExternalMemory(void)
{
	destroy_external(import_external(MIB));
}

void case_cudaExternalMemoryGetMappedBuffer(void)
{
	cudaExternalMemory_t memory = import_external(64 * MIB);
	struct cudaExternalMemoryBufferDesc descriptor = {.offset = MIB, .size = 8 * MIB};
	void *pointer;
	CALL(RT(cudaExternalMemoryGetMappedBuffer)(&pointer, memory, &descriptor));
	expect_external("device", (uintptr_t)pointer, 8 * MIB);
	free_device(pointer);
	destroy_external(memory);
}

void case_cudaExternalMemoryGetMappedMipmappedArray(void)
{
	cudaExternalMemory_t memory = import_external(64 * MIB);
	struct cudaExternalMemoryMipmappedArrayDesc descriptor = {
		.formatDesc = one_float, .extent = {64, 64, 0}, .numLevels = 1};
	cudaMipmappedArray_t array;
	CALL(RT(cudaExternalMemoryGetMappedMipmappedArray)(&array, memory, &descriptor));
	expect_external("array", (uintptr_t)array, 0);
	CALL(RT(cudaFreeMipmappedArray)(array));
	expect_free("array", (uintptr_t)array);
	destroy_external(memory);
}

#endif
