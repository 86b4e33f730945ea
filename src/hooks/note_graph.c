/* What calls about graphs mean. A node that allocates has an address from the moment it is added, and memory from each
 * launch until something frees it; the model puts that together. Launches are many and most graphs allocate nothing:
 * they are recorded only once the process has made a node that does. */
#include "hooks/graph.h"
#include "hooks/rows.h"
#include "recorder/record.h"

static bool has_memory_nodes; /* set once, by any thread */

static uint64_t bits_of(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

/* ---------- nodes ---------- */

void graph_note_alloc(struct call *call, uint64_t graph, uint8_t device, uint64_t address, uint64_t bytes)
{
	struct record record = { .what = MEMTRACE_GRAPH_ALLOC,
				 .space = MEMTRACE_SPACE_STREAM,
				 .device = device,
				 .address = address,
				 .bytes = bytes,
				 .extra = graph };
	if (call->status || !address)
		return;
	__atomic_store_n(&has_memory_nodes, true, __ATOMIC_RELAXED);
	call_note(call, &record);
}

void graph_note_free(struct call *call, uint64_t graph, uint64_t address)
{
	call_tell(call, MEMTRACE_GRAPH_FREE, MEMTRACE_SPACE_STREAM, address, 0, graph);
}

void note_cuGraphAddMemAllocNode(struct call *call, CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
				 size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
	(void)node;
	(void)after;
	(void)count;
	if (!call->status)
		graph_note_alloc(call, bits_of(graph), (uint8_t)parameters->poolProps.location.id, parameters->dptr,
				parameters->bytesize);
}

void note_cudaGraphAddMemAllocNode(struct call *call, cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *after, size_t count, struct cudaMemAllocNodeParams *parameters)
{
	(void)node;
	(void)after;
	(void)count;
	if (!call->status)
		graph_note_alloc(call, bits_of(graph), (uint8_t)parameters->poolProps.location.id, bits_of(parameters->dptr),
				parameters->bytesize);
}

void note_cuGraphAddMemFreeNode(struct call *call, CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
				size_t count, CUdeviceptr pointer)
{
	(void)node;
	(void)after;
	(void)count;
	graph_note_free(call, bits_of(graph), pointer);
}

void note_cudaGraphAddMemFreeNode(struct call *call, cudaGraphNode_t *node, cudaGraph_t graph,
				  const cudaGraphNode_t *after, size_t count, void *pointer)
{
	note_cuGraphAddMemFreeNode(call, node, graph, after, count, bits_of(pointer));
}

void note_cuGraphAddNode(struct call *call, CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
			 CUgraphNodeParams *parameters)
{
	(void)node;
	(void)after;
	(void)count;
	if (call->status)
		return;
	if (parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		graph_note_alloc(call, bits_of(graph), (uint8_t)parameters->alloc.poolProps.location.id, parameters->alloc.dptr,
				parameters->alloc.bytesize);
	else if (parameters->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		graph_note_free(call, bits_of(graph), parameters->free.dptr);
}

void note_cuGraphAddNode_v2(struct call *call, CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
			    const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *parameters)
{
	(void)edges;
	note_cuGraphAddNode(call, node, graph, after, count, parameters);
}

/* The runtime's structure of a node has the layout of the driver's. */
void note_cudaGraphAddNode(struct call *call, cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
			   size_t count, struct cudaGraphNodeParams *parameters)
{
	note_cuGraphAddNode(call, node, graph, after, count, (CUgraphNodeParams *)(void *)parameters);
}

void note_cudaGraphAddNode_v2(struct call *call, cudaGraphNode_t *node, cudaGraph_t graph,
			      const cudaGraphNode_t *after, const cudaGraphEdgeData *edges, size_t count,
			      struct cudaGraphNodeParams *parameters)
{
	(void)edges;
	note_cudaGraphAddNode(call, node, graph, after, count, parameters);
}

/* ---------- executable graphs ---------- */

void note_cuGraphInstantiateWithFlags(struct call *call, CUgraphExec *executable, CUgraph graph,
				      unsigned long long flags)
{
	(void)flags;
	if (!call->status)
		call_tell(call, MEMTRACE_GRAPH_EXEC, MEMTRACE_SPACE_NONE, bits_of(*executable), 0, bits_of(graph));
}

void note_cuGraphInstantiate_v2(struct call *call, CUgraphExec *executable, CUgraph graph, CUgraphNode *node, char *log,
				size_t log_bytes)
{
	(void)node;
	(void)log;
	(void)log_bytes;
	note_cuGraphInstantiateWithFlags(call, executable, graph, 0);
}

void note_cuGraphInstantiateWithParams(struct call *call, CUgraphExec *executable, CUgraph graph,
				       CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
	(void)parameters;
	note_cuGraphInstantiateWithFlags(call, executable, graph, 0);
}

void note_cuGraphLaunch(struct call *call, CUgraphExec executable, CUstream stream)
{
	struct record record = { .what = MEMTRACE_GRAPH_LAUNCH,
				 .device = call_device(),
				 .address = bits_of(executable),
				 .stream = bits_of(stream) };
	if (!call->status && __atomic_load_n(&has_memory_nodes, __ATOMIC_RELAXED))
		call_note(call, &record);
}

void note_cudaGraphLaunch(struct call *call, cudaGraphExec_t executable, cudaStream_t stream)
{
	note_cuGraphLaunch(call, executable, stream);
}

void note_cuGraphExecDestroy(struct call *call, CUgraphExec executable)
{
	call_tell(call, MEMTRACE_GRAPH_EXEC_END, MEMTRACE_SPACE_NONE, bits_of(executable), 0, 0);
}

void note_cudaGraphExecDestroy(struct call *call, cudaGraphExec_t executable)
{
	note_cuGraphExecDestroy(call, executable);
}

void note_cuGraphDestroy(struct call *call, CUgraph graph)
{
	call_tell(call, MEMTRACE_GRAPH_END, MEMTRACE_SPACE_NONE, bits_of(graph), 0, 0);
}
