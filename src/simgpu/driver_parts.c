/*
 * Parts and unions of devices: green contexts, which are a part of one, and multicast objects,
 * which show memory of several.  Neither does anything here.  A green context stands for the
 * primary one, whose memory it uses; a multicast object has a handle and an account of nothing.
 */
#include <stdlib.h>

#include "driver_stream.h"

/* ---- green contexts ---- */

struct CUgreenCtx_st {
	struct CUctx_st context;
};

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *description, CUdevResource *resources,
				   unsigned count)
{
	if (description == NULL || resources == NULL || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	*description = (CUdevResourceDesc)(void *)resources; /* which nobody reads */
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx *context, CUdevResourceDesc description, CUdevice device,
			  unsigned flags)
{
	CUresult result = driver_check_device(device);

	if (result != CUDA_SUCCESS)
		return result;
	if (context == NULL || description == NULL || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	CUgreenCtx made = calloc(1, sizeof(*made));
	if (made == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->context = (struct CUctx_st){.device = device, .is_green = true, .retain_count = 1};
	*context = made;
	return CUDA_SUCCESS;
}

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
	if (context == NULL || green == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*context = &green->context;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned flags, int priority)
{
	if (stream == NULL || green == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_create(stream, green->context.device, flags, priority);
}

CUresult cuGreenCtxDestroy(CUgreenCtx context)
{
	free(context);
	return context != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- multicast ---- */

static CUresult check_handle(CUmemGenericAllocationHandle handle)
{
	CUmemAllocationProp properties;
	return cuMemGetAllocationPropertiesFromHandle(&properties, handle);
}

CUresult cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *properties,
				   CUmulticastGranularity_flags option)
{
	if (bytes == NULL || properties == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = DRIVER_PAGE_BYTES;
	return CUDA_SUCCESS;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle,
			   const CUmulticastObjectProp *properties)
{
	if (handle == NULL || properties == NULL || properties->numDevices == 0 ||
	    properties->size == 0 || properties->size % DRIVER_PAGE_BYTES != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return allocation_make(handle, properties->size);
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device)
{
	CUresult result = driver_check_device(device);
	return result == CUDA_SUCCESS ? check_handle(handle) : result;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
			    CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes,
			    unsigned long long flags)
{
	CUresult result = check_handle(handle);
	return result == CUDA_SUCCESS ? check_handle(memory) : result;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset,
			     CUdeviceptr address, size_t bytes, unsigned long long flags)
{
	return address != 0 ? check_handle(handle) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset,
			   size_t bytes)
{
	CUresult result = driver_check_device(device);
	return result == CUDA_SUCCESS ? check_handle(handle) : result;
}
