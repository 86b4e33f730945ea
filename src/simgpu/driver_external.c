/*
 * Memory of other APIs: whatever open file descriptor a program brings stands for one of Vulkan's
 * allocations.  It belongs to that API, so nothing is charged.  Owns the imported objects.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver.h"

struct CUextMemory_st {
	size_t bytes;
	int descriptor;
};

CUresult cuImportExternalMemory(CUexternalMemory *memory,
				const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *descriptor)
{
	int device;
	CUresult result = context_require(&device);

	if (result != CUDA_SUCCESS)
		return result;
	if (memory == NULL || descriptor == NULL || descriptor->size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (descriptor->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (fcntl(descriptor->handle.fd, F_GETFD) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct CUextMemory_st *made = malloc(sizeof(*made));
	if (made == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*made = (struct CUextMemory_st){descriptor->size, descriptor->handle.fd};
	*memory = made;
	return CUDA_SUCCESS;
}

static bool is_inside(const struct CUextMemory_st *memory, size_t offset, size_t bytes)
{
	return bytes > 0 && offset <= memory->bytes && bytes <= memory->bytes - offset;
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *address, CUexternalMemory memory,
					 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *descriptor)
{
	if (address == NULL || memory == NULL || descriptor == NULL ||
	    !is_inside(memory, descriptor->offset, descriptor->size))
		return CUDA_ERROR_INVALID_VALUE;
	struct block block = {
		.size_bytes = descriptor->size,
		.span_bytes = sim_round_up(descriptor->size, DRIVER_UNIT_BYTES),
		.kind = BLOCK_IMPORTED,
		.device = context_device(),
	};
	pthread_mutex_lock(&driver_lock);
	CUresult result = block_insert(&block, DRIVER_UNIT_BYTES);
	pthread_mutex_unlock(&driver_lock);
	if (result == CUDA_SUCCESS)
		*address = block.address;
	return result;
}

CUresult
cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *array, CUexternalMemory memory,
					const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *descriptor)
{
	if (array == NULL || memory == NULL || descriptor == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	return mipmap_import(array, &descriptor->arrayDesc);
}

/* The descriptor was the driver's from the import on. */
CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
	if (memory == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	close(memory->descriptor);
	free(memory);
	return CUDA_SUCCESS;
}
