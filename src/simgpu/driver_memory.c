/*
 * Linear, pitched, managed and pinned memory, and the questions about them.  Owns the rules of
 * size and charge: below 1 MiB device memory is taken in units of 512 bytes, above in pages of
 * 2 MiB; managed and pinned memory is the host's and charges no device.  A failed call leaves its
 * outputs untouched.
 */
#include "driver_stream.h"

#define SMALL_LIMIT_BYTES SIM_MIB
#define HOST_PAGE_BYTES   4096
#define PITCH_STEP_BYTES  512

static size_t unit_bytes(enum block_kind kind, size_t size_bytes)
{
	if (kind != BLOCK_LINEAR)
		return HOST_PAGE_BYTES;
	return size_bytes < SMALL_LIMIT_BYTES ? DRIVER_UNIT_BYTES : DRIVER_PAGE_BYTES;
}

/* Of the block's charge, what the program asked for. */
static size_t asked_bytes(const struct block *block)
{
	return block->charge_bytes > 0 ? block->size_bytes : 0;
}

static CUresult charge_and_insert(struct block *block, size_t alignment)
{
	CUresult result =
		device_charge(block->device, block->charge_bytes, asked_bytes(block));

	if (result != CUDA_SUCCESS)
		return result;
	result = block_insert(block, alignment);
	if (result != CUDA_SUCCESS)
		device_uncharge(block->device, block->charge_bytes, asked_bytes(block));
	else if (block->kind != BLOCK_HOST)
		driver_machine.devices[block->device].allocation_count++;
	if (result == CUDA_SUCCESS && block->kind == BLOCK_MANAGED)
		device_note_managed(block->device, (ptrdiff_t)block->size_bytes);
	if (result == CUDA_SUCCESS)
		watch_note_allocation(block, NULL);
	return result;
}

/* Make a block of `kind` on the current device; *address is written on success alone. */
static CUresult allocate(CUdeviceptr *address, size_t size_bytes, enum block_kind kind,
			 unsigned flags)
{
	int device;
	CUresult result = context_require(&device);

	if (result == CUDA_SUCCESS && (address == NULL || size_bytes == 0))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = capture_check_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	size_t alignment = unit_bytes(kind, size_bytes);
	size_t span_bytes = sim_round_up(size_bytes, alignment);
	struct block block = {
		.size_bytes = size_bytes,
		.span_bytes = span_bytes,
		.charge_bytes = kind == BLOCK_LINEAR ? span_bytes : 0,
		.kind = kind,
		.device = device,
		.flags = flags,
		.context = kind == BLOCK_HOST ? NULL : context_of_memory(),
	};
	pthread_mutex_lock(&driver_lock);
	result = charge_and_insert(&block, alignment);
	pthread_mutex_unlock(&driver_lock);
	if (result == CUDA_SUCCESS)
		*address = block.address;
	return result;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size_bytes)
{
	return allocate(address, size_bytes, BLOCK_LINEAR, 0);
}

