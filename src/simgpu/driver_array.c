/*
 * Arrays: memory with a layout of the driver's own, so it has an account and no contents.  Owns the
 * arrays; their bytes are charged in pages, as the layout of a real one is not public.
 */
#include <stdlib.h>

#include "driver.h"

struct CUarray_st {
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	int device;
	size_t charge_bytes;
};

static size_t format_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	default:
		return 4;
	}
}

static size_t at_least_one(size_t extent)
{
	return extent != 0 ? extent : 1;
}

/* Bytes of the elements; SIZE_MAX when no machine has as many. */
static size_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	size_t bytes = format_bytes(descriptor->Format) * descriptor->NumChannels;
	const size_t extents[] = {descriptor->Width, at_least_one(descriptor->Height),
				  at_least_one(descriptor->Depth)};

	for (int i = 0; i < 3; i++) {
		if (__builtin_mul_overflow(bytes, extents[i], &bytes))
			return SIZE_MAX;
	}
	return bytes;
}

static CUresult array_charge(CUarray array)
{
	pthread_mutex_lock(&driver_lock);
	CUresult result = device_charge(array->device, array->charge_bytes);
	if (result == CUDA_SUCCESS)
		driver_machine.devices[array->device].allocation_count++;
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	int device;
	CUresult result = context_require(&device);

	if (result != CUDA_SUCCESS)
		return result;
	if (array == NULL || descriptor == NULL || descriptor->Width == 0 ||
	    descriptor->NumChannels == 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = capture_check_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	CUarray created = calloc(1, sizeof(*created));
	if (created == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	created->descriptor = *descriptor;
	created->device = device;
	created->charge_bytes = sim_round_up(array_bytes(descriptor), DRIVER_PAGE_BYTES);
	result = array_charge(created);
	if (result == CUDA_SUCCESS)
		*array = created;
	else
		free(created);
	return result;
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
	if (descriptor == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR wanted = {
		.Width = descriptor->Width,
		.Height = descriptor->Height,
		.Format = descriptor->Format,
		.NumChannels = descriptor->NumChannels,
	};
	return cuArray3DCreate(array, &wanted);
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array)
{
	if (array == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	*descriptor = array->descriptor;
	return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array)
{
	if (array == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = capture_check_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	device_uncharge(array->device, array->charge_bytes);
	driver_machine.devices[array->device].free_count++;
	pthread_mutex_unlock(&driver_lock);
	free(array);
	return CUDA_SUCCESS;
}
