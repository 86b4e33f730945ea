/*
 * Streams under capture, and the rule that makes captures fragile: while one is under way, a call
 * that might synchronise is refused with error 900 and spoils the capture, unless the calling
 * thread's mode allows it.  Owns the list of captures.  A record of an ended capture is kept, since
 * events may still point to it.
 */
#include <stdlib.h>

#include "driver_stream.h"

static struct capture *captures; /* under way */
static unsigned long long last_id;
static int active_count; /* read without lock: most programs capture nothing */
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static bool is_active(const struct capture *capture)
{
	return capture != NULL && capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* ---- the rule ---- */

static bool forbids(const struct capture *capture)
{
	bool is_mine = pthread_equal(capture->thread, pthread_self());

	if (!is_active(capture) || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (is_mine)
		return true;
	return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
	       thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_check_unsafe(void)
{
	CUresult result = CUDA_SUCCESS;

	if (__atomic_load_n(&active_count, __ATOMIC_ACQUIRE) == 0 ||
	    thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&driver_lock);
	for (struct capture *capture = captures; capture != NULL; capture = capture->next) {
		if (!forbids(capture))
			continue;
		capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult capture_check_wait(CUstream handle)
{
	CUstream stream = stream_resolve(handle);

	if (!is_active(stream->capture))
		return capture_check_unsafe();
	stream->capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUgraph capture_graph(CUstream handle)
{
	const struct capture *capture = stream_resolve(handle)->capture;

	return is_active(capture) ? capture->graph : NULL;
}

void capture_note_work(CUstream handle, CUgraphNodeType type)
{
	CUstream stream = stream_resolve(handle);

	if (!is_active(stream->capture) && !driver_machine.is_late)
		return;
	pthread_mutex_lock(&driver_lock);
	if (is_active(stream->capture))
		graph_add_node(stream->capture->graph, type);
	else
		work_put(stream);
	pthread_mutex_unlock(&driver_lock);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = thread_mode;

	if (mode == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

/* ---- beginning and ending ---- */

static CUresult begin(CUstream handle, CUgraph graph, CUstreamCaptureMode mode, bool owns_graph)
{
	CUstream stream = stream_resolve(handle);

	if ((uintptr_t)handle <= (uintptr_t)CU_STREAM_LEGACY)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture != NULL)
		return CUDA_ERROR_ILLEGAL_STATE;
	struct capture *capture = calloc(1, sizeof(*capture));
	if (capture == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*capture = (struct capture){
		.mode = mode,
		.status = CU_STREAM_CAPTURE_STATUS_ACTIVE,
		.thread = pthread_self(),
		.graph = graph,
		.owns_graph = owns_graph,
	};
	pthread_mutex_lock(&driver_lock);
	capture->id = ++last_id;
	capture->next = captures;
	captures = capture;
	stream->capture = capture;
	__atomic_add_fetch(&active_count, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
	CUgraph graph = graph_new();

	if (graph == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = begin(stream, graph, mode, true);
	if (result != CUDA_SUCCESS)
		cuGraphDestroy(graph);
	return result;
}

/* The spelling of CUDA 10.0, which knew one mode. */
#undef cuStreamBeginCapture
CUresult cuStreamBeginCapture(CUstream stream);
CUresult cuStreamBeginCapture(CUstream stream)
{
	return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *nodes,
				     const CUgraphEdgeData *edges, size_t count,
				     CUstreamCaptureMode mode)
{
	return graph != NULL ? begin(stream, graph, mode, false) : CUDA_ERROR_INVALID_VALUE;
}

static void capture_unlink(struct capture *capture)
{
	struct capture **link = &captures;

	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	__atomic_sub_fetch(&active_count, 1, __ATOMIC_RELEASE);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
	struct capture *capture = stream_resolve(handle)->capture;

	if (capture == NULL)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
	    !pthread_equal(capture->thread, pthread_self()))
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	pthread_mutex_lock(&driver_lock);
	bool is_whole = is_active(capture);
	streams_leave_capture(capture);
	capture_unlink(capture);
	capture->status = CU_STREAM_CAPTURE_STATUS_NONE;
	pthread_mutex_unlock(&driver_lock);
	if (graph != NULL)
		*graph = is_whole ? capture->graph : NULL;
	if (!is_whole && capture->owns_graph)
		cuGraphDestroy(capture->graph);
	return is_whole ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

/* ---- questions ---- */

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
	const struct capture *capture = stream_resolve(handle)->capture;

	*status = capture != NULL ? capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

static CUresult give_capture_info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
				  CUgraph *graph, const CUgraphNode **nodes, size_t *count)
{
	const struct capture *capture = stream_resolve(handle)->capture;
	CUresult result = cuStreamIsCapturing(handle, status);

	if (nodes != NULL)
		*nodes = NULL;
	if (count != NULL)
		*count = 0;
	if (capture != NULL && id != NULL)
		*id = capture->id;
	if (capture != NULL && graph != NULL)
		*graph = capture->graph;
	return result;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
				   CUgraph *graph, const CUgraphNode **nodes, size_t *count);
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
				   CUgraph *graph, const CUgraphNode **nodes, size_t *count)
{
	return give_capture_info(stream, status, id, graph, nodes, count);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
				CUgraph *graph, const CUgraphNode **nodes,
				const CUgraphEdgeData **edges, size_t *count)
{
	if (edges != NULL)
		*edges = NULL;
	return give_capture_info(stream, status, id, graph, nodes, count);
}

#undef cuStreamGetCaptureInfo
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id);
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return give_capture_info(stream, status, id, NULL, NULL, NULL);
}

/* Nodes here have no edges, so there are no dependencies to update. */
CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes,
					   const CUgraphEdgeData *edges, size_t count,
					   unsigned flags)
{
	return CUDA_SUCCESS;
}
