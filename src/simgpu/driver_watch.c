/*
 * Tells the simulated CUPTI what the program allocates and releases. Owns the one watcher. What
 * ends with its context, what a graph does and what a handle of virtual memory holds is not told:
 * CUPTI reports calls that allocate and release, and knows no virtual memory.
 */
#include <string.h>

#include "driver_stream.h"
#include "sim_watch.h"

static const struct sim_watcher *watcher;

static void watch(const struct sim_watcher *wanted)
{
	pthread_mutex_lock(&driver_lock);
	watcher = wanted;
	pthread_mutex_unlock(&driver_lock);
}

static uint32_t context_id(CUcontext context)
{
	return context != NULL ? context->id : 0;
}

void watch_forget(uint64_t address, size_t bytes)
{
	pthread_mutex_lock(&driver_lock);
	const struct block *block = block_find(address);
	if (block != NULL && block->is_written)
		space_forget(address, bytes);
	pthread_mutex_unlock(&driver_lock);
}

static char *contents_of(uint64_t address, size_t bytes)
{
	bool is_device;

	gates_settle(address, bytes);
	pthread_mutex_lock(&driver_lock);
	char *contents = space_contents(address, bytes, &is_device);
	pthread_mutex_unlock(&driver_lock);
	return is_device && bytes <= DRIVER_SHADOW_BYTES ? contents : NULL;
}

static bool read_contents(uint64_t address, void *to, size_t bytes)
{
	const char *contents = contents_of(address, bytes);

	if (contents != NULL)
		memcpy(to, contents, bytes);
	return contents != NULL;
}

static bool write_contents(uint64_t address, const void *from, size_t bytes)
{
	char *contents = contents_of(address, bytes);

	if (contents != NULL)
		memcpy(contents, from, bytes);
	return contents != NULL;
}

const void *watch_export(const CUuuid *id)
{
	static const struct sim_watch_table table = {sizeof(table), watch,         context_id,
						     watch_forget,  read_contents, write_contents};
	static const char known[16] = SIM_WATCH_ID;

	return id != NULL && memcmp(id->bytes, known, sizeof(known)) == 0 ? &table : NULL;
}

static enum sim_memory_kind kind_of(enum block_kind kind)
{
	switch (kind) {
	case BLOCK_MANAGED:
		return SIM_MEMORY_MANAGED;
	case BLOCK_HOST:
		return SIM_MEMORY_PINNED;
	default:
		return SIM_MEMORY_DEVICE;
	}
}

static void tell_block(const struct block *block, bool is_release, CUstream stream)
{
	const struct sim_memory_event event = {
		.kind = kind_of(block->kind),
		.is_release = is_release,
		.is_async = stream != NULL,
		.device = block->device,
		.context_id = context_id(block->context),
		.stream_id = stream != NULL ? (uint32_t)stream->id : SIM_WATCH_NO_STREAM,
		.address = block->address,
		.bytes = block->size_bytes,
		.pool = (uintptr_t)block->pool,
	};

	if (watcher != NULL)
		watcher->memory(&event);
}

void watch_note_allocation(const struct block *block, CUstream stream)
{
	tell_block(block, false, stream);
}

void watch_note_release(const struct block *block, CUstream stream)
{
	tell_block(block, true, stream);
}

void watch_note_array(const struct watched_array *array, bool is_release)
{
	const struct sim_memory_event event = {
		.kind = SIM_MEMORY_ARRAY,
		.is_release = is_release,
		.device = array->device,
		.context_id = context_id(array->context),
		.stream_id = SIM_WATCH_NO_STREAM,
		.address = (uintptr_t)array->handle,
		.bytes = array->bytes,
	};

	if (watcher != NULL)
		watcher->memory(&event);
}

static void tell_pool(CUmemoryPool pool, enum sim_pool_operation operation, size_t keep_bytes)
{
	const struct sim_pool_event event = {
		.operation = operation,
		.is_imported = pool->is_imported,
		.device = pool->device,
		.address = (uintptr_t)pool,
		.keep_bytes = keep_bytes,
		.reserved_bytes = pool->reserved_bytes,
		.threshold_bytes = pool->threshold_bytes,
		.used_bytes = pool->used_bytes,
	};

	if (watcher != NULL)
		watcher->pool(&event);
}

void watch_note_pool_created(CUmemoryPool pool)
{
	tell_pool(pool, SIM_POOL_CREATED, 0);
}

void watch_note_pool_destroyed(CUmemoryPool pool)
{
	tell_pool(pool, SIM_POOL_DESTROYED, 0);
}

void watch_note_pool_trimmed(CUmemoryPool pool, size_t keep_bytes)
{
	tell_pool(pool, SIM_POOL_TRIMMED, keep_bytes);
}
