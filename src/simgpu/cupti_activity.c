/*
 * Activities of the stand-in libcupti: of all kinds only memory and memory pools ever arrive,
 * because the simulated GPU does no work that would take time. Owns the connection to the driver.
 * A client that enables neither, as PyTorch's profiler, gets no record.
 */
#include <string.h>
#include <unistd.h>

#include "sim_cupti.h"
#include "sim_driver.h"
#include "sim_watch.h"

static const struct sim_watch_table *driver; /* NULL until a kind of ours is enabled */
static bool wants_memory, wants_pools;
static uint32_t last_correlation;

/* ---- records ---- */

static CUpti_ActivityMemoryKind kind_of(enum sim_memory_kind kind)
{
	static const CUpti_ActivityMemoryKind kinds[] = {
		[SIM_MEMORY_DEVICE] = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
		[SIM_MEMORY_MANAGED] = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED,
		[SIM_MEMORY_PINNED] = CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
		[SIM_MEMORY_ARRAY] = CUPTI_ACTIVITY_MEMORY_KIND_ARRAY,
	};
	return kinds[kind];
}

static void note_memory(const struct sim_memory_event *event)
{
	CUpti_ActivityMemory4 record = {
		.kind = CUPTI_ACTIVITY_KIND_MEMORY2,
		.memoryOperationType = event->is_release
					       ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
					       : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
		.memoryKind = kind_of(event->kind),
		.correlationId = ++last_correlation,
		.address = event->address,
		.bytes = event->bytes,
		.timestamp = buffers_now(),
		.processId = (uint32_t)getpid(),
		.deviceId = (uint32_t)event->device,
		.contextId = event->context_id != 0 ? event->context_id : CUPTI_INVALID_CONTEXT_ID,
		.streamId = event->is_async ? event->stream_id : CUPTI_INVALID_STREAM_ID,
		.isAsync = event->is_async,
	};

	if (event->pool != 0) {
		record.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
		record.memoryPoolConfig.address = event->pool;
	}
	if (wants_memory)
		buffers_add(&record, sizeof(record));
}

static void note_pool(const struct sim_pool_event *event)
{
	const CUpti_ActivityMemoryPool3 record = {
		.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL,
		.memoryPoolOperationType = (CUpti_ActivityMemoryPoolOperationType)event->operation,
		.memoryPoolType = event->is_imported ? CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED
						     : CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL,
		.correlationId = ++last_correlation,
		.processId = (uint32_t)getpid(),
		.deviceId = (uint32_t)event->device,
		.minBytesToKeep = event->keep_bytes,
		.address = event->address,
		.size = event->reserved_bytes,
		.releaseThreshold = event->threshold_bytes,
		.timestamp = buffers_now(),
		.utilizedSize = event->used_bytes,
	};

	if (wants_pools)
		buffers_add(&record, sizeof(record));
}

/* ---- the client's calls ---- */

static bool connect(void)
{
	static const struct sim_watcher watcher = {note_memory, note_pool};
	const void *table = NULL;
	CUuuid id;

	if (driver != NULL)
		return true;
	__typeof__(cuGetExportTable) *look_up =
		(__typeof__(cuGetExportTable) *)sim_driver_entry("cuGetExportTable");
	memcpy(id.bytes, SIM_WATCH_ID, sizeof(id.bytes));
	if (look_up == NULL || look_up(&table, &id) != CUDA_SUCCESS)
		return false;
	driver = table;
	driver->watch(&watcher);
	return true;
}

static bool *wish_of(CUpti_ActivityKind kind)
{
	if (kind == CUPTI_ACTIVITY_KIND_MEMORY2)
		return &wants_memory;
	return kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL ? &wants_pools : NULL;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	bool *wish = wish_of(kind);

	if (wish == NULL)
		return CUPTI_SUCCESS;
	if (!connect())
		return CUPTI_ERROR_NOT_INITIALIZED;
	*wish = true;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
	bool *wish = wish_of(kind);

	if (wish != NULL)
		*wish = false;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
					   CUpti_BuffersCallbackCompleteFunc complete)
{
	if (request == NULL || complete == NULL)
		return CUPTI_ERROR_INVALID_PARAMETER;
	buffers_set_callbacks(request, complete);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
	buffers_flush();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record)
{
	uint8_t *next = buffer;

	if (buffer == NULL || record == NULL)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*record != NULL) {
		bool is_pool = (*record)->kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL;
		next = (uint8_t *)*record + (is_pool ? sizeof(CUpti_ActivityMemoryPool3)
						     : sizeof(CUpti_ActivityMemory4));
	}
	if (next >= buffer + valid_bytes)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (CUpti_Activity *)(void *)next;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *count)
{
	*count = buffers_take_dropped();
	return CUPTI_SUCCESS;
}

/* Nanoseconds of the same clock that PyTorch's profiler converts to. */
CUptiResult cuptiGetTimestamp(uint64_t *timestamp_ns)
{
	*timestamp_ns = buffers_now();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetContextId(CUcontext context, uint32_t *id)
{
	if (!connect())
		return CUPTI_ERROR_NOT_INITIALIZED;
	*id = driver->context_id(context);
	return *id != 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}
