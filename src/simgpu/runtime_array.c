/*
 * Arrays of the runtime: the driver's entries, asked in the runtime's own words.  Owns nothing.
 */
#include "runtime.h"

static CUarray_format element_format(const struct cudaChannelFormatDesc *channels)
{
	bool is_float = channels->f == cudaChannelFormatKindFloat;
	bool is_signed = channels->f == cudaChannelFormatKindSigned;

	switch (channels->x) {
	case 8:
		return is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
	case 16:
		if (is_float)
			return CU_AD_FORMAT_HALF;
		return is_signed ? CU_AD_FORMAT_SIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT16;
	default:
		if (is_float)
			return CU_AD_FORMAT_FLOAT;
		return is_signed ? CU_AD_FORMAT_SIGNED_INT32 : CU_AD_FORMAT_UNSIGNED_INT32;
	}
}

static CUDA_ARRAY3D_DESCRIPTOR descriptor_of(const struct cudaChannelFormatDesc *channels,
					     struct cudaExtent extent, unsigned flags)
{
	const int bits[] = {channels->x, channels->y, channels->z, channels->w};
	unsigned channel_count = 0;

	for (int i = 0; i < 4; i++)
		channel_count += bits[i] != 0;
	return (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = extent.width,
		.Height = extent.height,
		.Depth = extent.depth,
		.Format = element_format(channels),
		.NumChannels = channel_count,
		.Flags = flags,
	};
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
			      struct cudaExtent extent, unsigned flags)
{
	if (array == NULL || channels == NULL)
		return runtime_result(cudaErrorInvalidValue);
	CUDA_ARRAY3D_DESCRIPTOR wanted = descriptor_of(channels, extent, flags);
	RUNTIME_CALL(cuArray3DCreate, (CUarray *)(void *)array, &wanted);
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
			    size_t width, size_t height, unsigned flags)
{
	return cudaMalloc3DArray(array, channels, (struct cudaExtent){width, height, 0}, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
	if (array == NULL)
		return runtime_result(runtime_enter());
	RUNTIME_CALL(cuArrayDestroy, (CUarray)(void *)array);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array,
				     const struct cudaChannelFormatDesc *channels,
				     struct cudaExtent extent, unsigned levels, unsigned flags)
{
	if (array == NULL || channels == NULL)
		return runtime_result(cudaErrorInvalidValue);
	CUDA_ARRAY3D_DESCRIPTOR wanted = descriptor_of(channels, extent, flags);
	RUNTIME_CALL(cuMipmappedArrayCreate, (CUmipmappedArray *)(void *)array, &wanted, levels);
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
	if (array == NULL)
		return runtime_result(runtime_enter());
	RUNTIME_CALL(cuMipmappedArrayDestroy, (CUmipmappedArray)(void *)array);
}

cudaError_t cudaExternalMemoryGetMappedMipmappedArray(
	cudaMipmappedArray_t *array, cudaExternalMemory_t memory,
	const struct cudaExternalMemoryMipmappedArrayDesc *descriptor)
{
	if (descriptor == NULL)
		return runtime_result(cudaErrorInvalidValue);
	CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC wanted = {
		.offset = descriptor->offset,
		.arrayDesc = descriptor_of(&descriptor->formatDesc, descriptor->extent,
					   descriptor->flags),
		.numLevels = descriptor->numLevels,
	};
	RUNTIME_CALL(cuExternalMemoryGetMappedMipmappedArray, (CUmipmappedArray *)(void *)array,
		     (CUexternalMemory)memory, &wanted);
}
