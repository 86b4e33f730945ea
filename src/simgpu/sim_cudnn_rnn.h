/*
 * What the stand-in for cuDNN knows of a recurrent network, for cudnn_rnn.c, and for cudnn_rnn_v6.c,
 * which answers the calls of before cuDNN 8 with it.
 */
#ifndef SIM_CUDNN_RNN_H
#define SIM_CUDNN_RNN_H

#include "sim_cudnn.h"

enum { BIAS_NONE = 0, BIAS_DOUBLE = 2 };
enum { FORWARD_TRAINING = 1 };

struct rnn_desc {
	int mode;
	int bias_mode;
	int direction;
	int data_type;
	int input_size;
	int hidden_size;
	int output_size; /* of a projection; otherwise the hidden size */
	int layer_count;
};

struct rnn_data_desc {
	int data_type;
	int sequence_length;
	int batch_size;
	int vector_size;
};

int cudnnGetRNNWeightSpaceSize(void *handle, const struct rnn_desc *rnn, size_t *bytes);
int cudnnGetRNNWeightParams(void *handle, const struct rnn_desc *rnn, int32_t pseudo_layer,
			    size_t space_bytes, const char *space, int32_t matrix,
			    struct cudnn_desc *matrix_desc, void **matrix_address,
			    struct cudnn_desc *bias_desc, void **bias_address);
int cudnnGetRNNTempSpaceSizes(void *handle, const struct rnn_desc *rnn, int forward_mode,
			      const struct rnn_data_desc *x, size_t *workspace_bytes,
			      size_t *reserve_bytes);

#endif
