/*
 * The stand-in for cuDNN's recurrent networks: where each weight matrix and bias lies in the packed
 * weight space, and how much space a network takes.
 *
 * Owns the RNN and RNN data descriptors. PyTorch slices its parameters out of the weight space at
 * the addresses answered here, so matrices and biases must lie inside the stated size, must not
 * overlap, and must have the shape PyTorch expects: (1, outputs, inputs).
 *
 * Layout, our own: the matrices of all pseudo layers, then the biases of all. A pseudo layer is a
 * layer in one direction; it has `gates` input matrices, `gates` recurrent ones, and with a
 * projection one more that turns hidden units into outputs; in that order.
 */
#include "sim_cudnn_rnn.h"

#include <stdlib.h>

enum { MODE_LSTM = 2, MODE_GRU = 3 };
enum { DIRECTION_BOTH = 1 };

SIM_API(int, cudnnCreateRNNDescriptor, struct rnn_desc **desc)
{
	*desc = calloc(1, sizeof(**desc));
	return *desc ? CUDNN_SUCCESS : CUDNN_ALLOC_FAILED;
}

SIM_API(int, cudnnDestroyRNNDescriptor, struct rnn_desc *desc)
{
	free(desc);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnCreateRNNDataDescriptor, struct rnn_data_desc **desc)
{
	*desc = calloc(1, sizeof(**desc));
	return *desc ? CUDNN_SUCCESS : CUDNN_ALLOC_FAILED;
}

SIM_API(int, cudnnDestroyRNNDataDescriptor, struct rnn_data_desc *desc)
{
	free(desc);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnSetRNNDescriptor_v8, struct rnn_desc *desc, int algorithm, int mode,
	int bias_mode, int direction, int input_mode, int data_type, int math_precision,
	int math_type, int32_t input_size, int32_t hidden_size, int32_t projection_size,
	int32_t layer_count, void *dropout, uint32_t flags)
{
	desc->mode = mode;
	desc->bias_mode = bias_mode;
	desc->direction = direction;
	desc->data_type = data_type;
	desc->input_size = input_size;
	desc->hidden_size = hidden_size;
	desc->output_size = projection_size ? projection_size : hidden_size;
	desc->layer_count = layer_count;
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnSetRNNDataDescriptor, struct rnn_data_desc *desc, int data_type, int layout,
	int sequence_length, int batch_size, int vector_size, const int *lengths, void *padding)
{
	desc->data_type = data_type;
	desc->sequence_length = sequence_length;
	desc->batch_size = batch_size;
	desc->vector_size = vector_size;
	return CUDNN_SUCCESS;
}

static int gate_count(const struct rnn_desc *rnn)
{
	switch (rnn->mode) {
	case MODE_LSTM:
		return 4;
	case MODE_GRU:
		return 3;
	default:
		return 1;
	}
}

static int direction_count(const struct rnn_desc *rnn)
{
	return rnn->direction == DIRECTION_BOTH ? 2 : 1;
}

static int pseudo_layer_count(const struct rnn_desc *rnn)
{
	return rnn->layer_count * direction_count(rnn);
}

/* cuDNN takes a projection of the hidden size for none. */
static int has_projection(const struct rnn_desc *rnn)
{
	return rnn->output_size != rnn->hidden_size;
}

static int matrix_count(const struct rnn_desc *rnn)
{
	return 2 * gate_count(rnn) + has_projection(rnn);
}

static int is_projection(const struct rnn_desc *rnn, int matrix)
{
	return matrix == 2 * gate_count(rnn);
}

static int matrix_rows(const struct rnn_desc *rnn, int matrix)
{
	return is_projection(rnn, matrix) ? rnn->output_size : rnn->hidden_size;
}

static int matrix_columns(const struct rnn_desc *rnn, int pseudo_layer, int matrix)
{
	if (is_projection(rnn, matrix))
		return rnn->hidden_size;
	if (matrix >= gate_count(rnn))
		return rnn->output_size;
	if (pseudo_layer / direction_count(rnn) == 0)
		return rnn->input_size;
	return rnn->output_size * direction_count(rnn);
}

static size_t matrix_elements(const struct rnn_desc *rnn, int pseudo_layer, int matrix)
{
	return (size_t)matrix_rows(rnn, matrix) * (size_t)matrix_columns(rnn, pseudo_layer, matrix);
}

