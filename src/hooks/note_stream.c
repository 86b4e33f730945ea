/* What calls mean that create streams. Owns the table of streams and their devices. It forgets where there are very
 * many, and never hears of a stream's end: a handle that is given out again is created again. */
#include <stdbool.h>

#include "hooks/rows.h"
#include "hooks/stream.h"
#include "recorder/thread.h"

#define SETS 512
#define WAYS 4
#define DEVICE_SHIFT 56 /* user addresses end far below */
#define DEFAULT_STREAMS_END 3

static uint64_t table[SETS][WAYS]; /* handle and, above it, the device */
static uint32_t replaced;

static uint64_t *set_of(uint64_t handle)
{
	return table[(handle >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (SETS - 1)];
}

static bool is_of(uint64_t entry, uint64_t handle)
{
	return (entry & ((UINT64_C(1) << DEVICE_SHIFT) - 1)) == handle;
}

static void stream_learn(const void *stream, uint8_t device)
{
	uint64_t handle = (uint64_t)(uintptr_t)stream, *set = set_of(handle);
	unsigned way = 0;
	while (way < WAYS) {
		uint64_t entry = __atomic_load_n(&set[way], __ATOMIC_RELAXED);
		if (!entry || is_of(entry, handle))
			break;
		way++;
	}
	if (way == WAYS)
		way = __atomic_fetch_add(&replaced, 1, __ATOMIC_RELAXED) % WAYS;
	__atomic_store_n(&set[way], handle | (uint64_t)device << DEVICE_SHIFT, __ATOMIC_RELAXED);
}

uint8_t stream_device(const void *stream, uint8_t current)
{
	uint64_t handle = (uint64_t)(uintptr_t)stream;
	const uint64_t *set = set_of(handle);
	for (unsigned way = 0; handle >= DEFAULT_STREAMS_END && way < WAYS; way++) {
		uint64_t entry = __atomic_load_n(&set[way], __ATOMIC_RELAXED);
		if (is_of(entry, handle))
			return (uint8_t)(entry >> DEVICE_SHIFT);
	}
	return current;
}

void note_cuStreamCreate(struct call *call, CUstream *stream, unsigned int flags)
{
	(void)flags;
	if (!call->status && call_device() != MEMTRACE_DEVICE_UNKNOWN)
		stream_learn(*stream, call_device());
}

void note_cuStreamCreateWithPriority(struct call *call, CUstream *stream, unsigned int flags, int priority)
{
	(void)priority;
	note_cuStreamCreate(call, stream, flags);
}

void note_cuGreenCtxStreamCreate(struct call *call, CUstream *stream, CUgreenCtx green, unsigned int flags, int priority)
{
	uint8_t device = context_device((const void *)green);
	(void)flags;
	(void)priority;
	if (!call->status && device != MEMTRACE_DEVICE_UNKNOWN)
		stream_learn(*stream, device);
}
