/* What calls mean that change no memory but tell what it is for: copies from and to the host, and launches of
 * kernels while the probe is armed (recorder/probe.h). Of a copy whose direction the call leaves open
 * the source goes along: the model knows what is device memory. */
#include "hooks/rows.h"
#include "recorder/probe.h"

static uint64_t bits_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

/* ---------- launches ---------- */

void note_launch(void)
{
	probe_note_launch();
}

/* ---------- copies ---------- */

static void note_copy(const struct call *call, uint64_t to, uint64_t bytes, uint64_t source)
{
	if (!call->status)
		probe_note_copy(to, bytes, source);
}

void note_cuMemcpy(struct call *call, CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	note_copy(call, to, bytes, from);
}

void note_cuMemcpyAsync(struct call *call, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	(void)stream;
	note_copy(call, to, bytes, from);
}

void note_cuMemcpyHtoD(struct call *call, CUdeviceptr to, const void *from, size_t bytes)
{
	(void)from;
	note_copy(call, to, bytes, 0);
}

void note_cuMemcpyHtoDAsync(struct call *call, CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	(void)from;
	(void)stream;
	note_copy(call, to, bytes, 0);
}

static void note_readback(const struct call *call, uint64_t from, uint64_t bytes)
{
	if (!call->status)
		probe_note_readback(from, bytes);
}

void note_cuMemcpyDtoH(struct call *call, void *to, CUdeviceptr from, size_t bytes)
{
	(void)to;
	note_readback(call, from, bytes);
}

void note_cuMemcpyDtoHAsync(struct call *call, void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	(void)to;
	(void)stream;
	note_readback(call, from, bytes);
}

void note_cuMemcpy2D(struct call *call, const CUDA_MEMCPY2D *rows)
{
	if (rows->srcMemoryType == CU_MEMORYTYPE_DEVICE && rows->dstMemoryType == CU_MEMORYTYPE_HOST)
		note_readback(call, rows->srcDevice, rows->WidthInBytes * rows->Height);
	bool is_from_host = rows->srcMemoryType == CU_MEMORYTYPE_HOST;
	bool is_linear = rows->dstMemoryType == CU_MEMORYTYPE_DEVICE || rows->dstMemoryType == CU_MEMORYTYPE_UNIFIED;
	if (is_linear && (is_from_host || rows->srcMemoryType == CU_MEMORYTYPE_UNIFIED))
		note_copy(call, rows->dstDevice, rows->WidthInBytes * rows->Height,
			  is_from_host ? 0 : rows->srcDevice);
}

void note_cuMemcpy2DAsync(struct call *call, const CUDA_MEMCPY2D *rows, CUstream stream)
{
	(void)stream;
	note_cuMemcpy2D(call, rows);
}

void note_cudaMemcpy(struct call *call, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	if (kind == cudaMemcpyDeviceToHost)
		note_readback(call, bits_of(from), bytes);
	if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDefault)
		note_copy(call, bits_of(to), bytes, kind == cudaMemcpyDefault ? bits_of(from) : 0);
}

void note_cudaMemcpyAsync(struct call *call, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			  cudaStream_t stream)
{
	(void)stream;
	note_cudaMemcpy(call, to, from, bytes, kind);
}

void note_cudaMemcpy2D(struct call *call, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
		       size_t height, enum cudaMemcpyKind kind)
{
	(void)to_pitch;
	(void)from_pitch;
	note_cudaMemcpy(call, to, from, width * height, kind);
}

void note_cudaMemcpy2DAsync(struct call *call, void *to, size_t to_pitch, const void *from, size_t from_pitch,
			    size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	(void)stream;
	note_cudaMemcpy2D(call, to, to_pitch, from, from_pitch, width, height, kind);
}
