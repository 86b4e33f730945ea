/*
 * Stream-ordered memory of the runtime: the driver's entries under other names.  The _ptsz twins
 * stand here too, since they reach the driver's own twins, as in the real library.
 */
#include "runtime.h"

cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream)
{
	RUNTIME_CALL(cuMemAllocAsync, (CUdeviceptr *)address, bytes, (CUstream)stream);
}

cudaError_t cudaMallocFromPoolAsync(void **address, size_t bytes, cudaMemPool_t pool,
				    cudaStream_t stream)
{
	RUNTIME_CALL(cuMemAllocFromPoolAsync, (CUdeviceptr *)address, bytes, (CUmemoryPool)pool,
		     (CUstream)stream);
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
	RUNTIME_CALL(cuMemFreeAsync, (CUdeviceptr)address, (CUstream)stream);
}

/* ---- callers with a default stream per thread ---- */

#define RUNTIME_THREAD_CALL(entry, ...)                                          \
	do {                                                                     \
		cudaError_t entered = runtime_enter();                           \
		if (entered != cudaSuccess)                                      \
			return runtime_result(entered);                          \
		return runtime_result(runtime_thread_driver.entry(__VA_ARGS__)); \
	} while (0)

cudaError_t cudaMallocAsync_ptsz(void **address, size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocAsync_ptsz(void **address, size_t bytes, cudaStream_t stream)
{
	RUNTIME_THREAD_CALL(cuMemAllocAsync, (CUdeviceptr *)address, bytes, (CUstream)stream);
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void **address, size_t bytes, cudaMemPool_t pool,
					 cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync_ptsz(void **address, size_t bytes, cudaMemPool_t pool,
					 cudaStream_t stream)
{
	RUNTIME_THREAD_CALL(cuMemAllocFromPoolAsync, (CUdeviceptr *)address, bytes,
			    (CUmemoryPool)pool, (CUstream)stream);
}

cudaError_t cudaFreeAsync_ptsz(void *address, cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void *address, cudaStream_t stream)
{
	RUNTIME_THREAD_CALL(cuMemFreeAsync, (CUdeviceptr)address, (CUstream)stream);
}

/* ---- pools ---- */

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	RUNTIME_CALL(cuDeviceGetDefaultMemPool, (CUmemoryPool *)pool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	RUNTIME_CALL(cuDeviceGetMemPool, (CUmemoryPool *)pool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	RUNTIME_CALL(cuDeviceSetMemPool, device, (CUmemoryPool)pool);
}

/* The runtime's structures of pools have the layout of the driver's. */
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
	RUNTIME_CALL(cuMemPoolCreate, (CUmemoryPool *)pool,
		     (const CUmemPoolProps *)(const void *)properties);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
	RUNTIME_CALL(cuMemPoolDestroy, (CUmemoryPool)pool);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
	RUNTIME_CALL(cuMemPoolGetAttribute, (CUmemoryPool)pool, (CUmemPool_attribute)attribute,
		     value);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
	RUNTIME_CALL(cuMemPoolSetAttribute, (CUmemoryPool)pool, (CUmemPool_attribute)attribute,
		     value);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access,
				 size_t count)
{
	RUNTIME_CALL(cuMemPoolSetAccess, (CUmemoryPool)pool,
		     (const CUmemAccessDesc *)(const void *)access, count);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
				 struct cudaMemLocation *location)
{
	RUNTIME_CALL(cuMemPoolGetAccess, (CUmemAccess_flags *)(void *)flags, (CUmemoryPool)pool,
		     (CUmemLocation *)(void *)location);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
	RUNTIME_CALL(cuMemPoolTrimTo, (CUmemoryPool)pool, keep_bytes);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
				     enum cudaMemAllocationType type)
{
	RUNTIME_CALL(cuMemGetDefaultMemPool, (CUmemoryPool *)pool, (CUmemLocation *)(void *)location,
		     (CUmemAllocationType)type);
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
			      enum cudaMemAllocationType type)
{
	RUNTIME_CALL(cuMemGetMemPool, (CUmemoryPool *)pool, (CUmemLocation *)(void *)location,
		     (CUmemAllocationType)type);
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location, enum cudaMemAllocationType type,
			      cudaMemPool_t pool)
{
	RUNTIME_CALL(cuMemSetMemPool, (CUmemLocation *)(void *)location, (CUmemAllocationType)type,
		     (CUmemoryPool)pool);
}
#endif

/* ---- the memory of graphs ---- */

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
					   void *value)
{
	RUNTIME_CALL(cuDeviceGetGraphMemAttribute, device, (CUgraphMem_attribute)attribute, value);
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
					   void *value)
{
	RUNTIME_CALL(cuDeviceSetGraphMemAttribute, device, (CUgraphMem_attribute)attribute, value);
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
	RUNTIME_CALL(cuDeviceGraphMemTrim, device);
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
				     const cudaGraphNode_t *dependencies, size_t count,
				     struct cudaMemAllocNodeParams *parameters)
{
	RUNTIME_CALL(cuGraphAddMemAllocNode, (CUgraphNode *)node, (CUgraph)graph,
		     (const CUgraphNode *)dependencies, count,
		     (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)parameters);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
				    const cudaGraphNode_t *dependencies, size_t count,
				    void *address)
{
	RUNTIME_CALL(cuGraphAddMemFreeNode, (CUgraphNode *)node, (CUgraph)graph,
		     (const CUgraphNode *)dependencies, count, (CUdeviceptr)address);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
			     const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
			     size_t count, struct cudaGraphNodeParams *parameters)
{
	RUNTIME_CALL(cuGraphAddNode, (CUgraphNode *)node, (CUgraph)graph,
		     (const CUgraphNode *)dependencies,
		     (const CUgraphEdgeData *)(const void *)edges, count,
		     (CUgraphNodeParams *)(void *)parameters);
}
#else
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
			     const cudaGraphNode_t *dependencies, size_t count,
			     struct cudaGraphNodeParams *parameters)
{
	RUNTIME_CALL(cuGraphAddNode, (CUgraphNode *)node, (CUgraph)graph,
		     (const CUgraphNode *)dependencies, count,
		     (CUgraphNodeParams *)(void *)parameters);
}

cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t *node, cudaGraph_t graph,
				const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
				size_t count, struct cudaGraphNodeParams *parameters)
{
	return cudaGraphAddNode(node, graph, dependencies, count, parameters);
}
#endif
