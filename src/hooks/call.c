/* Owns the guard of a traced call and the sentences that notes are made of. The runtime's cudaMalloc contains
 * the driver's cuMemAlloc and is one allocation: the depth says which is outermost. */
#include "hooks/call.h"

#include <cuda.h>
#include <link.h>
#include <string.h>

#include "hooks/capture.h"
#include "hooks/cupti.h"
#include "hooks/lookup.h"
#include "recorder/elf.h"
#include "recorder/record.h"
#include "recorder/session.h"
#include "recorder/thread.h"

static const void *return_address(const void *frame)
{
	return ((const void *const *)frame)[1];
}

#define NESTING_BYTES_MAX (8u << 20) /* of stack between an outer traced call and one inside it */

/* A call that was left by longjmp never closes. It is over when the stack has shrunk past its frame, when we are
 * on another stack, or when something else lies where its return address was. */
static bool outermost_is_gone(const void *frame)
{
	return frame >= thread_self.outermost ||
	       (const char *)thread_self.outermost - (const char *)frame > NESTING_BYTES_MAX ||
	       return_address(thread_self.outermost) != thread_self.outermost_return;
}

static bool is_part_of_cuda(const struct link_map *object)
{
	const char *slash = strrchr(object->l_name, '/');
	const char *name = slash ? slash + 1 : object->l_name;
	return !strncmp(name, "libcuda.", 8) || !strncmp(name, "libcudart", 9);
}

/* The runtime calls the driver, and another interposer may do so in its own way, also by a jump, which returns to
 * us: all are parts of the outer call. */
static bool outermost_made(const void *frame)
{
	const struct link_map *caller = elf_object_of(return_address(frame));
	return !caller || lookup_is_own(return_address(frame)) || is_part_of_cuda(caller) ||
	       caller == elf_object_of(thread_self.outermost_real);
}

static void outermost_ends(void)
{
	thread_self.depth = 0;
	if (thread_self.counted)
		session_call_ends(thread_self.counted);
	thread_self.counted = NULL;
}

void call_open(struct call *call, const void *frame, const void *real)
{
	call->frame = frame;
	call->ticket = UINT64_MAX;
	call->status = 0;
	call->saved_errno = 0;
	call->phase = CALL_BEFORE;
	if (thread_self.depth && outermost_is_gone(frame))
		outermost_ends();
	call->depth = thread_self.depth;
	call->is_outermost = call->depth == 0 || !outermost_made(frame);
	if (call->depth == 0) {
		thread_self.outermost = frame;
		thread_self.outermost_real = real;
		thread_self.outermost_return = return_address(frame);
		thread_self.counted = session_call_begins();
	}
	thread_self.depth = call->depth + 1;
}

void call_close(struct call *call)
{
	if (call->depth == 0)
		outermost_ends();
	else
		thread_self.depth = call->depth;
}

void call_note(const struct call *call, struct record *success)
{
	success->status = call->status;
	success->frame = call->frame;
	if (capture_is_open())
		success->flags |= MEMTRACE_CAPTURING;
	if (call->status) {
		/* Both APIs number "out of memory" 2. */
		success->what = call->status == CUDA_ERROR_OUT_OF_MEMORY ? MEMTRACE_OOM : MEMTRACE_FAILED;
		success->address = 0;
	}
	if (!cupti_tells(success))
		record_event(success);
}

static bool lives_in_context(enum memtrace_space space)
{
	return space == MEMTRACE_SPACE_DEVICE || space == MEMTRACE_SPACE_MANAGED || space == MEMTRACE_SPACE_ARRAY;
}

void call_note_alloc(const struct call *call, enum memtrace_space space, uint8_t device, uint64_t address,
		     uint64_t bytes, uint64_t stream)
{
	if (!call->status && !address)
		return;
	struct record record = { .what = MEMTRACE_ALLOC,
				 .space = space,
				 .device = device,
				 .address = address,
				 .bytes = bytes,
				 .stream = lives_in_context(space) ? call_context() : stream };
	call_note(call, &record);
}

void call_note_external(const struct call *call, enum memtrace_space as, uint64_t address, uint64_t bytes)
{
	struct record record = { .what = MEMTRACE_ALLOC,
				 .space = MEMTRACE_SPACE_EXTERNAL,
				 .device = call_device(),
				 .address = address,
				 .bytes = bytes,
				 .extra = as };
	if (call->status || address)
		call_note(call, &record);
}

void call_tell(const struct call *call, enum memtrace_what what, enum memtrace_space space, uint64_t address,
	       uint64_t bytes, uint64_t extra)
{
	struct record record = { .what = what,
				 .space = space,
				 .device = call_device(),
				 .address = address,
				 .bytes = bytes,
				 .extra = extra };
	if (!call->status)
		call_note(call, &record);
}

void call_told_inside(const struct call *call)
{
	if (!call->is_outermost)
		thread_self.told_inside = thread_self.outermost;
}

bool call_was_told_inside(const struct call *call)
{
	bool was_told = thread_self.told_inside == call->frame;
	thread_self.told_inside = NULL;
	return was_told;
}

static void note_return(struct call *call, struct record *record)
{
	record->device = MEMTRACE_DEVICE_UNKNOWN;
	record->frame = call->frame;
	record->flags = capture_is_open() ? MEMTRACE_CAPTURING : 0;
	if (call->phase == CALL_BEFORE) {
		if (record->address)
			call->ticket = record_event(record);
		return;
	}
	if (call->ticket == UINT64_MAX)
		return;
	record->what = MEMTRACE_FREE_FAILED;
	record->extra = call->ticket;
	record->status = call->status;
	record_event(record);
}

void call_note_free(struct call *call, enum memtrace_what what, enum memtrace_space space, uint64_t address,
		    uint64_t bytes, uint64_t stream)
{
	struct record record = {
		.what = what, .space = space, .address = address, .bytes = bytes, .stream = stream
	};
	if (call->phase == CALL_AFTER || !cupti_tells(&record))
		note_return(call, &record);
}

void call_note_close(struct call *call, uint64_t address)
{
	struct record record = { .what = MEMTRACE_FREE, .space = MEMTRACE_SPACE_DEVICE, .address = address };
	note_return(call, &record);
}

uint8_t call_device(void)
{
	return thread_self.device_known ? thread_self.device : MEMTRACE_DEVICE_UNKNOWN;
}

uint8_t call_runtime_device(void)
{
	return thread_self.device_known ? thread_self.device : 0;
}
