/* What PyTorch's caching allocator says: every block it hands out or takes back, and that it gives up. The
 * functions are C++ and may throw, so nothing here raises the guard or holds anything across the real call.
 * They are called under the allocator's device lock: no GIL, no CUDA, no call back into the allocator.
 * c10::Device is two bytes {type, index}, passed in the low bits of a register whose rest is garbage. */
#include <stddef.h>
#include <stdint.h>

#include "hooks/capture.h"
#include "hooks/settings.h"
#include "recorder/elf.h"
#include "recorder/hot.h"
#include "recorder/record.h"
#include "recorder/thread.h"

#define EXPORT __attribute__((visibility("default")))
#define DEVICE_CUDA 1 /* c10::DeviceType; HIP builds say CUDA too */
#define LARGE_SLACK_BYTES (1u << 20) /* a large block exceeds its request by at most this (CUDACachingAllocator) */
#define SMALL_BYTES 512
#define ASKED_STACK_BYTES (64u << 10) /* at most, between the frame that computed a size and the hook */
#define ASKED_CODE_BYTES  4096        /* between two calls in it */

struct c10_stream { /* c10::cuda::CUDAStream, returned in rax:rdx */
	uint64_t device;
	int64_t id;
};

typedef void usage_function(void *pointer, int64_t bytes, size_t allocated, size_t reserved, uint64_t device);
typedef void oom_function(int64_t bytes, size_t allocated, size_t reserved, uint64_t device);
typedef size_t contiguous_function(const int64_t *sizes, size_t dimensions, size_t item, size_t offset);
typedef size_t strided_function(const int64_t *sizes, size_t dimensions, const int64_t *strides, size_t stride_count,
				size_t item, size_t offset);
typedef void resize_function(void *storage, size_t bytes);
typedef size_t rounding_function(size_t asked);

static char absent; /* its address in a slot: looked for in vain */

/* Functions of libraries that are loaded when they are asked for; so each is looked for once. */
static void *real(void **slot, const char *symbol)
{
	void *function = __atomic_load_n(slot, __ATOMIC_RELAXED);
	if (!function) {
		function = elf_find_anywhere(symbol, NULL);
		__atomic_store_n(slot, function ? function : &absent, __ATOMIC_RELAXED);
	}
	return function == &absent ? NULL : function;
}

/* The current stream of the thread: a read of PyTorch's thread-local state, but its first call makes streams
 * known to the process, which must not happen before the program itself has allocated. */
static uint64_t current_stream(uint8_t device)
{
	static void *slot;
	if (!record_has_started())
		return 0;
	struct c10_stream (*get)(int8_t) = real(&slot, "_ZN3c104cuda20getCurrentCUDAStreamEa");
	return get ? (uint64_t)get((int8_t)device).id : 0;
}

/* ---------- what was asked for ---------- */

static uint64_t return_address(const void *frame)
{
	return ((const uint64_t *)frame)[1];
}

/* `item`: the bytes of an element, 0 unknown. `frame` of a function that ATen calls; NULL: the allocator itself told. */
static void note_asked(uint64_t bytes, size_t item, const void *frame)
{
	thread_self.asked_bytes = bytes;
	thread_self.asked_item = item <= UINT8_MAX ? (uint8_t)item : 0;
	thread_self.asked_frame = frame;
	thread_self.asked_return = frame ? return_address(frame) : 0;
}

/* Was the size computed for what is allocated now? Sizes are also computed for tensors on the host and for views;
 * what libraries then allocate past ATen must not take them. If it was, the function that had it computed is still
 * running and in another of its calls: a return to near the same code stands in the same place. */
static bool is_still_asked(const void *frame)
{
	const char *computed = thread_self.asked_frame;
	if ((const char *)frame >= computed || computed - (const char *)frame > ASKED_STACK_BYTES)
		return false;
	uint64_t distance = return_address(computed) - thread_self.asked_return + ASKED_CODE_BYTES;
	return distance <= 2 * ASKED_CODE_BYTES;
}

/* The allocator tells `bytes`: of which elements, if they were computed for this request. */
static size_t item_asked(uint64_t bytes, const void *frame)
{
	bool is_computed = thread_self.asked_frame && thread_self.asked_bytes == bytes;
	return is_computed && is_still_asked(frame) ? thread_self.asked_item : 0;
}

/* The request behind a block, 0 unknown. */
static uint64_t take_asked(uint64_t block_bytes, const void *frame)
{
	uint64_t asked = thread_self.asked_bytes;
	thread_self.asked_bytes = 0;
	uint64_t rounded = (asked + SMALL_BYTES - 1) / SMALL_BYTES * SMALL_BYTES;
	if (!asked || rounded > block_bytes)
		return 0;
	if (!thread_self.asked_frame)
		return asked;
	bool explains = block_bytes - rounded <= (rounded < LARGE_SLACK_BYTES ? 0 : LARGE_SLACK_BYTES);
	return explains && is_still_asked(frame) ? asked : 0;
}

static uint8_t element_flags(uint8_t item)
{
	bool is_told = item && item <= 16 && !(item & (item - 1));
	return is_told ? (uint8_t)((__builtin_ctz(item) + 1) << MEMTRACE_ELEMENT_SHIFT) : 0;
}

/* ---------- blocks ---------- */

