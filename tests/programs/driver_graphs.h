/* Cases of driver_calls.c: graphs whose nodes allocate and free. */
#ifndef TESTS_DRIVER_GRAPHS_H
#define TESTS_DRIVER_GRAPHS_H

static const CUmemPoolProps on_device_1 = {
	.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};

static CUgraph create_graph(void)
{
	CUgraph graph;
	CALL(HELPER(cuGraphCreate)(&graph, 0));
	return graph;
}

static void expect_alloc_node(CUgraph graph, CUdeviceptr pointer)
{
	EXPECT(.what = "graph_alloc", .space = "stream", .device = 1, .address = pointer,
	       .bytes = 3 * MIB, .name = "graph", .value = (uintptr_t)graph);
}

static void expect_free_node(CUgraph graph, CUdeviceptr pointer)
{
	EXPECT(.what = "graph_free", .space = "stream", .address = pointer, .name = "graph",
	       .value = (uintptr_t)graph);
}

static CUdeviceptr add_alloc(CUgraph graph)
{
	CUgraphNode node;
	CUDA_MEM_ALLOC_NODE_PARAMS parameters = {.poolProps = on_device_1, .bytesize = 3 * MIB};
	CALL(call_cuGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters));
	expect_alloc_node(graph, parameters.dptr);
	return parameters.dptr;
}

static void add_free(CUgraph graph, CUdeviceptr pointer)
{
	CUgraphNode node;
	CALL(call_cuGraphAddMemFreeNode(&node, graph, NULL, 0, pointer));
	expect_free_node(graph, pointer);
}

static void expect_exec(CUgraphExec executable, CUgraph graph)
{
	EXPECT(.what = "graph_exec", .address = (uintptr_t)executable, .name = "graph",
	       .value = (uintptr_t)graph);
}

static CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec executable;
	CALL(call_cuGraphInstantiateWithFlags(&executable, graph, 0));
	expect_exec(executable, graph);
	return executable;
}

static void expect_launch(CUgraphExec executable)
{
	EXPECT(.what = "graph_launch", .address = (uintptr_t)executable, .stream = stream);
}

static void launch(CUgraphExec executable)
{
	CALL(call_cuGraphLaunch(executable, stream));
	expect_launch(executable);
}

static void destroy_executable(CUgraphExec executable)
{
	CALL(call_cuGraphExecDestroy(executable));
	EXPECT(.what = "exec_end", .address = (uintptr_t)executable);
}

static void destroy_graph(CUgraph graph)
{
	CALL(call_cuGraphDestroy(graph));
	EXPECT(.what = "graph_end", .address = (uintptr_t)graph);
}

/* Launched twice; each time all is freed by the graph. */
static void run_graph(CUgraph graph)
{
	CUgraphExec executable = instantiate(graph);
	launch(executable);
	launch(executable);
	destroy_executable(executable);
	destroy_graph(graph);
}

void case_cuGraphAddMemAllocNode(void)
{
	CUgraph graph = create_graph();
	add_free(graph, add_alloc(graph));
	run_graph(graph);
}

void case_cuGraphAddMemFreeNode(void)
{
	case_cuGraphAddMemAllocNode();
}

void case_cuGraphAddNode(void)
{
	CUgraph graph = create_graph();
	CUgraphNode node;
	CUgraphNodeParams alloc = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
				   .alloc = {.poolProps = on_device_1, .bytesize = 3 * MIB}};
	CUgraphNodeParams other = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
	CALL(call_cuGraphAddNode(&node, graph, NULL, 0, &alloc));
	expect_alloc_node(graph, alloc.alloc.dptr);
	CUgraphNodeParams release = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE,
				     .free = {.dptr = alloc.alloc.dptr}};
	CALL(call_cuGraphAddNode(&node, graph, NULL, 0, &release));
	expect_free_node(graph, alloc.alloc.dptr);
	CALL(call_cuGraphAddNode(&node, graph, NULL, 0, &other));
	run_graph(graph);
}

void case_cuGraphAddNode_v2(void)
{
	CUgraph graph = create_graph();
	CUgraphNode node;
	CUgraphNodeParams alloc = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
				   .alloc = {.poolProps = on_device_1, .bytesize = 3 * MIB}};
	CALL(call_cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &alloc));
	expect_alloc_node(graph, alloc.alloc.dptr);
	CUgraphNodeParams release = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE,
				     .free = {.dptr = alloc.alloc.dptr}};
	CALL(call_cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &release));
	expect_free_node(graph, alloc.alloc.dptr);
	run_graph(graph);
}

/* ---------- executable graphs ---------- */

void case_cuGraphInstantiate(void)
{
	CUgraph graph = create_graph();
	CUgraphExec executable;
	char log[100];
	CALL(call_cuGraphInstantiate(&executable, graph, NULL, log, sizeof log));
	expect_exec(executable, graph);
	destroy_executable(executable);
	destroy_graph(graph);
}

void case_cuGraphInstantiate_v2(void)
{
	CUgraph graph = create_graph();
	CUgraphExec executable;
	CALL(call_cuGraphInstantiate_v2(&executable, graph, NULL, NULL, 0));
	expect_exec(executable, graph);
	destroy_executable(executable);
	destroy_graph(graph);
}

void case_cuGraphInstantiateWithFlags(void)
{
	run_graph(create_graph());
}

#define WITH_PARAMS(twin)                                                                       \
	void case_cuGraphInstantiateWithParams##twin(void)                                      \
	{                                                                                       \
		CUgraph graph = create_graph();                                                 \
		CUgraphExec executable;                                                         \
		CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {0};                                 \
		CALL(call_cuGraphInstantiateWithParams##twin(&executable, graph, &parameters)); \
		expect_exec(executable, graph);                                                 \
		destroy_executable(executable);                                                 \
		destroy_graph(graph);                                                           \
	}
WITH_PARAMS()
WITH_PARAMS(_ptsz)

/* What a launch leaves allocated the program frees, even when the graph is gone. */
#define LAUNCH(twin)                                                \
	void case_cuGraphLaunch##twin(void)                         \
	{                                                           \
		CUgraph graph = create_graph();                     \
		CUdeviceptr pointer = add_alloc(graph);             \
		CUgraphExec executable = instantiate(graph);        \
		CALL(call_cuGraphLaunch##twin(executable, stream)); \
		expect_launch(executable);                          \
		CALL(call_cuMemFreeAsync(pointer, stream));         \
		expect_stream_free(pointer);                        \
		CALL(call_cuGraphLaunch##twin(executable, stream)); \
		expect_launch(executable);                          \
		destroy_executable(executable);                     \
		destroy_graph(graph);                               \
		free_device(pointer);                               \
	}
LAUNCH()
LAUNCH(_ptsz)

void case_cuGraphExecDestroy(void)
{
	run_graph(create_graph());
}

void case_cuGraphDestroy(void)
{
	destroy_graph(create_graph());
}

void case_cuDeviceGraphMemTrim(void)
{
	CALL(call_cuDeviceGraphMemTrim(1));
	EXPECT(.what = "pool_trim", .space = "stream", .device = 1);
}

#endif
