/*
 * The stand-in for cuDNN's older convolution, normalisation and CTC calls, as far as they choose an
 * algorithm or state a size.
 *
 * PyTorch takes this way with TORCH_CUDNN_V8_API_DISABLED=1, and always for batch norm. There is
 * one algorithm for each direction; the sizes come from cudnn_sizes.c. Benchmarking calls (Find…)
 * run nothing and must not touch the tensors they are given.
 */
#include "sim_cudnn.h"

#include <string.h>

/* The algorithm we name, out of each direction's own list. */
enum {
	FORWARD_IMPLICIT_PRECOMP_GEMM = 1,
	BACKWARD_DATA_1 = 1,
	BACKWARD_FILTER_1 = 1,
};

#define DETERMINISTIC                 1
#define BATCH_NORM_SPATIAL_PERSISTENT 2

/* cudnnConvolution{Fwd,BwdData,BwdFilter}AlgoPerf_t: the three have one layout */
struct conv_result {
	int algorithm;
	int status;
	float milliseconds;
	size_t workspace_bytes;
	int determinism;
	int math_type;
	int reserved[3];
};

static size_t workspace_bytes(enum cudnn_conv_direction direction, const struct cudnn_desc *image,
			      const struct cudnn_desc *filter)
{
	return cudnn_conv_workspace_bytes(direction, cudnn_desc_bytes(image),
					  cudnn_desc_bytes(filter), cudnn_desc_window(filter));
}

static int one_result(struct conv_result *results, int *count, int algorithm, size_t bytes)
{
	memset(results, 0, sizeof(*results));
	results->algorithm = algorithm;
	results->milliseconds = 1; /* equal for all: nothing is timed */
	results->workspace_bytes = bytes;
	results->determinism = DETERMINISTIC;
	*count = 1;
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnGetConvolutionForwardAlgorithm_v7, void *handle, const struct cudnn_desc *x,
	const struct cudnn_desc *w, const void *convolution, const struct cudnn_desc *y, int wanted,
	int *count, struct conv_result *results)
{
	return one_result(results, count, FORWARD_IMPLICIT_PRECOMP_GEMM,
			  workspace_bytes(CONV_FORWARD, x, w));
}

SIM_API(int, cudnnFindConvolutionForwardAlgorithmEx, void *handle, const struct cudnn_desc *x,
	const void *x_data, const struct cudnn_desc *w, const void *w_data, const void *convolution,
	const struct cudnn_desc *y, void *y_data, int wanted, int *count,
	struct conv_result *results, void *workspace, size_t bytes)
{
	return one_result(results, count, FORWARD_IMPLICIT_PRECOMP_GEMM,
			  workspace_bytes(CONV_FORWARD, x, w));
}

SIM_API(int, cudnnGetConvolutionForwardWorkspaceSize, void *handle, const struct cudnn_desc *x,
	const struct cudnn_desc *w, const void *convolution, const struct cudnn_desc *y,
	int algorithm, size_t *bytes)
{
	*bytes = workspace_bytes(CONV_FORWARD, x, w);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnGetConvolutionBackwardDataAlgorithm_v7, void *handle, const struct cudnn_desc *w,
	const struct cudnn_desc *dy, const void *convolution, const struct cudnn_desc *dx,
	int wanted, int *count, struct conv_result *results)
{
	return one_result(results, count, BACKWARD_DATA_1,
			  workspace_bytes(CONV_BACKWARD_DATA, dx, w));
}

SIM_API(int, cudnnFindConvolutionBackwardDataAlgorithmEx, void *handle, const struct cudnn_desc *w,
	const void *w_data, const struct cudnn_desc *dy, const void *dy_data,
	const void *convolution, const struct cudnn_desc *dx, void *dx_data, int wanted, int *count,
	struct conv_result *results, void *workspace, size_t bytes)
{
	return one_result(results, count, BACKWARD_DATA_1,
			  workspace_bytes(CONV_BACKWARD_DATA, dx, w));
}

SIM_API(int, cudnnGetConvolutionBackwardDataWorkspaceSize, void *handle, const struct cudnn_desc *w,
	const struct cudnn_desc *dy, const void *convolution, const struct cudnn_desc *dx,
	int algorithm, size_t *bytes)
{
	*bytes = workspace_bytes(CONV_BACKWARD_DATA, dx, w);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnGetConvolutionBackwardFilterAlgorithm_v7, void *handle,
	const struct cudnn_desc *x, const struct cudnn_desc *dy, const void *convolution,
	const struct cudnn_desc *dw, int wanted, int *count, struct conv_result *results)
{
	return one_result(results, count, BACKWARD_FILTER_1,
			  workspace_bytes(CONV_BACKWARD_FILTER, x, dw));
}

SIM_API(int, cudnnFindConvolutionBackwardFilterAlgorithmEx, void *handle,
	const struct cudnn_desc *x, const void *x_data, const struct cudnn_desc *dy,
	const void *dy_data, const void *convolution, const struct cudnn_desc *dw, void *dw_data,
	int wanted, int *count, struct conv_result *results, void *workspace, size_t bytes)
{
	return one_result(results, count, BACKWARD_FILTER_1,
			  workspace_bytes(CONV_BACKWARD_FILTER, x, dw));
}

SIM_API(int, cudnnGetConvolutionBackwardFilterWorkspaceSize, void *handle,
	const struct cudnn_desc *x, const struct cudnn_desc *dy, const void *convolution,
	const struct cudnn_desc *dw, int algorithm, size_t *bytes)
{
	*bytes = workspace_bytes(CONV_BACKWARD_FILTER, x, dw);
	return CUDNN_SUCCESS;
}

/* --- batch norm: the channels are the second dimension --- */

SIM_API(int, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, void *handle, int mode,
	int operations, const struct cudnn_desc *x, const void *z, const void *y,
	const void *scale_bias, const void *activation, size_t *bytes)
{
	*bytes = cudnn_batch_norm_workspace_bytes(x->dims[1]);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnGetBatchNormalizationBackwardExWorkspaceSize, void *handle, int mode,
	int operations, const struct cudnn_desc *x, const void *y, const void *dy, const void *dz,
	const void *dx, const void *scale_bias, const void *activation, size_t *bytes)
{
	*bytes = cudnn_batch_norm_workspace_bytes(x->dims[1]);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnGetBatchNormalizationTrainingExReserveSpaceSize, void *handle, int mode,
	int operations, const void *activation, const struct cudnn_desc *x, size_t *bytes)
{
	size_t elements = cudnn_desc_bytes(x) / cudnn_type_bytes(x->data_type);

	*bytes = mode == BATCH_NORM_SPATIAL_PERSISTENT ? cudnn_batch_norm_reserve_bytes(elements)
						       : 0;
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnGetCTCLossWorkspaceSize, void *handle, const struct cudnn_desc *probabilities,
	const struct cudnn_desc *gradients, const int *labels, const int *label_lengths,
	const int *input_lengths, int algorithm, const void *loss, size_t *bytes)
{
	*bytes = cudnn_ctc_workspace_bytes(cudnn_desc_bytes(probabilities));
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnGetCTCLossWorkspaceSize_v8, void *handle, int algorithm, const void *loss,
	const struct cudnn_desc *probabilities, const struct cudnn_desc *gradients, size_t *bytes)
{
	*bytes = cudnn_ctc_workspace_bytes(cudnn_desc_bytes(probabilities));
	return CUDNN_SUCCESS;
}
