/* Cases of runtime_calls.c: graphs whose nodes allocate and free. Instantiating and destroying a
 * graph is the driver's event. */
#ifndef TESTS_RUNTIME_GRAPHS_H
#define TESTS_RUNTIME_GRAPHS_H

static const struct cudaMemPoolProps on_device_1 = {
	.allocType = cudaMemAllocationTypePinned,
	.location = {.type = cudaMemLocationTypeDevice, .id = 1}};

static cudaGraph_t create_graph(void)
{
	cudaGraph_t graph;
	CALL(HELPER(cudaGraphCreate)(&graph, 0));
	return graph;
}

static void expect_alloc_node(cudaGraph_t graph, void *pointer)
{
	EXPECT(.what = "graph_alloc", .space = "stream", .device = 1, .address = (uintptr_t)pointer,
	       .bytes = 3 * MIB, .name = "graph", .value = (uintptr_t)graph);
}

static void expect_free_node(cudaGraph_t graph, void *pointer)
{
	EXPECT(.what = "graph_free", .space = "stream", .address = (uintptr_t)pointer,
	       .name = "graph", .value = (uintptr_t)graph);
}

static void *add_alloc(cudaGraph_t graph)
{
	cudaGraphNode_t graph_node;
	struct cudaMemAllocNodeParams parameters = {.poolProps = on_device_1, .bytesize = 3 * MIB};
	CALL(RT(cudaGraphAddMemAllocNode)(&graph_node, graph, NULL, 0, &parameters));
	expect_alloc_node(graph, parameters.dptr);
	return parameters.dptr;
}

static void add_free(cudaGraph_t graph, void *pointer)
{
	cudaGraphNode_t graph_node;
	CALL(RT(cudaGraphAddMemFreeNode)(&graph_node, graph, NULL, 0, pointer));
	expect_free_node(graph, pointer);
}

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
	cudaGraphExec_t executable;
	CALL(HELPER(cudaGraphInstantiateWithFlags)(&executable, graph, 0));
	EXPECT(.what = "graph_exec", .address = (uintptr_t)executable, .name = "graph",
	       .value = (uintptr_t)graph);
	return executable;
}

static void destroy(cudaGraphExec_t executable, cudaGraph_t graph)
{
	CALL(RT(cudaGraphExecDestroy)(executable));
	EXPECT(.what = "exec_end", .address = (uintptr_t)executable);
	CALL(HELPER(cudaGraphDestroy)(graph));
	EXPECT(.what = "graph_end", .address = (uintptr_t)graph);
}

#define LAUNCH(twin)                                                             \
	static void launch##twin(cudaGraphExec_t executable)                     \
	{                                                                        \
		CALL(RT(cudaGraphLaunch##twin)(executable, stream));             \
		EXPECT(.what = "graph_launch", .address = (uintptr_t)executable, \
		       .stream = stream);                                        \
	}                                                                        \
	void case_cudaGraphLaunch##twin(void)                                    \
	{                                                                        \
		cudaGraph_t graph = create_graph();                              \
		void *pointer = add_alloc(graph);                                \
		cudaGraphExec_t executable = instantiate(graph);                 \
		launch##twin(executable);                                        \
		free_device(pointer);                                            \
		launch##twin(executable);                                        \
		CALL(RT(cudaFreeAsync)(pointer, stream));                        \
		expect_stream_free(pointer);                                     \
		destroy(executable, graph);                                      \
	}
LAUNCH()
LAUNCH(_ptsz)

/* Launched twice; each time all is freed by the graph. */
static void run_graph(cudaGraph_t graph)
{
	cudaGraphExec_t executable = instantiate(graph);
	launch(executable);
	launch(executable);
	destroy(executable, graph);
}

void case_cudaGraphAddMemAllocNode(void)
{
	cudaGraph_t graph = create_graph();
	add_free(graph, add_alloc(graph));
	run_graph(graph);
}

void case_cudaGraphAddMemFreeNode(void)
{
	case_cudaGraphAddMemAllocNode();
}

void case_cudaGraphExecDestroy(void)
{
	case_cudaGraphAddMemAllocNode();
}

/* The two runtimes give different functions this name. */
static cudaError_t add_node(cudaGraph_t graph, struct cudaGraphNodeParams *parameters)
{
	cudaGraphNode_t graph_node;
	if (!strcmp(node, NAME_V12))
		return ((V12_cudaGraphAddNode *)call_cudaGraphAddNode)(&graph_node, graph, NULL, 0,
								       parameters);
	return RT(cudaGraphAddNode)(&graph_node, graph, NULL, NULL, 0, parameters);
}

static cudaError_t add_node_v2(cudaGraph_t graph, struct cudaGraphNodeParams *parameters)
{
	cudaGraphNode_t graph_node;
	return ((V12_cudaGraphAddNode_v2 *)call_cudaGraphAddNode_v2)(&graph_node, graph, NULL, NULL,
								     0, parameters);
}

static void add_and_run(cudaError_t (*add)(cudaGraph_t, struct cudaGraphNodeParams *))
{
	cudaGraph_t graph = create_graph();
	struct cudaGraphNodeParams alloc = {
		.type = cudaGraphNodeTypeMemAlloc,
		.alloc = {.poolProps = on_device_1, .bytesize = 3 * MIB}};
	CALL(add(graph, &alloc));
	expect_alloc_node(graph, alloc.alloc.dptr);
	struct cudaGraphNodeParams release = {.type = cudaGraphNodeTypeMemFree,
					      .free = {.dptr = alloc.alloc.dptr}};
	CALL(add(graph, &release));
	expect_free_node(graph, alloc.alloc.dptr);
	run_graph(graph);
}

void case_cudaGraphAddNode(void)
{
	add_and_run(add_node);
}

void case_cudaGraphAddNode_v2(void)
{
	add_and_run(add_node_v2);
}

void case_cudaDeviceGraphMemTrim(void)
{
	CALL(RT(cudaDeviceGraphMemTrim)(1));
	EXPECT(.what = "pool_trim", .space = "stream", .device = 1);
}

#endif
