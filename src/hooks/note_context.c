/* What calls about contexts mean: which device and which context a thread works in, and that memory ends with a
 * context. No CUDA call of ours ever asks: all is learnt from what the program says. Memory is named by its context
 * only where that is not the device's primary one, so that a thread that never said anything is told right too. */
#include "hooks/cupti.h"
#include "hooks/rows.h"
#include "recorder/record.h"
#include "recorder/thread.h"

#define CONTEXTS_MAX 255 /* a place plus one is kept in a byte */
#define DEVICES_MAX 64

static struct context {
	CUcontext handle; /* stored first, never removed: a handle given out again is overwritten */
	uint8_t device, kind; /* enum memtrace_context */
} contexts[CONTEXTS_MAX];

static struct primary {
	CUcontext handle;
	uint32_t retains; /* those that were seen, less releases */
} primaries[DEVICES_MAX];

static const struct context unknown = { NULL, MEMTRACE_DEVICE_UNKNOWN, MEMTRACE_CONTEXT_PRIMARY };

static uint64_t bits_of(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

static void context_learn(CUcontext handle, uint8_t device, enum memtrace_context kind)
{
	for (unsigned i = 0; handle && i < CONTEXTS_MAX; i++) {
		CUcontext none = NULL;
		if (__atomic_compare_exchange_n(&contexts[i].handle, &none, handle, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE) ||
		    none == handle) {
			__atomic_store_n(&contexts[i].device, device, __ATOMIC_RELAXED);
			__atomic_store_n(&contexts[i].kind, (uint8_t)kind, __ATOMIC_RELAXED);
			return;
		}
	}
}

static const struct context *context_find(CUcontext handle)
{
	for (unsigned i = 0; handle && i < CONTEXTS_MAX; i++) {
		CUcontext known = __atomic_load_n(&contexts[i].handle, __ATOMIC_ACQUIRE);
		if (known == handle)
			return &contexts[i];
		if (!known)
			break;
	}
	return &unknown;
}

uint8_t context_device(const void *context)
{
	return __atomic_load_n(&context_find((CUcontext)context)->device, __ATOMIC_RELAXED);
}

static void note_event(struct call *call, enum memtrace_what what, CUcontext handle, uint8_t device,
		       enum memtrace_context kind)
{
	struct record record = { .what = what, .device = device, .address = bits_of(handle), .extra = kind };
	call_note(call, &record);
}

/* ---------- what a thread works in ---------- */

uint64_t call_context(void)
{
	unsigned place = thread_self.own_context;
	return place ? bits_of(__atomic_load_n(&contexts[place - 1].handle, __ATOMIC_RELAXED)) : 0;
}

static void thread_works_on(uint8_t device, unsigned own_context)
{
	thread_self.device = device;
	thread_self.device_known = device != MEMTRACE_DEVICE_UNKNOWN;
	thread_self.own_context = (uint8_t)own_context;
}

static void thread_works_in(CUcontext handle)
{
	const struct context *context = context_find(handle);
	bool is_own = __atomic_load_n(&context->kind, __ATOMIC_RELAXED) == MEMTRACE_CONTEXT_OWN;
	thread_works_on(__atomic_load_n(&context->device, __ATOMIC_RELAXED),
			is_own ? (unsigned)(context - contexts) + 1 : 0);
}

static void thread_pushes(CUcontext handle)
{
	if (thread_self.context_count < THREAD_CONTEXTS_MAX) {
		thread_self.own_contexts[thread_self.context_count] = thread_self.own_context;
		thread_self.contexts[thread_self.context_count++] = call_device();
	}
	thread_works_in(handle);
}

static void thread_pops(void)
{
	unsigned count = thread_self.context_count;
	if (!count) {
		thread_works_on(MEMTRACE_DEVICE_UNKNOWN, 0);
		return;
	}
	thread_self.context_count--;
	thread_works_on(thread_self.contexts[count - 1], thread_self.own_contexts[count - 1]);
}

void note_cuCtxSetCurrent(struct call *call, CUcontext context)
{
	if (!call->status)
		thread_works_in(context);
}

void note_cuCtxPushCurrent(struct call *call, CUcontext context)
{
	if (!call->status)
		thread_pushes(context);
}

void note_cuCtxPopCurrent(struct call *call, CUcontext *context)
{
	(void)context;
	if (!call->status)
		thread_pops();
}

void note_cudaSetDevice(struct call *call, int device)
{
	if (!call->status)
		thread_works_on((uint8_t)device, 0);
}

/* ---------- primary contexts ---------- */

static struct primary *primary_of(CUdevice device)
{
	return device >= 0 && device < DEVICES_MAX ? &primaries[device] : NULL;
}

void note_cuDevicePrimaryCtxRetain(struct call *call, CUcontext *context, CUdevice device)
{
	struct primary *primary = primary_of(device);
	if (call->status || !primary)
		return;
	context_learn(*context, (uint8_t)device, MEMTRACE_CONTEXT_PRIMARY);
	__atomic_store_n(&primary->handle, *context, __ATOMIC_RELAXED);
	if (!__atomic_fetch_add(&primary->retains, 1, __ATOMIC_ACQ_REL))
		note_event(call, MEMTRACE_CONTEXT, *context, (uint8_t)device, MEMTRACE_CONTEXT_PRIMARY);
}

static void note_primary_end(struct call *call, struct primary *primary)
{
	note_event(call, MEMTRACE_CONTEXT_END, __atomic_load_n(&primary->handle, __ATOMIC_RELAXED),
		   (uint8_t)(primary - primaries), MEMTRACE_CONTEXT_PRIMARY);
}

void note_cuDevicePrimaryCtxRelease(struct call *call, CUdevice device)
{
	struct primary *primary = primary_of(device);
	uint32_t retains = primary ? __atomic_load_n(&primary->retains, __ATOMIC_ACQUIRE) : 0;
	if (call->status)
		return;
	while (retains && !__atomic_compare_exchange_n(&primary->retains, &retains, retains - 1, false,
						       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	if (retains == 1)
		note_primary_end(call, primary);
}

void note_cuDevicePrimaryCtxReset(struct call *call, CUdevice device)
{
	struct primary *primary = primary_of(device);
	if (call->status || !primary)
		return;
	__atomic_store_n(&primary->retains, 0, __ATOMIC_RELEASE);
	note_primary_end(call, primary);
	call_told_inside(call);
}

void note_cudaDeviceReset(struct call *call)
{
	if (!call_was_told_inside(call))
		note_cuDevicePrimaryCtxReset(call, call_runtime_device());
}

/* ---------- the program's own ---------- */

static void note_created(struct call *call, CUcontext *context, CUdevice device)
{
	if (call->status)
		return;
	context_learn(*context, (uint8_t)device, MEMTRACE_CONTEXT_OWN);
	cupti_learn_context(*context);
	thread_pushes(*context);
	note_event(call, MEMTRACE_CONTEXT, *context, (uint8_t)device, MEMTRACE_CONTEXT_OWN);
}

void note_cuCtxCreate_v2(struct call *call, CUcontext *context, unsigned int flags, CUdevice device)
{
	(void)flags;
	note_created(call, context, device);
}

void note_cuCtxCreate_v3(struct call *call, CUcontext *context, CUexecAffinityParam *affinity, int count,
			 unsigned int flags, CUdevice device)
{
	(void)affinity;
	(void)count;
	(void)flags;
	note_created(call, context, device);
}

void note_cuCtxCreate_v4(struct call *call, CUcontext *context, CUctxCreateParams *parameters, unsigned int flags,
			 CUdevice device)
{
	(void)parameters;
	(void)flags;
	note_created(call, context, device);
}

/* The calling thread loses it if it is the current one; others keep what is no longer there. */
void note_cuCtxDestroy(struct call *call, CUcontext context)
{
	uint8_t device = context_find(context)->device;
	if (call->status)
		return;
	if (call_context() == bits_of(context))
		thread_pops();
	note_event(call, MEMTRACE_CONTEXT_END, context, device, MEMTRACE_CONTEXT_OWN);
}

/* ---------- parts of a device: they live in its primary context ---------- */

void note_cuGreenCtxCreate(struct call *call, CUgreenCtx *context, CUdevResourceDesc resources, CUdevice device,
			   unsigned int flags)
{
	(void)resources;
	(void)flags;
	if (call->status)
		return;
	context_learn((CUcontext)(void *)*context, (uint8_t)device, MEMTRACE_CONTEXT_GREEN);
	note_event(call, MEMTRACE_CONTEXT, (CUcontext)(void *)*context, (uint8_t)device, MEMTRACE_CONTEXT_GREEN);
}

void note_cuCtxFromGreenCtx(struct call *call, CUcontext *context, CUgreenCtx green)
{
	if (!call->status)
		context_learn(*context, context_find((CUcontext)(void *)green)->device, MEMTRACE_CONTEXT_GREEN);
}

void note_cuGreenCtxDestroy(struct call *call, CUgreenCtx context)
{
	uint8_t device = context_find((CUcontext)(void *)context)->device;
	if (!call->status)
		note_event(call, MEMTRACE_CONTEXT_END, (CUcontext)(void *)context, device, MEMTRACE_CONTEXT_GREEN);
}
