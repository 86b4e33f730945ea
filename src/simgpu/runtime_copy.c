/*
 * Copies and fills of the runtime.  Owns no state; which way a copy goes is seen from its
 * addresses, so the direction that the caller names is not looked at.
 */
#include "runtime.h"

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	RUNTIME_CALL(cuMemcpy, (CUdeviceptr)to, (CUdeviceptr)from, bytes);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	RUNTIME_CALL(cuMemcpyAsync, (CUdeviceptr)to, (CUdeviceptr)from, bytes, (CUstream)stream);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
	RUNTIME_CALL(cuMemcpy, (CUdeviceptr)to, (CUdeviceptr)from, bytes);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
				size_t bytes, cudaStream_t stream)
{
	RUNTIME_CALL(cuMemcpyAsync, (CUdeviceptr)to, (CUdeviceptr)from, bytes, (CUstream)stream);
}

/* ---- two dimensions ---- */

static CUDA_MEMCPY2D rows_of(void *to, size_t to_pitch, const void *from, size_t from_pitch,
			     size_t width_bytes, size_t height)
{
	return (CUDA_MEMCPY2D){
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = (CUdeviceptr)from,
		.srcPitch = from_pitch,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (CUdeviceptr)to,
		.dstPitch = to_pitch,
		.WidthInBytes = width_bytes,
		.Height = height,
	};
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
			 size_t width_bytes, size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D rows = rows_of(to, to_pitch, from, from_pitch, width_bytes, height);
	RUNTIME_CALL(cuMemcpy2D, &rows);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
			      size_t width_bytes, size_t height, enum cudaMemcpyKind kind,
			      cudaStream_t stream)
{
	CUDA_MEMCPY2D rows = rows_of(to, to_pitch, from, from_pitch, width_bytes, height);
	RUNTIME_CALL(cuMemcpy2DAsync, &rows, (CUstream)stream);
}

/* ---- a symbol's contents are read by kernels alone ---- */

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
			       enum cudaMemcpyKind kind)
{
	return runtime_result(runtime_enter());
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes,
				    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return runtime_result(runtime_enter());
}

/* ---- fills ---- */

cudaError_t cudaMemset(void *address, int value, size_t bytes)
{
	RUNTIME_CALL(cuMemsetD8, (CUdeviceptr)address, (unsigned char)value, bytes);
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream)
{
	RUNTIME_CALL(cuMemsetD8Async, (CUdeviceptr)address, (unsigned char)value, bytes,
		     (CUstream)stream);
}

/* ---- hints ---- */

#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes, struct cudaMemLocation location,
				 unsigned flags, cudaStream_t stream)
#else
cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes, int device, cudaStream_t stream)
#endif
{
	return runtime_result(runtime_enter());
}
