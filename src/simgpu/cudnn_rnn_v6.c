/*
 * The recurrent networks of cuDNN 6 and 7, which cuDNN 8 still has and PyTorch up to 2.2 calls: the
 * size of the input comes with each call, and a sequence as a tensor for each step.
 *
 * Owns nothing: places and sizes are those of cudnn_rnn.c.
 */
#include "sim_cudnn_rnn.h"

SIM_API(int, cudnnSetRNNDescriptor_v6, void *handle, struct rnn_desc *desc, int hidden_size,
	int layer_count, void *dropout, int input_mode, int direction, int mode, int algorithm,
	int data_type)
{
	*desc = (struct rnn_desc){
		.mode = mode,
		.bias_mode = BIAS_DOUBLE,
		.direction = direction,
		.data_type = data_type,
		.hidden_size = hidden_size,
		.output_size = hidden_size,
		.layer_count = layer_count,
	};
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnSetRNNProjectionLayers, void *handle, struct rnn_desc *desc, int projection_size,
	int output_size)
{
	desc->output_size = projection_size;
	return CUDNN_SUCCESS;
}

SIM_ACCEPT(cudnnSetRNNMatrixMathType)
SIM_ACCEPT(cudnnRNNBackwardData)
SIM_ACCEPT(cudnnRNNBackwardWeights)
SIM_ACCEPT(cudnnRNNForwardInference)
SIM_ACCEPT(cudnnRNNForwardTraining)

/* x: a step, (batch, input, 1). */
static const struct rnn_desc *with_input(struct rnn_desc *rnn, const struct cudnn_desc *x)
{
	rnn->input_size = x->dims[1];
	return rnn;
}

SIM_API(int, cudnnGetRNNParamsSize, void *handle, struct rnn_desc *rnn, const struct cudnn_desc *x,
	size_t *bytes, int data_type)
{
	return cudnnGetRNNWeightSpaceSize(handle, with_input(rnn, x), bytes);
}

SIM_API(int, cudnnGetRNNLinLayerMatrixParams, void *handle, struct rnn_desc *rnn, int pseudo_layer,
	const struct cudnn_desc *x, const struct cudnn_desc *space_desc, const char *space,
	int matrix, struct cudnn_desc *desc, void **address)
{
	return cudnnGetRNNWeightParams(handle, with_input(rnn, x), pseudo_layer, 0, space, matrix,
				       desc, address, NULL, NULL);
}

SIM_API(int, cudnnGetRNNLinLayerBiasParams, void *handle, struct rnn_desc *rnn, int pseudo_layer,
	const struct cudnn_desc *x, const struct cudnn_desc *space_desc, const char *space,
	int matrix, struct cudnn_desc *desc, void **address)
{
	return cudnnGetRNNWeightParams(handle, with_input(rnn, x), pseudo_layer, 0, space, matrix,
				       NULL, NULL, desc, address);
}

/* steps: the input of each; their batches may shrink. */
static struct rnn_data_desc whole_input(int step_count, const struct cudnn_desc *const *steps)
{
	struct rnn_data_desc whole = {.sequence_length = 1};

	for (int i = 0; i < step_count; i++)
		whole.batch_size += steps[i]->dims[0];
	return whole;
}

SIM_API(int, cudnnGetRNNWorkspaceSize, void *handle, const struct rnn_desc *rnn, int step_count,
	const struct cudnn_desc *const *steps, size_t *bytes)
{
	struct rnn_data_desc x = whole_input(step_count, steps);

	return cudnnGetRNNTempSpaceSizes(handle, rnn, FORWARD_TRAINING, &x, bytes, NULL);
}

SIM_API(int, cudnnGetRNNTrainingReserveSize, void *handle, const struct rnn_desc *rnn,
	int step_count, const struct cudnn_desc *const *steps, size_t *bytes)
{
	struct rnn_data_desc x = whole_input(step_count, steps);

	return cudnnGetRNNTempSpaceSizes(handle, rnn, FORWARD_TRAINING, &x, NULL, bytes);
}
