/*
 * Nodes of graphs that allocate and free.  Such a node has its address from the moment it is added,
 * and memory from a launch until a free: of a node, or by the program.  On a card that memory then
 * stays with the device's graphs until it is trimmed; here it is given back at once.  Owns the
 * address space of nodes, which lives as long as a graph, an executable one or memory needs it.
 */
#include <stdlib.h>

#include "driver_stream.h"

struct graph_memory {
	CUdeviceptr address;
	unsigned reference_count; /* nodes, in graphs and executable ones */
	bool will_be_there;       /* as far as a launch is thought through */
};

struct graph_memory *graph_memory_retain(struct graph_memory *memory)
{
	__atomic_add_fetch(&memory->reference_count, 1, __ATOMIC_RELAXED);
	return memory;
}

/* Memory that is still allocated goes on as any other: the program frees it. */
static void address_release(CUdeviceptr address)
{
	pthread_mutex_lock(&driver_lock);
	struct block *block = block_find(address);
	if (block->charge_bytes == 0)
		block_remove(block);
	else
		block->kind = BLOCK_LINEAR;
	pthread_mutex_unlock(&driver_lock);
}

void graph_memory_release(struct graph_memory *memory)
{
	if (memory == NULL || __atomic_sub_fetch(&memory->reference_count, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	address_release(memory->address);
	free(memory);
}

/* ---- launches ---- */

static CUresult charge(struct block *block)
{
	CUresult result = device_charge(block->device, block->span_bytes, block->size_bytes);

	if (result != CUDA_SUCCESS)
		return result;
	block->charge_bytes = block->span_bytes;
	driver_machine.devices[block->device].allocation_count++;
	return CUDA_SUCCESS;
}

/* Sets *is_new when it was not there before. */
static CUresult allocate(struct graph_memory *memory, bool frees_first, bool *is_new)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&driver_lock);
	struct block *block = block_find(memory->address);
	*is_new = block->charge_bytes == 0;
	if (*is_new)
		result = charge(block);
	else if (!frees_first)
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&driver_lock);
	return result;
}

static bool is_there(const struct graph_memory *memory)
{
	pthread_mutex_lock(&driver_lock);
	bool is_charged = block_find(memory->address)->charge_bytes > 0;
	pthread_mutex_unlock(&driver_lock);
	return is_charged;
}

/* Is each node's memory there, or not there, as the node needs it? */
static bool can_launch(const struct graph_step *steps, size_t count, bool frees_first)
{
	for (size_t i = 0; i < count; i++)
		steps[i].memory->will_be_there = is_there(steps[i].memory);
	for (size_t i = 0; i < count; i++) {
		struct graph_memory *memory = steps[i].memory;
		if (memory->will_be_there != steps[i].is_free && !(frees_first && !steps[i].is_free))
			return false;
		memory->will_be_there = !steps[i].is_free;
	}
	return true;
}

CUresult graph_memory_launch(struct graph_step *steps, size_t count, bool frees_first)
{
	CUresult result = CUDA_SUCCESS;

	if (!can_launch(steps, count, frees_first))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		steps[i].is_new = false;
	for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
		if (steps[i].is_free)
			result = memory_drop(steps[i].memory->address);
		else
			result = allocate(steps[i].memory, frees_first, &steps[i].is_new);
	}
	for (size_t i = 0; result != CUDA_SUCCESS && i < count; i++) {
		if (steps[i].is_new)
			memory_drop(steps[i].memory->address);
	}
	return result;
}

/* ---- nodes ---- */

static CUresult memory_make(struct graph_memory **made, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
	struct block block = {
		.size_bytes = parameters->bytesize,
		.span_bytes = sim_round_up(parameters->bytesize, DRIVER_UNIT_BYTES),
		.kind = BLOCK_GRAPH,
		.device = parameters->poolProps.location.id,
	};
	struct graph_memory *memory = calloc(1, sizeof(*memory));

	if (memory == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block.graph = memory;
	pthread_mutex_lock(&driver_lock);
	CUresult result = block_insert(&block, DRIVER_UNIT_BYTES);
	pthread_mutex_unlock(&driver_lock);
	if (result != CUDA_SUCCESS) {
		free(memory);
		return result;
	}
	*memory = (struct graph_memory){.address = block.address, .reference_count = 1};
	*made = memory;
	parameters->dptr = block.address;
	return CUDA_SUCCESS;
}

static CUresult add_node(CUgraphNode *node, CUgraph graph, CUgraphNodeType type,
			 struct graph_memory *memory)
{
	CUgraphNode added = graph_add_node(graph, type);

	if (added == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	added->memory = memory;
	*node = added;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
				size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
	struct graph_memory *memory;

	if (node == NULL || graph == NULL || parameters == NULL || parameters->bytesize == 0 ||
	    parameters->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_check_device(parameters->poolProps.location.id);
	if (result == CUDA_SUCCESS)
		result = memory_make(&memory, parameters);
	if (result != CUDA_SUCCESS)
		return result;
	return add_node(node, graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, memory);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			       size_t count, CUdeviceptr address)
{
	if (node == NULL || graph == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	const struct block *block = block_find(address);
	bool is_graph = block != NULL && block->address == address && block->kind == BLOCK_GRAPH;
	struct graph_memory *memory = is_graph ? graph_memory_retain(block->graph) : NULL;
	pthread_mutex_unlock(&driver_lock);
	if (memory == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	return add_node(node, graph, CU_GRAPH_NODE_TYPE_MEM_FREE, memory);
}

/* Of the types of nodes those of memory, and the empty one. */
CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			   const CUgraphEdgeData *edges, size_t count,
			   CUgraphNodeParams *parameters)
{
	if (node == NULL || graph == NULL || parameters == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	switch (parameters->type) {
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return cuGraphAddMemAllocNode(node, graph, dependencies, count,
					      (CUDA_MEM_ALLOC_NODE_PARAMS *)&parameters->alloc);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return cuGraphAddMemFreeNode(node, graph, dependencies, count,
					     parameters->free.dptr);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return cuGraphAddEmptyNode(node, graph, dependencies, count);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* The spelling of CUDA 12.2, without data on edges. */
#undef cuGraphAddNode
CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			size_t count, CUgraphNodeParams *parameters);
CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			size_t count, CUgraphNodeParams *parameters)
{
	return cuGraphAddNode_v2(node, graph, dependencies, NULL, count, parameters);
}
