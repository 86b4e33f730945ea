/*
 * Graphs: a list of nodes that knows how many and of which type, no edges and no work.  Launching
 * one does nothing, as launching a kernel does, but for nodes that allocate and free.  Owns graphs,
 * their nodes, executable graphs and the objects that a graph keeps for the program.
 */
#include <stdlib.h>

#include "driver_stream.h"

/* An executable graph is what it was made of: how many nodes, and those of memory in their order.
 */
struct CUgraphExec_st {
	size_t node_count;
	bool frees_first; /* what an earlier launch allocated is freed by the next one */
	size_t memory_count;
	struct graph_step memory[];
};

/* ---- graphs and nodes ---- */

CUgraph graph_new(void)
{
	return calloc(1, sizeof(struct CUgraph_st));
}

CUgraphNode graph_add_node(CUgraph graph, CUgraphNodeType type)
{
	CUgraphNode node = calloc(1, sizeof(*node));

	if (node == NULL)
		return NULL;
	node->type = type;
	node->graph = graph;
	if (graph->last != NULL)
		graph->last->next = node;
	else
		graph->first = node;
	graph->last = node;
	graph->node_count++;
	return node;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
	*graph = graph_new();
	return *graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph graph)
{
	if (graph == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	while (graph->first != NULL) {
		CUgraphNode node = graph->first;
		graph->first = node->next;
		graph_memory_release(node->memory);
		free(node);
	}
	free(graph);
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	size_t room = *count;
	size_t given = 0;

	*count = graph->node_count;
	if (nodes == NULL)
		return CUDA_SUCCESS;
	for (CUgraphNode node = graph->first; node != NULL && given < room; node = node->next)
		nodes[given++] = node;
	while (given < room)
		nodes[given++] = NULL;
	return CUDA_SUCCESS;
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return cuGraphGetNodes(graph, nodes, count);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	*type = node->type;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *dependencies,
				    CUgraphEdgeData *edges, size_t *count)
{
	*count = 0;
	return CUDA_SUCCESS;
}

#undef cuGraphNodeGetDependencies
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *dependencies, size_t *count);
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *dependencies, size_t *count)
{
	*count = 0;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			     size_t count)
{
	*node = graph_add_node(graph, CU_GRAPH_NODE_TYPE_EMPTY);
	return *node != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned flags)
{
	return CUDA_SUCCESS;
}

/* ---- executable graphs ---- */

static size_t count_memory_nodes(CUgraph graph)
{
	size_t count = 0;

	for (CUgraphNode node = graph->first; node != NULL; node = node->next)
		count += node->memory != NULL;
	return count;
}

static void keep_memory_nodes(CUgraphExec executable, CUgraph graph)
{
	for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
		if (node->memory == NULL)
			continue;
		size_t at = executable->memory_count++;
		executable->memory[at].memory = graph_memory_retain(node->memory);
		executable->memory[at].is_free = node->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
	}
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
				     unsigned long long flags)
{
	if (graph == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	size_t memory_count = count_memory_nodes(graph);
	CUgraphExec made = calloc(1, sizeof(*made) + memory_count * sizeof(made->memory[0]));
	if (made == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->node_count = graph->node_count;
	made->frees_first = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
	keep_memory_nodes(made, graph);
	*executable = made;
	return CUDA_SUCCESS;
}

/* The spelling of CUDA 10 and 11: where it went wrong, in words, and nothing goes wrong here. */
CUresult cuGraphInstantiate_v2(CUgraphExec *executable, CUgraph graph, CUgraphNode *node, char *log,
			       size_t log_bytes);
CUresult cuGraphInstantiate_v2(CUgraphExec *executable, CUgraph graph, CUgraphNode *node, char *log,
			       size_t log_bytes)
{
	if (log != NULL && log_bytes > 0)
		*log = '\0';
	return cuGraphInstantiateWithFlags(executable, graph, 0);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *executable, CUgraph graph,
				      CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
	parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return cuGraphInstantiateWithFlags(executable, graph, parameters->flags);
}

CUresult cuGraphExecDestroy(CUgraphExec executable)
{
	if (executable == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < executable->memory_count; i++)
		graph_memory_release(executable->memory[i].memory);
	free(executable);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec executable, CUgraph graph,
			   CUgraphExecUpdateResultInfo *result)
{
	result->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	executable->node_count = graph->node_count;
	return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
	if (executable == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	capture_note_work(stream, CU_GRAPH_NODE_TYPE_GRAPH);
	return graph_memory_launch(executable->memory, executable->memory_count,
				   executable->frees_first);
}

CUresult cuGraphUpload(CUgraphExec executable, CUstream stream)
{
	return executable != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- objects that a graph keeps ---- */

struct CUuserObject_st {
	CUhostFn destroy;
	void *argument;
	unsigned reference_count;
};

CUresult cuUserObjectCreate(CUuserObject *object, void *argument, CUhostFn destroy, unsigned count,
			    unsigned flags)
{
	CUuserObject made = calloc(1, sizeof(*made));

	if (made == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*made = (struct CUuserObject_st){destroy, argument, count};
	*object = made;
	return CUDA_SUCCESS;
}

/* A graph's own reference is never given back: objects live as long as the process. */
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
	if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0)
		__atomic_add_fetch(&object->reference_count, count, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned count)
{
	__atomic_add_fetch(&object->reference_count, count, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count)
{
	if (__atomic_sub_fetch(&object->reference_count, count, __ATOMIC_ACQ_REL) > 0)
		return CUDA_SUCCESS;
	object->destroy(object->argument);
	free(object);
	return CUDA_SUCCESS;
}
