/*
 * Streams, events, captures and graphs of the runtime: the driver's entries under other names.
 * Owns nothing.
 */
#include "runtime.h"

/* ---- streams ---- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
	RUNTIME_CALL(cuStreamCreateWithPriority, (CUstream *)stream, flags, priority);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	RUNTIME_CALL(cuStreamDestroy, (CUstream)stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	RUNTIME_CALL(cuStreamQuery, (CUstream)stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	RUNTIME_CALL(cuStreamSynchronize, (CUstream)stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	RUNTIME_CALL(cuStreamWaitEvent, (CUstream)stream, (CUevent)event, flags);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	RUNTIME_CALL(cuStreamGetPriority, (CUstream)stream, priority);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
	RUNTIME_CALL(cuStreamGetFlags, (CUstream)stream, flags);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
	RUNTIME_CALL(cuStreamGetId, (CUstream)stream, id);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
				  void *argument, unsigned flags)
{
	RUNTIME_CALL(cuStreamAddCallback, (CUstream)stream, (CUstreamCallback)(void *)callback,
		     argument, flags);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
	RUNTIME_CALL(cuLaunchHostFunc, (CUstream)stream, function, argument);
}

/* ---- captures ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	RUNTIME_CALL(cuStreamBeginCapture, (CUstream)stream, (CUstreamCaptureMode)mode);
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
					  const cudaGraphNode_t *nodes,
					  const cudaGraphEdgeData *edges, size_t count,
					  enum cudaStreamCaptureMode mode)
{
	RUNTIME_CALL(cuStreamBeginCaptureToGraph, (CUstream)stream, (CUgraph)graph,
		     (const CUgraphNode *)nodes, (const CUgraphEdgeData *)(const void *)edges,
		     count, (CUstreamCaptureMode)mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	RUNTIME_CALL(cuStreamEndCapture, (CUstream)stream, (CUgraph *)graph);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	RUNTIME_CALL(cuStreamIsCapturing, (CUstream)stream,
		     (CUstreamCaptureStatus *)(void *)status);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
				     unsigned long long *id, cudaGraph_t *graph,
				     const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
				     size_t *count)
{
	RUNTIME_CALL(cuStreamGetCaptureInfo, (CUstream)stream,
		     (CUstreamCaptureStatus *)(void *)status, (cuuint64_t *)(void *)id,
		     (CUgraph *)graph, (const CUgraphNode **)nodes,
		     (const CUgraphEdgeData **)(const void *)edges, count);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
						const cudaGraphEdgeData *edges, size_t count,
						unsigned flags)
{
	return runtime_result(runtime_enter());
}
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
					unsigned long long *id, cudaGraph_t *graph,
					const cudaGraphNode_t **nodes, size_t *count)
{
	RUNTIME_CALL(cuStreamGetCaptureInfo, (CUstream)stream,
		     (CUstreamCaptureStatus *)(void *)status, (cuuint64_t *)(void *)id,
		     (CUgraph *)graph, (const CUgraphNode **)nodes, count);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
				     unsigned long long *id);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
				     unsigned long long *id)
{
	return cudaStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
						size_t count, unsigned flags)
{
	return runtime_result(runtime_enter());
}
#endif

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	RUNTIME_CALL(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)(void *)mode);
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	RUNTIME_CALL(cuEventCreate, (CUevent *)event, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	RUNTIME_CALL(cuEventDestroy, (CUevent)event);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	RUNTIME_CALL(cuEventQuery, (CUevent)event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	RUNTIME_CALL(cuEventRecord, (CUevent)event, (CUstream)stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
	RUNTIME_CALL(cuEventRecordWithFlags, (CUevent)event, (CUstream)stream, flags);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	RUNTIME_CALL(cuEventSynchronize, (CUevent)event);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
	RUNTIME_CALL(cuEventElapsedTime, milliseconds, (CUevent)start, (CUevent)end);
}

/* ---- graphs ---- */

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
	RUNTIME_CALL(cuGraphCreate, (CUgraph *)graph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	RUNTIME_CALL(cuGraphDestroy, (CUgraph)graph);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	RUNTIME_CALL(cuGraphGetNodes, (CUgraph)graph, (CUgraphNode *)nodes, count);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
					 cudaGraphEdgeData *edges, size_t *count)
{
	*count = 0; /* nodes have no edges here */
	return runtime_result(runtime_enter());
}
#endif

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags)
{
	RUNTIME_CALL(cuGraphDebugDotPrint, (CUgraph)graph, path, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
					  unsigned long long flags)
{
	RUNTIME_CALL(cuGraphInstantiateWithFlags, (CUgraphExec *)executable, (CUgraph)graph, flags);
}

/* Until CUDA 12 three other arguments follow, for an error's node and text, which are not written. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
				 unsigned long long flags)
{
	bool has_flags = RUNTIME_VERSION >= 12000;
	return cudaGraphInstantiateWithFlags(executable, graph, has_flags ? flags : 0);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
	RUNTIME_CALL(cuGraphExecDestroy, (CUgraphExec)executable);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
	RUNTIME_CALL(cuGraphLaunch, (CUgraphExec)executable, (CUstream)stream);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream)
{
	RUNTIME_CALL(cuGraphUpload, (CUgraphExec)executable, (CUstream)stream);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
				      unsigned flags)
{
	RUNTIME_CALL(cuGraphRetainUserObject, (CUgraph)graph, (CUuserObject)object, count, flags);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *argument, cudaHostFn_t destroy,
				 unsigned count, unsigned flags)
{
	RUNTIME_CALL(cuUserObjectCreate, (CUuserObject *)object, argument, destroy, count, flags);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count)
{
	RUNTIME_CALL(cuUserObjectRelease, (CUuserObject)object, count);
}
