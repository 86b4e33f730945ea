/*
 * Stream-ordered memory: pools and their accounts.  A pool takes device memory in steps of 32 MiB
 * (the real driver's step is not public) and gives back what exceeds its release threshold at a
 * synchronisation.  Work is complete when a call returns, so a free takes effect at once.  Owns
 * the list of pools.
 */
#include <errno.h>
#include <stdlib.h>

#include "driver_stream.h"

#define GROWTH_BYTES (32 * SIM_MIB)

static struct CUmemPoolHandle_st *pools;

/* ---- the account of one pool ---- */

static void note_high_marks(CUmemoryPool pool)
{
	if (pool->used_bytes > pool->used_high_bytes)
		pool->used_high_bytes = pool->used_bytes;
	if (pool->reserved_bytes > pool->reserved_high_bytes)
		pool->reserved_high_bytes = pool->reserved_bytes;
}

/* Give back whole steps that hold nothing, down to `keep_bytes`. */
static void pool_trim(CUmemoryPool pool, size_t keep_bytes)
{
	size_t needed_bytes = sim_round_up(pool->used_bytes, GROWTH_BYTES);

	if (keep_bytes < needed_bytes)
		keep_bytes = needed_bytes;
	if (pool->reserved_bytes <= keep_bytes)
		return;
	device_uncharge(pool->device, pool->reserved_bytes - keep_bytes, 0);
	pool->reserved_bytes = keep_bytes;
}

void pools_settle(void)
{
	for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next)
		pool_trim(pool, pool->threshold_bytes);
}

static CUresult pool_reserve(CUmemoryPool pool, size_t wanted_bytes)
{
	CUresult result = device_charge(pool->device, wanted_bytes - pool->reserved_bytes, 0);

	if (result == CUDA_SUCCESS)
		pool->reserved_bytes = wanted_bytes;
	return result;
}

