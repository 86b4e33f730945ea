/*
 * The stand-in for cuDNN's older descriptors: tensors and filters keep their type and dimensions,
 * the others exist and nothing is asked of them.
 *
 * Owns every `struct cudnn_desc` it creates; a caller destroys each by the matching call. RNN
 * descriptors are kept in cudnn_rnn.c.
 */
#include "sim_cudnn.h"

#include <stdlib.h>
#include <string.h>

static int desc_new(struct cudnn_desc **desc)
{
	*desc = calloc(1, sizeof(**desc));
	return *desc ? CUDNN_SUCCESS : CUDNN_ALLOC_FAILED;
}

#define CREATE_AND_DESTROY(name)                                  \
	SIM_API(int, cudnnCreate##name, struct cudnn_desc **desc) \
	{                                                         \
		return desc_new(desc);                            \
	}                                                         \
	SIM_API(int, cudnnDestroy##name, struct cudnn_desc *desc) \
	{                                                         \
		free(desc);                                       \
		return CUDNN_SUCCESS;                             \
	}

CREATE_AND_DESTROY(ActivationDescriptor)
CREATE_AND_DESTROY(CTCLossDescriptor)
CREATE_AND_DESTROY(ConvolutionDescriptor)
CREATE_AND_DESTROY(DropoutDescriptor)
CREATE_AND_DESTROY(FilterDescriptor)
CREATE_AND_DESTROY(PoolingDescriptor)
CREATE_AND_DESTROY(SpatialTransformerDescriptor)
CREATE_AND_DESTROY(TensorDescriptor)

SIM_ACCEPT(cudnnRestoreDropoutDescriptor)
SIM_ACCEPT(cudnnSetActivationDescriptor)
SIM_ACCEPT(cudnnSetCTCLossDescriptorEx)
SIM_ACCEPT(cudnnSetCTCLossDescriptor_v9)
SIM_ACCEPT(cudnnSetConvolutionGroupCount)
SIM_ACCEPT(cudnnSetConvolutionMathType)
SIM_ACCEPT(cudnnSetConvolutionNdDescriptor)
SIM_ACCEPT(cudnnSetDropoutDescriptor)
SIM_ACCEPT(cudnnSetPooling2dDescriptor)
SIM_ACCEPT(cudnnSetSpatialTransformerNdDescriptor)

size_t cudnn_desc_bytes(const struct cudnn_desc *desc)
{
	size_t bytes = cudnn_type_bytes(desc->data_type);

	for (int i = 0; i < desc->dim_count; i++)
		bytes *= (size_t)desc->dims[i];
	return bytes;
}

size_t cudnn_desc_window(const struct cudnn_desc *filter)
{
	size_t window = 1;

	for (int i = 2; i < filter->dim_count; i++)
		window *= (size_t)filter->dims[i];
	return window;
}

void cudnn_desc_set_matrix(struct cudnn_desc *desc, int data_type, int rows, int columns)
{
	const struct cudnn_desc matrix = {
		.data_type = data_type,
		.dim_count = 3,
		.dims = {1, rows, columns},
		.strides = {rows * columns, columns, 1},
	};

	*desc = matrix;
}

static void copy_dims(int *to, const int *from, int count)
{
	memcpy(to, from, (size_t)count * sizeof(*to));
}

SIM_API(int, cudnnSetTensorNdDescriptor, struct cudnn_desc *desc, int data_type, int dim_count,
	const int *dims, const int *strides)
{
	if (dim_count < 1 || dim_count > CUDNN_MAX_DIMS)
		return CUDNN_NOT_SUPPORTED;
	desc->data_type = data_type;
	desc->dim_count = dim_count;
	copy_dims(desc->dims, dims, dim_count);
	copy_dims(desc->strides, strides, dim_count);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnGetTensorNdDescriptor, const struct cudnn_desc *desc, int wanted, int *data_type,
	int *dim_count, int *dims, int *strides)
{
	int count = wanted < desc->dim_count ? wanted : desc->dim_count;

	*data_type = desc->data_type;
	*dim_count = desc->dim_count;
	copy_dims(dims, desc->dims, count);
	if (strides)
		copy_dims(strides, desc->strides, count);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnSetFilterNdDescriptor, struct cudnn_desc *desc, int data_type, int format,
	int dim_count, const int *dims)
{
	if (dim_count < 1 || dim_count > CUDNN_MAX_DIMS)
		return CUDNN_NOT_SUPPORTED;
	desc->data_type = data_type;
	desc->format = format;
	desc->dim_count = dim_count;
	copy_dims(desc->dims, dims, dim_count);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnGetFilterNdDescriptor, const struct cudnn_desc *desc, int wanted, int *data_type,
	int *format, int *dim_count, int *dims)
{
	*data_type = desc->data_type;
	*format = desc->format;
	*dim_count = desc->dim_count;
	copy_dims(dims, desc->dims, wanted < desc->dim_count ? wanted : desc->dim_count);
	return CUDNN_SUCCESS;
}
