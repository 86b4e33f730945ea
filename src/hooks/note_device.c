/* What calls about devices, contexts and captures mean. No CUDA call of ours ever asks which device a thread
 * works on: it is learnt from what the program says. */
#include "hooks/rows.h"
#include "recorder/record.h"
#include "recorder/thread.h"

/* ---------- what the device says of itself ---------- */

static void note_meminfo(struct call *call, uint8_t device, size_t *unused_bytes, size_t *total_bytes)
{
	if (call->status || !unused_bytes || !total_bytes)
		return;
	struct record record = { .what = MEMTRACE_MEMINFO,
				 .device = device,
				 .bytes = *unused_bytes,
				 .extra = *total_bytes };
	call_note(call, &record);
}

void note_cuMemGetInfo(struct call *call, size_t *unused_bytes, size_t *total_bytes)
{
	note_meminfo(call, call_device(), unused_bytes, total_bytes);
}

void note_cudaMemGetInfo(struct call *call, size_t *unused_bytes, size_t *total_bytes)
{
	note_meminfo(call, call_runtime_device(), unused_bytes, total_bytes);
}

void note_cuDeviceGetName(struct call *call, char *name, int length, CUdevice device)
{
	if (!call->status && length > 0)
		record_device((unsigned)device, name, 0);
}

void note_cuDeviceTotalMem(struct call *call, size_t *bytes, CUdevice device)
{
	if (!call->status)
		record_device((unsigned)device, NULL, *bytes);
}

/* name and totalGlobalMem stand at the same offsets from CUDA 10 to 13. */
void note_cudaGetDeviceProperties(struct call *call, struct cudaDeviceProp *properties, int device)
{
	if (!call->status)
		record_device((unsigned)device, properties->name, properties->totalGlobalMem);
}

/* ---------- which device a thread works on ---------- */

#define CONTEXTS_MAX 256

static struct context_device {
	CUcontext context; /* stored last; entries are never removed: a handle given out again is overwritten */
	uint8_t device;
} contexts[CONTEXTS_MAX];

static void context_learn(CUcontext context, CUdevice device)
{
	for (unsigned i = 0; context && i < CONTEXTS_MAX; i++) {
		struct context_device *entry = &contexts[i];
		CUcontext none = NULL;
		if (__atomic_compare_exchange_n(&entry->context, &none, context, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE) ||
		    none == context) {
			__atomic_store_n(&entry->device, (uint8_t)device, __ATOMIC_RELAXED);
			return;
		}
	}
}

static uint8_t context_device(CUcontext context)
{
	for (unsigned i = 0; context && i < CONTEXTS_MAX; i++) {
		CUcontext known = __atomic_load_n(&contexts[i].context, __ATOMIC_ACQUIRE);
		if (known == context)
			return __atomic_load_n(&contexts[i].device, __ATOMIC_RELAXED);
		if (!known)
			break;
	}
	return MEMTRACE_DEVICE_UNKNOWN;
}

static void thread_works_on(uint8_t device)
{
	thread_self.device = device;
	thread_self.device_known = device != MEMTRACE_DEVICE_UNKNOWN;
}

static void thread_pushes(uint8_t device)
{
	if (thread_self.context_count < THREAD_CONTEXTS_MAX)
		thread_self.contexts[thread_self.context_count++] = call_device();
	thread_works_on(device);
}

void note_cuDevicePrimaryCtxRetain(struct call *call, CUcontext *context, CUdevice device)
{
	if (!call->status)
		context_learn(*context, device);
}

static void note_context_created(struct call *call, CUcontext *context, CUdevice device)
{
	if (call->status)
		return;
	context_learn(*context, device);
	thread_pushes((uint8_t)device);
}

void note_cuCtxCreate_v2(struct call *call, CUcontext *context, unsigned int flags, CUdevice device)
{
	(void)flags;
	note_context_created(call, context, device);
}

void note_cuCtxCreate_v3(struct call *call, CUcontext *context, CUexecAffinityParam *affinity, int count,
			 unsigned int flags, CUdevice device)
{
	(void)affinity;
	(void)count;
	(void)flags;
	note_context_created(call, context, device);
}

void note_cuCtxCreate_v4(struct call *call, CUcontext *context, CUctxCreateParams *parameters, unsigned int flags,
			 CUdevice device)
{
	(void)parameters;
	(void)flags;
	note_context_created(call, context, device);
}

void note_cuCtxSetCurrent(struct call *call, CUcontext context)
{
	if (!call->status)
		thread_works_on(context_device(context));
}

void note_cuCtxPushCurrent(struct call *call, CUcontext context)
{
	if (!call->status)
		thread_pushes(context_device(context));
}

void note_cuCtxPopCurrent(struct call *call, CUcontext *context)
{
	(void)context;
	if (call->status)
		return;
	thread_works_on(thread_self.context_count ? thread_self.contexts[--thread_self.context_count] :
						    MEMTRACE_DEVICE_UNKNOWN);
}

void note_cudaSetDevice(struct call *call, int device)
{
	if (!call->status)
		thread_works_on((uint8_t)device);
}

/* ---------- stream capture ---------- */

static void note_capture(struct call *call, const void *stream, bool begins)
{
	if (call->status)
		return;
	if (begins)
		thread_self.capturing++;
	else if (thread_self.capturing)
		thread_self.capturing--;
	struct record record = { .what = MEMTRACE_CAPTURE,
				 .device = call_device(),
				 .stream = (uint64_t)(uintptr_t)stream,
				 .extra = begins };
	call_note(call, &record);
}

void note_cuStreamBeginCapture(struct call *call, CUstream stream, CUstreamCaptureMode mode)
{
	(void)mode;
	note_capture(call, stream, true);
}

void note_cuStreamEndCapture(struct call *call, CUstream stream, CUgraph *graph)
{
	(void)graph;
	note_capture(call, stream, false);
}

void note_cudaStreamBeginCapture(struct call *call, cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	(void)mode;
	note_capture(call, stream, true);
}

void note_cudaStreamEndCapture(struct call *call, cudaStream_t stream, cudaGraph_t *graph)
{
	(void)graph;
	note_capture(call, stream, false);
}