/* Make room for `bytes` more in use; before it fails, all pools give back what they can. */
static CUresult pool_grow(CUmemoryPool pool, size_t bytes)
{
	if (bytes > driver_machine.devices[pool->device].total_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (pool->used_bytes + bytes <= pool->reserved_bytes)
		return CUDA_SUCCESS;
	size_t wanted_bytes = sim_round_up(pool->used_bytes + bytes, GROWTH_BYTES);
	if (pool->limit_bytes != 0 && wanted_bytes > pool->limit_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = pool_reserve(pool, wanted_bytes);
	if (result == CUDA_SUCCESS)
		return result;
	for (CUmemoryPool other = pools; other != NULL; other = other->next)
		pool_trim(other, 0);
	return pool_reserve(pool, wanted_bytes);
}

/* ---- making and ending pools ---- */

static CUmemoryPool pool_new(int device)
{
	CUmemoryPool pool = calloc(1, sizeof(*pool));

	if (pool == NULL)
		return NULL;
	pool->device = device;
	for (int i = 0; i < 3; i++)
		pool->reuse_flags[i] = 1;
	pool->next = pools;
	pools = pool;
	return pool;
}

CUmemoryPool pool_import(int device)
{
	CUmemoryPool pool = pool_new(device);

	if (pool != NULL)
		pool->is_imported = true;
	return pool;
}

int pools_init(void)
{
	for (int i = 0; i < driver_machine.device_count; i++) {
		CUmemoryPool pool = pool_new(i);
		if (pool == NULL)
			return -ENOMEM;
		driver_machine.devices[i].default_pool = pool;
		driver_machine.devices[i].current_pool = pool;
	}
	return 0;
}

static void pool_unlink(CUmemoryPool pool)
{
	struct CUmemPoolHandle_st **link = &pools;

	while (*link != NULL && *link != pool)
		link = &(*link)->next;
	if (*link != NULL)
		*link = pool->next;
}

/* A destroyed pool lives on until its last block is freed. */
static void pool_end_if_unused(CUmemoryPool pool)
{
	if (!pool->is_destroyed || pool->used_bytes > 0)
		return;
	device_uncharge(pool->device, pool->reserved_bytes, 0);
	pool_unlink(pool);
	free(pool);
}

void pool_return_block(const struct block *block)
{
	block->pool->used_bytes -= block->charge_bytes;
	device_take_back(block->pool->device, block->size_bytes);
	pool_end_if_unused(block->pool);
}

bool is_pool(CUmemoryPool wanted)
{
	for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next) {
		if (pool == wanted)
			return !pool->is_destroyed;
	}
	return false;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	if (pool == NULL || properties == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	bool is_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	int device = is_device ? properties->location.id : 0;
	CUresult result = driver_check_device(device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!is_device)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&driver_lock);
	CUmemoryPool created = pool_new(device);
	if (created != NULL) {
		created->properties = *properties;
		created->limit_bytes = properties->maxSize;
		*pool = created;
		watch_note_pool_created(created);
	}
	pthread_mutex_unlock(&driver_lock);
	return created != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult pool_destroy(CUmemoryPool pool)
{
	struct driver_device *device;

	if (!is_pool(pool))
		return CUDA_ERROR_INVALID_VALUE;
	device = &driver_machine.devices[pool->device];
	if (device->default_pool == pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (device->current_pool == pool)
		device->current_pool = device->default_pool;
	pool->is_destroyed = true;
	watch_note_pool_destroyed(pool);
	pool_end_if_unused(pool);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	pthread_mutex_lock(&driver_lock);
	CUresult result = pool_destroy(pool);
	pthread_mutex_unlock(&driver_lock);
	return result;
}

/* ---- allocation ---- */

static CUresult pool_allocate(struct block *block, CUstream stream)
{
	CUmemoryPool pool = block->pool;
	bool can_allocate = is_pool(pool) && !pool->is_imported;
	CUresult result = can_allocate ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

	if (result == CUDA_SUCCESS)
		result = pool_grow(pool, block->charge_bytes);
	if (result != CUDA_SUCCESS)
		return result;
	block->device = pool->device;
	result = block_insert(block, DRIVER_UNIT_BYTES);
	if (result == CUDA_SUCCESS) {
		pool->used_bytes += block->charge_bytes;
		device_hand_out(pool->device, block->size_bytes);
		driver_machine.devices[pool->device].allocation_count++;
		watch_note_allocation(block, stream_resolve(stream));
	}
	note_high_marks(pool);
	return result;
}

/* Captured: a node that allocates at each launch, from the graphs' memory of the pool's device. */
static CUresult capture_allocation(CUdeviceptr *address, size_t size_bytes, CUmemoryPool pool,
				   CUgraph graph)
{
	CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
		.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, pool->device},
		.bytesize = size_bytes,
	};
	CUgraphNode node;
	CUresult result = cuGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters);

	if (result == CUDA_SUCCESS)
		*address = parameters.dptr;
	return result;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size_bytes, CUmemoryPool pool,
				 CUstream stream)
{
	CUgraph graph = capture_graph(stream);
	size_t span_bytes = sim_round_up(size_bytes, DRIVER_UNIT_BYTES);
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (address == NULL || size_bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (graph != NULL)
		return capture_allocation(address, size_bytes, pool, graph);
	struct block block = {
		.size_bytes = size_bytes,
		.span_bytes = span_bytes,
		.charge_bytes = span_bytes,
		.kind = BLOCK_POOL,
		.pool = pool,
	};
	pthread_mutex_lock(&driver_lock);
	result = pool_allocate(&block, stream);
	pthread_mutex_unlock(&driver_lock);
	if (result != CUDA_SUCCESS)
		return result;
	*address = block.address;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size_bytes, CUstream stream)
{
	int device;
	CUresult result = context_require(&device);

	if (result != CUDA_SUCCESS)
		return result;
	device = stream_resolve(stream)->device;
	CUmemoryPool pool = driver_machine.devices[device].current_pool;
	return cuMemAllocFromPoolAsync(address, size_bytes, pool, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
	CUresult result = driver_check_ready();
	CUgraph graph = result == CUDA_SUCCESS ? capture_graph(stream) : NULL;
	CUgraphNode node;

	if (result != CUDA_SUCCESS || address == 0)
		return result;
	if (graph != NULL)
		return cuGraphAddMemFreeNode(&node, graph, NULL, 0, address);
	return memory_free(address, stream_resolve(stream));
}

/* ---- attributes ---- */

static uint64_t *word_attribute(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &pool->threshold_bytes;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return &pool->reserved_bytes;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &pool->reserved_high_bytes;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &pool->used_bytes;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &pool->used_high_bytes;
	default:
		return NULL;
	}
}

static int *flag_attribute(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		return &pool->reuse_flags[0];
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		return &pool->reuse_flags[1];
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		return &pool->reuse_flags[2];
	default:
		return NULL;
	}
}

static CUresult get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	if (!is_pool(pool))
		return CUDA_ERROR_INVALID_VALUE;
	const uint64_t *word = word_attribute(pool, attribute);
	const int *flag = flag_attribute(pool, attribute);
	if (word != NULL)
		*(cuuint64_t *)value = *word;
	else if (flag != NULL)
		*(int *)value = *flag;
	return word != NULL || flag != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A high mark can only be reset, to what is current; a current figure cannot be set. */
static CUresult set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, const void *value)
{
	if (!is_pool(pool))
		return CUDA_ERROR_INVALID_VALUE;
	int *flag = flag_attribute(pool, attribute);
	if (flag != NULL)
		*flag = *(const int *)value;
	else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		pool->threshold_bytes = *(const cuuint64_t *)value;
	else if (*(const cuuint64_t *)value != 0)
		return CUDA_ERROR_INVALID_VALUE;
	else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
		pool->used_high_bytes = pool->used_bytes;
	else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
		pool->reserved_high_bytes = pool->reserved_bytes;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	pthread_mutex_lock(&driver_lock);
	CUresult result = get_attribute(pool, attribute, value);
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	pthread_mutex_lock(&driver_lock);
	CUresult result = set_attribute(pool, attribute, value);
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&driver_lock);
	if (is_pool(pool)) {
		pool_trim(pool, keep_bytes);
		watch_note_pool_trimmed(pool, keep_bytes);
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
	*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}
