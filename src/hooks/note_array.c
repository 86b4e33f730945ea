/* What calls about arrays and mipmaps mean: memory with a handle for an address. A level or a plane of one is no
 * allocation of its own. Descriptors are read after the call, whether it succeeded or not. */
#include "hooks/rows.h" /* first: it says how cuda.h spells its names */

#include "hooks/array_bytes.h"

static void note_array(struct call *call, uint8_t device, const void *array, const struct array_shape *shape,
		       unsigned levels)
{
	call_note_alloc(call, MEMTRACE_SPACE_ARRAY, device, (uint64_t)(uintptr_t)array, array_bytes(shape, levels), 0);
}

static void note_array_free(struct call *call, const void *array)
{
	call_note_free(call, MEMTRACE_FREE, MEMTRACE_SPACE_ARRAY, (uint64_t)(uintptr_t)array, 0, 0);
}

/* A call without a descriptor fails: nothing is known of what was asked. */
static struct array_shape driver_shape(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	static const CUDA_ARRAY3D_DESCRIPTOR none;
	return array_shape_of_driver(descriptor ? descriptor : &none);
}

static struct array_shape runtime_shape(const struct cudaChannelFormatDesc *channels, struct cudaExtent extent,
					unsigned flags)
{
	static const struct cudaChannelFormatDesc none;
	return array_shape_of_runtime(channels ? channels : &none, extent, flags);
}

void note_cuArray3DCreate(struct call *call, CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	struct array_shape shape = driver_shape(descriptor);
	note_array(call, call_device(), call->status ? NULL : *array, &shape, 1);
}

void note_cuArrayCreate(struct call *call, CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
	CUDA_ARRAY3D_DESCRIPTOR flat = { 0 };
	if (descriptor)
		flat = (CUDA_ARRAY3D_DESCRIPTOR){ .Width = descriptor->Width,
						  .Height = descriptor->Height,
						  .Format = descriptor->Format,
						  .NumChannels = descriptor->NumChannels };
	note_cuArray3DCreate(call, array, &flat);
}

void note_cuArrayDestroy(struct call *call, CUarray array)
{
	note_array_free(call, array);
}

void note_cuMipmappedArrayCreate(struct call *call, CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
				 unsigned int levels)
{
	struct array_shape shape = driver_shape(descriptor);
	note_array(call, call_device(), call->status ? NULL : *array, &shape, levels);
}

void note_cuMipmappedArrayDestroy(struct call *call, CUmipmappedArray array)
{
	note_array_free(call, array);
}

void note_cudaMallocArray(struct call *call, cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
			  size_t width, size_t height, unsigned int flags)
{
	struct array_shape shape = runtime_shape(channels, (struct cudaExtent){ width, height, 0 }, flags);
	note_array(call, call_runtime_device(), call->status ? NULL : *array, &shape, 1);
}

void note_cudaMalloc3DArray(struct call *call, cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
			    struct cudaExtent extent, unsigned int flags)
{
	struct array_shape shape = runtime_shape(channels, extent, flags);
	note_array(call, call_runtime_device(), call->status ? NULL : *array, &shape, 1);
}

void note_cudaMallocMipmappedArray(struct call *call, cudaMipmappedArray_t *array,
				   const struct cudaChannelFormatDesc *channels, struct cudaExtent extent,
				   unsigned int levels, unsigned int flags)
{
	struct array_shape shape = runtime_shape(channels, extent, flags);
	note_array(call, call_runtime_device(), call->status ? NULL : *array, &shape, levels);
}

void note_cudaFreeArray(struct call *call, cudaArray_t array)
{
	note_array_free(call, array);
}

void note_cudaFreeMipmappedArray(struct call *call, cudaMipmappedArray_t array)
{
	note_array_free(call, array);
}
