/*
 * Graphs: a list of nodes that knows how many and of which type, no edges and no work.  Launching
 * one does nothing, as launching a kernel does.  Owns graphs, their nodes, executable graphs and
 * the objects that a graph keeps for the program.
 */
#include <stdlib.h>

#include "driver.h"

/* An executable graph is what it was made of. */
struct CUgraphExec_st {
	size_t node_count;
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

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
				     unsigned long long flags)
{
	if (graph == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphExec made = calloc(1, sizeof(*made));
	if (made == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->node_count = graph->node_count;
	*executable = made;
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *executable, CUgraph graph,
				      CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
	parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return cuGraphInstantiateWithFlags(executable, graph, parameters->flags);
}

CUresult cuGraphExecDestroy(CUgraphExec executable)
{
	free(executable);
	return executable != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
	return CUDA_SUCCESS;
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
