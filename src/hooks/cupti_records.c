/* What CUPTI's records mean. The layouts of later versions only add to the ones of CUPTI 11.2, which are all that is
 * read. Owns which numbers CUPTI has for the program's own contexts. */
#include "hooks/cupti_private.h"

#include "recorder/record.h"

#define CONTEXTS_MAX 255

static struct known_context {
	uint64_t handle;
	uint32_t id; /* stored last */
} contexts[CONTEXTS_MAX];
static uint32_t context_count;

void cupti_know_context(CUcontext handle, uint32_t id)
{
	uint32_t place = __atomic_fetch_add(&context_count, 1, __ATOMIC_RELAXED);
	if (place >= CONTEXTS_MAX)
		return;
	contexts[place].handle = (uint64_t)(uintptr_t)handle;
	__atomic_store_n(&contexts[place].id, id, __ATOMIC_RELEASE);
}

void cupti_forget_contexts(void)
{
	context_count = 0;
}

/* 0: a primary one, or unknown. */
static uint64_t context_of(uint32_t id)
{
	for (unsigned i = 0; i < CONTEXTS_MAX && i < __atomic_load_n(&context_count, __ATOMIC_RELAXED); i++)
		if (__atomic_load_n(&contexts[i].id, __ATOMIC_ACQUIRE) == id)
			return contexts[i].handle;
	return 0;
}

static enum memtrace_space space_of(const CUpti_ActivityMemory4 *memory)
{
	switch ((int)memory->memoryKind) {
	case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
		return memory->isAsync ? MEMTRACE_SPACE_STREAM : MEMTRACE_SPACE_DEVICE;
	case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
		return MEMTRACE_SPACE_MANAGED;
	case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
		return MEMTRACE_SPACE_PINNED;
	case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
		return MEMTRACE_SPACE_ARRAY;
	default:
		return MEMTRACE_SPACE_NONE; /* variables of modules come with their code */
	}
}

static uint64_t stream_of(enum memtrace_space space, const CUpti_ActivityMemory4 *memory)
{
	if (space == MEMTRACE_SPACE_STREAM)
		return memory->streamId;
	return space == MEMTRACE_SPACE_PINNED ? 0 : context_of(memory->contextId);
}

static bool read_memory(const CUpti_ActivityMemory4 *memory, bool as_witness, struct record *record)
{
	enum memtrace_space space = space_of(memory);
	bool is_free = memory->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
	if (!space || !memory->address)
		return false;
	*record = (struct record){ .space = space, .address = memory->address, .device = MEMTRACE_DEVICE_UNKNOWN };
	record->stream = stream_of(space, memory);
	if (is_free) {
		record->what = as_witness ? MEMTRACE_WITNESS_FREE : MEMTRACE_FREE;
		return true;
	}
	record->what = as_witness ? MEMTRACE_WITNESS_ALLOC : MEMTRACE_ALLOC;
	record->device = space == MEMTRACE_SPACE_PINNED ? MEMTRACE_DEVICE_HOST : (uint8_t)memory->deviceId;
	record->bytes = memory->bytes;
	return true;
}

static enum memtrace_what pool_event(const CUpti_ActivityMemoryPool3 *pool)
{
	switch ((int)pool->memoryPoolOperationType) {
	case CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED:
		return MEMTRACE_POOL_CREATE;
	case CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED:
		return MEMTRACE_POOL_DESTROY;
	default:
		return MEMTRACE_POOL_TRIM;
	}
}

static bool read_pool(const CUpti_ActivityMemoryPool3 *pool, struct record *record)
{
	bool is_imported = pool->memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED;
	*record = (struct record){ .what = pool_event(pool),
				   .space = MEMTRACE_SPACE_STREAM,
				   .device = (uint8_t)pool->deviceId,
				   .address = pool->address };
	if (record->what == MEMTRACE_POOL_CREATE && is_imported)
		record->extra = 3;
	if (record->what == MEMTRACE_POOL_TRIM)
		record->bytes = pool->minBytesToKeep;
	return true;
}

bool cupti_read_record(const CUpti_Activity *activity, const struct cupti_reading *reading, struct record *record)
{
	const CUpti_ActivityMemory4 *memory = (const void *)activity;
	const CUpti_ActivityMemoryPool3 *pool = (const void *)activity;
	uint64_t at_ns = 0;
	bool is_told = false;
	if (activity->kind == CUPTI_ACTIVITY_KIND_MEMORY2) {
		is_told = read_memory(memory, reading->as_witness, record);
		at_ns = memory->timestamp;
	} else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL) {
		is_told = reading->has_pools && read_pool(pool, record);
		at_ns = pool->timestamp;
	}
	record->at_ns = at_ns + (uint64_t)reading->offset_ns;
	record->is_of_other = true;
	return is_told;
}