MT_HOT static void
note_block(void *pointer, int64_t bytes, size_t allocated, uint64_t device, const void *frame)
{
	if ((uint8_t)device != DEVICE_CUDA || !bytes)
		return;
	uint8_t ordinal = (uint8_t)(device >> 8);
	settings_tell(frame);
	struct record record = { .what = bytes > 0 ? MEMTRACE_BLOCK_ALLOC : MEMTRACE_BLOCK_FREE,
				 .space = MEMTRACE_SPACE_BLOCK,
				 .device = ordinal,
				 .flags = capture_is_open() ? MEMTRACE_CAPTURING : 0,
				 .address = (uint64_t)(uintptr_t)pointer,
				 .bytes = (uint64_t)(bytes > 0 ? bytes : -bytes),
				 .frame = frame };
	if (bytes > 0) {
		record.extra = take_asked(record.bytes, frame);
		record.flags |= record.extra ? element_flags(thread_self.asked_item) : 0;
		record.stream = current_stream(ordinal);
	} else {
		record.extra = allocated; /* PyTorch's own total: the dump thread compares, the trace does not keep it */
	}
	record_event(&record);
}

static void note_oom(int64_t bytes, uint64_t device, const void *frame)
{
	struct record record = { .what = MEMTRACE_BLOCK_OOM,
				 .space = MEMTRACE_SPACE_BLOCK,
				 .device = (uint8_t)(device >> 8),
				 .flags = capture_is_open() ? MEMTRACE_CAPTURING : 0,
				 .bytes = (uint64_t)bytes,
				 .frame = frame };
	if ((uint8_t)device == DEVICE_CUDA)
		record_event(&record);
}

#define USAGE(symbol)                                                                                            \
	EXPORT void symbol(void *pointer, int64_t bytes, size_t allocated, size_t reserved, uint64_t device);    \
	MT_HOT void symbol(void *pointer, int64_t bytes, size_t allocated, size_t reserved, uint64_t device)     \
	{                                                                                                        \
		static void *slot;                                                                               \
		note_block(pointer, bytes, allocated, device, __builtin_frame_address(0));                      \
		usage_function *function = (usage_function *)real(&slot, #symbol);                               \
		if (function)                                                                                    \
			function(pointer, bytes, allocated, reserved, device);                                   \
	}

USAGE(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)
USAGE(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)

#define OUT_OF_MEMORY(symbol)                                                                                    \
	EXPORT void symbol(int64_t bytes, size_t allocated, size_t reserved, uint64_t device);                   \
	EXPORT void symbol(int64_t bytes, size_t allocated, size_t reserved, uint64_t device)                    \
	{                                                                                                        \
		static void *slot;                                                                               \
		note_oom(bytes, device, __builtin_frame_address(0));                                            \
		oom_function *function = (oom_function *)real(&slot, #symbol);                                   \
		if (function)                                                                                    \
			function(bytes, allocated, reserved, device);                                            \
	}

OUT_OF_MEMORY(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE)
OUT_OF_MEMORY(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE)

/* Whatever asks the allocator for 512 bytes or more (2.1 on): it looks up how the request is to be rounded, before
 * anything else. */
#define ROUNDING(symbol)                                                                                         \
	EXPORT rounding_function symbol;                                                                         \
	EXPORT size_t symbol(size_t asked)                                                                       \
	{                                                                                                        \
		static void *slot;                                                                               \
		rounding_function *function = (rounding_function *)real(&slot, #symbol);                         \
		note_asked(asked, item_asked(asked, __builtin_frame_address(0)), NULL);                          \
		return function ? function(asked) : 0;                                                           \
	}

ROUNDING(_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm)
ROUNDING(_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm)

/* ATen's pure size computations: their result is what the allocation that follows asks for. Of older versions, and
 * of less than 512 bytes; and nothing else tells how large an element is. */
EXPORT contiguous_function _ZN2at6detail30computeStorageNbytesContiguousEN3c108ArrayRefIlEEmm;
EXPORT strided_function _ZN2at6detail20computeStorageNbytesEN3c108ArrayRefIlEES3_mm;
EXPORT resize_function _ZN2at6native17resize_bytes_cudaEPN3c1011StorageImplEm;

EXPORT size_t _ZN2at6detail30computeStorageNbytesContiguousEN3c108ArrayRefIlEEmm(const int64_t *sizes,
										 size_t dimensions, size_t item,
										 size_t offset)
{
	static void *slot;
	contiguous_function *function = (contiguous_function *)real(
		&slot, "_ZN2at6detail30computeStorageNbytesContiguousEN3c108ArrayRefIlEEmm");
	size_t bytes = function ? function(sizes, dimensions, item, offset) : 0;
	note_asked(bytes, item, __builtin_frame_address(0));
	return bytes;
}

EXPORT size_t _ZN2at6detail20computeStorageNbytesEN3c108ArrayRefIlEES3_mm(const int64_t *sizes, size_t dimensions,
									  const int64_t *strides,
									  size_t stride_count, size_t item,
									  size_t offset)
{
	static void *slot;
	strided_function *function =
		(strided_function *)real(&slot, "_ZN2at6detail20computeStorageNbytesEN3c108ArrayRefIlEES3_mm");
	size_t bytes = function ? function(sizes, dimensions, strides, stride_count, item, offset) : 0;
	note_asked(bytes, item, __builtin_frame_address(0));
	return bytes;
}

EXPORT void _ZN2at6native17resize_bytes_cudaEPN3c1011StorageImplEm(void *storage, size_t bytes)
{
	static void *slot;
	resize_function *function =
		(resize_function *)real(&slot, "_ZN2at6native17resize_bytes_cudaEPN3c1011StorageImplEm");
	note_asked(bytes, 0, __builtin_frame_address(0));
	if (function)
		function(storage, bytes);
}