/* Elements before a matrix; before (pseudo_layer_count, 0): of all matrices. */
static size_t matrix_offset(const struct rnn_desc *rnn, int pseudo_layer, int matrix)
{
	size_t elements = 0;

	for (int layer = 0; layer < pseudo_layer; layer++) {
		for (int i = 0; i < matrix_count(rnn); i++)
			elements += matrix_elements(rnn, layer, i);
	}
	for (int i = 0; i < matrix; i++)
		elements += matrix_elements(rnn, pseudo_layer, i);
	return elements;
}

static size_t bias_offset(const struct rnn_desc *rnn, int pseudo_layer, int matrix)
{
	size_t before = (size_t)pseudo_layer * 2 * (size_t)gate_count(rnn) + (size_t)matrix;

	return matrix_offset(rnn, pseudo_layer_count(rnn), 0) + before * (size_t)rnn->hidden_size;
}

static int has_bias(const struct rnn_desc *rnn, int matrix)
{
	return rnn->bias_mode != BIAS_NONE && !is_projection(rnn, matrix);
}

SIM_API(int, cudnnGetRNNWeightSpaceSize, void *handle, const struct rnn_desc *rnn, size_t *bytes)
{
	int layers = pseudo_layer_count(rnn);
	size_t elements = matrix_offset(rnn, layers, 0);

	if (rnn->bias_mode != BIAS_NONE)
		elements = bias_offset(rnn, layers, 0);
	*bytes = elements * cudnn_type_bytes(rnn->data_type);
	return CUDNN_SUCCESS;
}

/* Either output may be left out. An absent part (rows 0) has no address and no dimension. */
static void report_part(const struct rnn_desc *rnn, struct cudnn_desc *desc, void **address,
			const char *place, int rows, int columns)
{
	if (desc)
		desc->dim_count = 0;
	if (desc && rows)
		cudnn_desc_set_matrix(desc, rnn->data_type, rows, columns);
	if (address)
		*address = rows ? (void *)(uintptr_t)place : NULL;
}

/* PyTorch asks with either descriptor missing: mDesc for the biases, bDesc for the matrices. */
SIM_API(int, cudnnGetRNNWeightParams, void *handle, const struct rnn_desc *rnn,
	int32_t pseudo_layer, size_t space_bytes, const char *space, int32_t matrix,
	struct cudnn_desc *matrix_desc, void **matrix_address, struct cudnn_desc *bias_desc,
	void **bias_address)
{
	size_t element_bytes = cudnn_type_bytes(rnn->data_type);
	int exists = matrix >= 0 && matrix < matrix_count(rnn);
	const char *matrix_at = space, *bias_at = space;
	int rows = 0, columns = 0, bias_rows = 0;

	if (exists) {
		rows = matrix_rows(rnn, matrix);
		columns = matrix_columns(rnn, pseudo_layer, matrix);
		matrix_at += matrix_offset(rnn, pseudo_layer, matrix) * element_bytes;
	}
	if (exists && has_bias(rnn, matrix)) {
		bias_rows = rnn->hidden_size;
		bias_at += bias_offset(rnn, pseudo_layer, matrix) * element_bytes;
	}
	report_part(rnn, matrix_desc, matrix_address, matrix_at, rows, columns);
	report_part(rnn, bias_desc, bias_address, bias_at, bias_rows, 1);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnGetRNNTempSpaceSizes, void *handle, const struct rnn_desc *rnn, int forward_mode,
	const struct rnn_data_desc *x, size_t *workspace_bytes, size_t *reserve_bytes)
{
	size_t cells = (size_t)x->sequence_length * (size_t)x->batch_size *
		       (size_t)rnn->hidden_size * (size_t)direction_count(rnn);
	size_t bytes = cells * cudnn_type_bytes(rnn->data_type);
	int gates = gate_count(rnn);

	if (workspace_bytes)
		*workspace_bytes = cudnn_rnn_workspace_bytes(bytes, gates);
	if (!reserve_bytes)
		return CUDNN_SUCCESS;
	*reserve_bytes = 0;
	if (forward_mode == FORWARD_TRAINING)
		*reserve_bytes = cudnn_rnn_reserve_bytes(bytes, gates, rnn->layer_count);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnDropoutGetStatesSize, void *handle, size_t *bytes)
{
	*bytes = cudnn_dropout_state_bytes();
	return CUDNN_SUCCESS;
}
