/* What calls mean that begin and end captures of streams. Owns the table of open ones: a few places, taken and given
 * back without a lock. A capture that finds no place is not marked. It must never ask CUDA whether one is open. */
#include "hooks/capture.h"
#include "hooks/rows.h"
#include "recorder/record.h"

#define CAPTURES_MAX 64
#define DEFAULT_STREAMS_END 3 /* handles below mean a stream of the calling thread's */

static struct open_capture {
	uint32_t owner; /* the thread that began it, 0: no capture */
	uint64_t stream;
} captures[CAPTURES_MAX];

static uint32_t last_owner, open_count;

static uint32_t owner_of_thread(void)
{
	if (!thread_self.capture_owner)
		thread_self.capture_owner = __atomic_add_fetch(&last_owner, 1, __ATOMIC_RELAXED);
	return thread_self.capture_owner;
}

static bool is_on(const struct open_capture *capture, uint64_t stream)
{
	uint32_t owner = __atomic_load_n(&capture->owner, __ATOMIC_ACQUIRE);
	return owner && __atomic_load_n(&capture->stream, __ATOMIC_RELAXED) == stream &&
	       (stream >= DEFAULT_STREAMS_END || owner == owner_of_thread());
}

static struct open_capture *find(uint64_t stream)
{
	for (unsigned i = 0; i < CAPTURES_MAX; i++)
		if (is_on(&captures[i], stream))
			return &captures[i];
	return NULL;
}

static void forget(uint64_t stream)
{
	struct open_capture *capture = find(stream);
	if (!capture)
		return;
	__atomic_store_n(&capture->stream, UINT64_MAX, __ATOMIC_RELAXED);
	__atomic_store_n(&capture->owner, 0, __ATOMIC_RELEASE);
	__atomic_sub_fetch(&open_count, 1, __ATOMIC_RELEASE);
}

static void remember(uint64_t stream)
{
	uint32_t me = owner_of_thread();
	forget(stream); /* its end was not seen, and the handle was given out again */
	for (unsigned i = 0; i < CAPTURES_MAX; i++) {
		uint32_t nobody = 0;
		if (!__atomic_compare_exchange_n(&captures[i].owner, &nobody, me, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&captures[i].stream, stream, __ATOMIC_RELEASE);
		__atomic_add_fetch(&open_count, 1, __ATOMIC_RELEASE);
		thread_self.capturing = 1;
		return;
	}
}

bool capture_look(void)
{
	for (unsigned i = 0; i < CAPTURES_MAX; i++)
		if (__atomic_load_n(&captures[i].owner, __ATOMIC_ACQUIRE) == thread_self.capture_owner)
			return true;
	thread_self.capturing = 0;
	return false;
}

uint64_t capture_of(const void *stream)
{
	uint64_t handle = (uint64_t)(uintptr_t)stream, found = 0;
	if (!__atomic_load_n(&open_count, __ATOMIC_ACQUIRE))
		return 0;
	for (unsigned i = 0; i < CAPTURES_MAX; i++) {
		if (is_on(&captures[i], handle))
			return handle;
		if (thread_self.capture_owner && captures[i].owner == thread_self.capture_owner)
			found = captures[i].stream;
	}
	return found;
}

/* ---------- the calls ---------- */

/* A capture that was invalidated, or whose streams were not joined, is over too; the one of another thread goes on. */
static bool has_ended(int status)
{
	return !status || status == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED || status == CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

static void note(const struct call *call, uint64_t stream, const void *graph, bool begins)
{
	struct call done = *call;
	struct record record = { .what = MEMTRACE_CAPTURE,
				 .device = call_device(),
				 .address = (uint64_t)(uintptr_t)graph,
				 .stream = stream,
				 .extra = begins };
	done.status = 0;
	if (begins)
		remember(stream);
	else
		forget(stream);
	call_note(&done, &record);
}

static void note_begin(const struct call *call, const void *stream)
{
	if (!call->status)
		note(call, (uint64_t)(uintptr_t)stream, NULL, true);
}

static void note_end(const struct call *call, const void *stream, const void *graph)
{
	if (has_ended(call->status))
		note(call, (uint64_t)(uintptr_t)stream, graph, false);
}

void note_cuStreamBeginCapture(struct call *call, CUstream stream, CUstreamCaptureMode mode)
{
	(void)mode;
	note_begin(call, stream);
}

void note_cuStreamBeginCapture_v1(struct call *call, CUstream stream)
{
	note_begin(call, stream);
}

void note_cuStreamBeginCaptureToGraph(struct call *call, CUstream stream, CUgraph graph, const CUgraphNode *after,
				      const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
{
	(void)graph;
	(void)after;
	(void)edges;
	(void)count;
	(void)mode;
	note_begin(call, stream);
}

void note_cuStreamEndCapture(struct call *call, CUstream stream, CUgraph *graph)
{
	note_end(call, stream, !call->status && graph ? *graph : NULL);
}

void note_cudaStreamBeginCapture(struct call *call, cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	(void)mode;
	note_begin(call, stream);
}

void note_cudaStreamBeginCaptureToGraph(struct call *call, cudaStream_t stream, cudaGraph_t graph,
					const cudaGraphNode_t *after, const cudaGraphEdgeData *edges, size_t count,
					enum cudaStreamCaptureMode mode)
{
	(void)graph;
	(void)after;
	(void)edges;
	(void)count;
	(void)mode;
	note_begin(call, stream);
}

void note_cudaStreamEndCapture(struct call *call, cudaStream_t stream, cudaGraph_t *graph)
{
	note_end(call, stream, !call->status && graph ? *graph : NULL);
}
