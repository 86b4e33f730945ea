/* Captures of streams that begin and end in odd ways, with allocations in and after them. Prints, as JSON lines, the
 * events that must follow (calls.h): `capturing` is 1 of what the thread that began a capture allocates in it. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>

#include "calls.h"

#define RELAXED CU_STREAM_CAPTURE_MODE_RELAXED
#define GLOBAL  CU_STREAM_CAPTURE_MODE_GLOBAL

static CUcontext context;
static CUstream stream, other;

/* Relaxed: allowed in any capture. */
static void alloc(int is_captured)
{
	CUdeviceptr pointer;
	CUstreamCaptureMode mode = RELAXED;
	CALL(cuThreadExchangeStreamCaptureMode(&mode));
	CALL(cuMemAlloc_v2(&pointer, 5000));
	CALL(cuThreadExchangeStreamCaptureMode(&mode));
	EXPECT(.what = "alloc", .space = "device", .address = pointer, .bytes = 5000, .name = "capturing",
	       .value = (unsigned)is_captured);
}

static void expect_capture(CUstream of, CUgraph graph, int begins)
{
	EXPECT(.what = "capture", .stream = of, .address = (uintptr_t)graph, .name = "begins", .value = (unsigned)begins);
}

static void begin(CUstream of, CUstreamCaptureMode mode)
{
	CALL(cuStreamBeginCapture_v2(of, mode));
	expect_capture(of, NULL, 1);
}

/* `code` as the driver must give it; `is_over`: the capture has ended all the same. */
static void end(CUstream of, CUresult code, int is_over)
{
	CUgraph graph;
	CALL(cuStreamEndCapture(of, &graph) != code);
	if (is_over)
		expect_capture(of, graph, 0);
}

static void never_begun(void)
{
	CALL(cuStreamBeginCapture_v2(NULL, GLOBAL) != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	alloc(0);
	end(stream, CUDA_ERROR_ILLEGAL_STATE, 0);
	alloc(0);
}

static void invalidated(void)
{
	begin(stream, GLOBAL);
	alloc(1);
	CALL(cuStreamSynchronize(stream) != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	alloc(1);
	end(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 1);
	alloc(0);
}

static void into_a_graph(void)
{
	CUgraph graph;
	CALL(cuGraphCreate(&graph, 0));
	CALL(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, GLOBAL));
	expect_capture(stream, NULL, 1);
	alloc(1);
	end(stream, CUDA_SUCCESS, 1);
	alloc(0);
}

static void two_at_once(void)
{
	begin(stream, RELAXED);
	begin(other, RELAXED);
	end(stream, CUDA_SUCCESS, 1);
	alloc(1);
	end(other, CUDA_SUCCESS, 1);
	alloc(0);
}

static void by_the_runtime(void)
{
	cudaGraph_t graph;
	CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	expect_capture(stream, NULL, 1);
	alloc(1);
	CALL(cudaStreamEndCapture(stream, &graph));
	expect_capture(stream, graph, 0);
	alloc(0);
}

/* ---------- another thread ---------- */

static void *in_another(void *of)
{
	CALL(cuCtxSetCurrent(context));
	alloc(0);
	if (of)
		end(of, CUDA_SUCCESS, 1);
	else
		end(stream, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 0);
	alloc(0);
	return NULL;
}

static void run_another(void *of)
{
	pthread_t thread;
	CALL(pthread_create(&thread, NULL, in_another, of));
	CALL(pthread_join(thread, NULL));
}

static void ended_by_another(void)
{
	begin(stream, RELAXED);
	alloc(1);
	run_another(stream);
	alloc(0);
}

static void not_ended_by_another(void)
{
	begin(stream, GLOBAL);
	run_another(NULL);
	alloc(1);
	end(stream, CUDA_SUCCESS, 1);
	alloc(0);
}

/* More than there are places for: what finds none is not marked, and nothing sticks. */
static void very_many(void)
{
	static CUstream many[100];
	for (unsigned i = 0; i < 100; i++) {
		CALL(cuStreamCreate(&many[i], 0));
		begin(many[i], RELAXED);
	}
	for (unsigned i = 0; i < 100; i++)
		end(many[i], CUDA_SUCCESS, 1);
	alloc(0);
}

int main(void)
{
	current_symbol = "capture";
	CALL(cuInit(0));
	CALL(cuDevicePrimaryCtxRetain(&context, 0));
	CALL(cuCtxSetCurrent(context));
	CALL(cuStreamCreate(&stream, 0));
	CALL(cuStreamCreate(&other, 0));
	never_begun();
	invalidated();
	into_a_graph();
	two_at_once();
	by_the_runtime();
	ended_by_another();
	not_ended_by_another();
	very_many();
	return 0;
}
