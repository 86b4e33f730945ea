/*
 * Copies and fills.  Up to DRIVER_SHADOW_BYTES they are real, through the shadow of device memory:
 * programs read such small things back (a loss, a random state, a shape).  A larger copy to the
 * host yields zeros, a larger copy to the device is dropped.  Must never touch device addresses.
 */
#include <string.h>

#include "driver_stream.h"

static void copy_contents(char *to, bool to_device, const char *from, bool from_device,
			  size_t bytes)
{
	bool is_small = bytes <= DRIVER_SHADOW_BYTES;

	if (is_small || (!to_device && !from_device))
		memmove(to, from, bytes);
	else if (!to_device)
		memset(to, 0, bytes);
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	bool to_device, from_device;

	if (bytes == 0)
		return CUDA_SUCCESS;
	gates_settle(to, bytes);
	gates_settle(from, bytes);
	pthread_mutex_lock(&driver_lock);
	char *to_contents = space_contents(to, bytes, &to_device);
	char *from_contents = space_contents(from, bytes, &from_device);
	pthread_mutex_unlock(&driver_lock);
	if (to_contents == NULL || from_contents == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	copy_contents(to_contents, to_device, from_contents, from_device, bytes);
	return CUDA_SUCCESS;
}

/* It waits for the default stream; that streams of the blocking kind wait for that one is not told. */
static CUresult begin_now(void)
{
	CUresult result = capture_check_unsafe();

	if (result == CUDA_SUCCESS)
		result = gates_wait(&stream_resolve(NULL)->gates);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	work_finish_stream(stream_resolve(NULL));
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

static CUresult copy_now(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	CUresult result = begin_now();
	return result == CUDA_SUCCESS ? copy(to, from, bytes) : result;
}

static CUresult copy_on_stream(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	capture_note_work(stream, CU_GRAPH_NODE_TYPE_MEMCPY);
	return copy(to, from, bytes);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return copy_now(to, from, bytes);
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
	return copy_now(to, (CUdeviceptr)from, bytes);
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
	return copy_now((CUdeviceptr)to, from, bytes);
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return copy_now(to, from, bytes);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
		      CUcontext from_context, size_t bytes)
{
	return copy_now(to, from, bytes);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy_on_stream(to, from, bytes, stream);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	return copy_on_stream(to, (CUdeviceptr)from, bytes, stream);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy_on_stream((CUdeviceptr)to, from, bytes, stream);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy_on_stream(to, from, bytes, stream);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
			   CUcontext from_context, size_t bytes, CUstream stream)
{
	return copy_on_stream(to, from, bytes, stream);
}

/* ---- two dimensions ---- */

static CUdeviceptr side_address(CUmemorytype type, const void *host, CUdeviceptr device)
{
	return type == CU_MEMORYTYPE_HOST ? (CUdeviceptr)host : device;
}

static CUresult copy_rows(const CUDA_MEMCPY2D *rows)
{
	bool has_array = rows->srcMemoryType == CU_MEMORYTYPE_ARRAY ||
			 rows->dstMemoryType == CU_MEMORYTYPE_ARRAY;

	if (has_array)
		return CUDA_SUCCESS; /* arrays have no contents here */
	CUdeviceptr from = side_address(rows->srcMemoryType, rows->srcHost, rows->srcDevice);
	CUdeviceptr to = side_address(rows->dstMemoryType, rows->dstHost, rows->dstDevice);
	from += rows->srcY * rows->srcPitch + rows->srcXInBytes;
	to += rows->dstY * rows->dstPitch + rows->dstXInBytes;
	CUresult result = CUDA_SUCCESS;
	for (size_t row = 0; row < rows->Height && result == CUDA_SUCCESS; row++)
		result = copy(to + row * rows->dstPitch, from + row * rows->srcPitch,
			      rows->WidthInBytes);
	return result;
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D *rows)
{
	CUresult result = begin_now();
	return result == CUDA_SUCCESS ? copy_rows(rows) : result;
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *rows)
{
	return cuMemcpy2D(rows);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *rows, CUstream stream)
{
	capture_note_work(stream, CU_GRAPH_NODE_TYPE_MEMCPY);
	return copy_rows(rows);
}

/* ---- fills ---- */

static CUresult fill(CUdeviceptr address, const void *element, size_t element_bytes, size_t count)
{
	bool is_device;

	if (count == 0)
		return CUDA_SUCCESS;
	gates_settle(address, count * element_bytes);
	pthread_mutex_lock(&driver_lock);
	char *contents = space_contents(address, count * element_bytes, &is_device);
	pthread_mutex_unlock(&driver_lock);
	if (contents == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_device && count * element_bytes > DRIVER_SHADOW_BYTES)
		return CUDA_SUCCESS;
	for (size_t i = 0; i < count; i++)
		memcpy(contents + i * element_bytes, element, element_bytes);
	return CUDA_SUCCESS;
}

#define DEFINE_FILL(name, type)                                      \
	CUresult name(CUdeviceptr address, type value, size_t count) \
	{                                                            \
		return fill(address, &value, sizeof(value), count);  \
	}
#define DEFINE_FILL_ASYNC(name, type)                                                 \
	CUresult name(CUdeviceptr address, type value, size_t count, CUstream stream) \
	{                                                                             \
		capture_note_work(stream, CU_GRAPH_NODE_TYPE_MEMSET);                 \
		return fill(address, &value, sizeof(value), count);                   \
	}

DEFINE_FILL(cuMemsetD8, unsigned char)
DEFINE_FILL(cuMemsetD16, unsigned short)
DEFINE_FILL(cuMemsetD32, unsigned)
DEFINE_FILL_ASYNC(cuMemsetD8Async, unsigned char)
DEFINE_FILL_ASYNC(cuMemsetD16Async, unsigned short)
DEFINE_FILL_ASYNC(cuMemsetD32Async, unsigned)

/* ---- hints ---- */

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUmemLocation location,
			    unsigned flags, CUstream stream)
{
	return CUDA_SUCCESS;
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
	return CUDA_SUCCESS;
}