CUresult cuMemAllocPitch(CUdeviceptr *address, size_t *pitch, size_t width_bytes, size_t height,
			 unsigned element_bytes)
{
	bool is_element = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
	size_t pitch_bytes = sim_round_up(width_bytes, PITCH_STEP_BYTES);

	if (!is_element || pitch == NULL || width_bytes == 0 || height == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (height > SIZE_MAX / pitch_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = allocate(address, pitch_bytes * height, BLOCK_LINEAR, 0);
	if (result == CUDA_SUCCESS)
		*pitch = pitch_bytes;
	return result;
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size_bytes, unsigned flags)
{
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	return allocate(address, size_bytes, BLOCK_MANAGED, flags);
}

/* ---- freeing ---- */

static bool is_freeable(const struct block *block)
{
	bool is_graph = block->kind == BLOCK_GRAPH && block->charge_bytes > 0;
	return block->kind == BLOCK_LINEAR || block->kind == BLOCK_MANAGED ||
	       block->kind == BLOCK_POOL || block->kind == BLOCK_IMPORTED || is_graph;
}

static void free_block(struct block *block)
{
	if (block->pool != NULL)
		pool_return_block(block);
	else
		device_uncharge(block->device, block->charge_bytes, asked_bytes(block));
	if (block->kind == BLOCK_MANAGED)
		device_note_managed(block->device, -(ptrdiff_t)block->size_bytes);
	driver_machine.devices[block->device].free_count++;
	if (block->kind == BLOCK_GRAPH)
		block->charge_bytes = 0; /* the address stays the graph's */
	else
		block_remove(block);
}

static struct block *find_freeable(CUdeviceptr address)
{
	struct block *block = block_find(address);
	bool is_found = block != NULL && block->address == address && is_freeable(block);

	return is_found ? block : NULL;
}

CUresult memory_drop(CUdeviceptr address)
{
	pthread_mutex_lock(&driver_lock);
	struct block *block = find_freeable(address);
	if (block != NULL)
		free_block(block);
	pthread_mutex_unlock(&driver_lock);
	return block != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult memory_free(CUdeviceptr address, CUstream stream)
{
	pthread_mutex_lock(&driver_lock);
	struct block *block = find_freeable(address);
	if (block != NULL) {
		watch_note_release(block, stream);
		free_block(block);
	}
	pthread_mutex_unlock(&driver_lock);
	return block != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFree(CUdeviceptr address)
{
	int device;
	CUresult result = context_require(&device);

	if (result != CUDA_SUCCESS || address == 0)
		return result;
	result = capture_check_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	streams_finish(device); /* a card waits until nobody can use it any more */
	pthread_mutex_unlock(&driver_lock);
	return memory_free(address, NULL);
}

struct search {
	CUcontext context;
	CUdeviceptr found;
};

static void find_of_context(const struct block *block, void *context)
{
	struct search *search = context;

	if (block->context == search->context)
		search->found = block->address;
}

void memory_end(CUcontext context)
{
	struct search search = {.context = context};

	arrays_end(context);
	do {
		search.found = 0;
		block_each(find_of_context, &search);
		if (search.found != 0)
			free_block(block_find(search.found));
	} while (search.found != 0);
}

/* ---- pinned memory of the host ---- */

CUresult cuMemHostAlloc(void **address, size_t size_bytes, unsigned flags)
{
	CUdeviceptr allocated;

	if (address == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = allocate(&allocated, size_bytes, BLOCK_HOST, flags);
	if (result == CUDA_SUCCESS)
		*address = (void *)allocated;
	return result;
}

CUresult cuMemAllocHost(void **address, size_t size_bytes)
{
	return cuMemHostAlloc(address, size_bytes, 0);
}

/* Remove a block of `kind` that starts at `address`, or answer `missing`. */
static CUresult remove_host_block(CUdeviceptr address, enum block_kind kind, CUresult missing)
{
	CUresult result = capture_check_unsafe();

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	struct block *block = block_find(address);
	if (block == NULL || block->address != address || block->kind != kind) {
		result = missing;
	} else {
		if (kind == BLOCK_HOST)
			watch_note_release(block, NULL);
		block_remove(block);
	}
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult cuMemFreeHost(void *address)
{
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS || address == NULL)
		return result;
	return remove_host_block((CUdeviceptr)address, BLOCK_HOST, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemHostRegister(void *address, size_t size_bytes, unsigned flags)
{
	int device;
	CUresult result = context_require(&device);

	if (result == CUDA_SUCCESS && (address == NULL || size_bytes == 0))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = capture_check_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	struct block block = {
		.address = (CUdeviceptr)address,
		.size_bytes = size_bytes,
		.span_bytes = size_bytes,
		.kind = BLOCK_REGISTERED,
		.device = device,
		.flags = flags,
	};
	pthread_mutex_lock(&driver_lock);
	result = block_find(block.address) == NULL ? block_insert(&block, 1)
						   : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult cuMemHostUnregister(void *address)
{
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS)
		return result;
	return remove_host_block((CUdeviceptr)address, BLOCK_REGISTERED,
				 CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

/* ---- questions ---- */

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	int ordinal;
	CUresult result = context_require(&ordinal);

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	const struct driver_device *device = &driver_machine.devices[ordinal];
	if (free_bytes != NULL)
		*free_bytes = device_free_bytes(ordinal);
	if (total_bytes != NULL)
		*total_bytes = device->total_bytes;
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}
