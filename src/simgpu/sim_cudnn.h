/*
 * What the stand-in for cuDNN 9 shares between its files: names of the public constants it acts on,
 * the descriptors it hands out, and the sizes it answers.
 *
 * Values are those of NVIDIA's public API reference for cuDNN 9. Only what is acted on has a name
 * here: attributes and descriptor types that we do not know are kept like the others, because a
 * newer front end uses numbers that an older reference does not list.
 */
#ifndef SIM_CUDNN_H
#define SIM_CUDNN_H

#include "sim_api.h"

#pragma GCC visibility push(hidden)

enum cudnn_status {
	CUDNN_SUCCESS = 0,
	CUDNN_BAD_PARAM = 2000,
	CUDNN_NOT_SUPPORTED = 3000,
	CUDNN_ALLOC_FAILED = 4003,
};

enum cudnn_data_type {
	CUDNN_FLOAT = 0,
	CUDNN_DOUBLE = 1,
	CUDNN_HALF = 2,
	CUDNN_INT8 = 3,
	CUDNN_UINT8 = 6,
	CUDNN_BFLOAT16 = 9,
	CUDNN_INT64 = 10,
	CUDNN_BOOLEAN = 11,
	CUDNN_FP8_E4M3 = 12,
	CUDNN_FP8_E5M2 = 13,
	CUDNN_FP8_E8M0 = 15,
	CUDNN_FP4_E2M1 = 16,
	CUDNN_INT4 = 17,
	CUDNN_UINT4 = 18,
	CUDNN_COMPLEX_FP32 = 20,
	CUDNN_COMPLEX_FP64 = 21,
};

/* cudnnDataType_t → bytes an element takes; types below a byte count as one, unknown ones as 4. */
size_t cudnn_type_bytes(int data_type);

#define CUDNN_MAX_DIMS 8

/*
 * A descriptor of the older API. One structure serves tensors and filters; dims and strides are in
 * elements. Descriptors of which nothing is asked back (pooling, activation, CTC loss, …) use it
 * too and leave it empty.
 */
struct cudnn_desc {
	int data_type;
	int format; /* of a filter: cudnnTensorFormat_t */
	int dim_count;
	int dims[CUDNN_MAX_DIMS];
	int strides[CUDNN_MAX_DIMS];
};

/* Bytes of the described tensor, its dimensions taken as dense. */
size_t cudnn_desc_bytes(const struct cudnn_desc *desc);

/* Elements of a filter's window: 1 for a 1×1 convolution. */
size_t cudnn_desc_window(const struct cudnn_desc *filter);

/* Three dense dimensions, as cudnnGetRNNWeightParams reports them. */
void cudnn_desc_set_matrix(struct cudnn_desc *desc, int data_type, int rows, int columns);

/* --- sizes: cudnn_sizes.c --- */

enum cudnn_conv_direction { CONV_FORWARD, CONV_BACKWARD_DATA, CONV_BACKWARD_FILTER };

/* Workspace of one convolution. window: elements of the filter's window. */
size_t cudnn_conv_workspace_bytes(enum cudnn_conv_direction direction, size_t image_bytes,
				  size_t filter_bytes, size_t window);

size_t cudnn_batch_norm_workspace_bytes(int channel_count);

/* Reserve of the persistent batch norm mode: one bit an element. */
size_t cudnn_batch_norm_reserve_bytes(size_t element_count);

/* cells: sequence × batch × hidden × directions elements, in bytes; gate_count: 1, 3 or 4. */
size_t cudnn_rnn_workspace_bytes(size_t cell_bytes, int gate_count);
size_t cudnn_rnn_reserve_bytes(size_t cell_bytes, int gate_count, int layer_count);

size_t cudnn_ctc_workspace_bytes(size_t probability_bytes);

size_t cudnn_dropout_state_bytes(void);

/* --- the backend API: cudnn_backend.c keeps descriptors, cudnn_plan.c answers about them --- */

enum backend_value_type {
	VALUE_HANDLE = 0,
	VALUE_BOOLEAN = 2,
	VALUE_INT64 = 3,
	VALUE_DOUBLE = 5,
	VALUE_VOID_PTR = 6,
	VALUE_DESCRIPTOR = 15,
	VALUE_INT32 = 23,
	VALUE_CHAR = 24,
	VALUE_FRACTION = 26, /* two int64 */
};

enum backend_kind {
	KIND_ENGINE = 2,
	KIND_ENGINE_CONFIG = 3,
	KIND_EXECUTION_PLAN = 5,
	KIND_CONV_FORWARD = 10,
	KIND_CONV_BACKWARD_FILTER = 11,
	KIND_CONV_BACKWARD_DATA = 12,
};

enum backend_name {
	HEURISTIC_GRAPH = 201,
	HEURISTIC_RESULTS = 202,
	CONFIG_ENGINE = 300,
	CONFIG_WORKSPACE_BYTES = 303,
	CONFIG_SHARED_MEMORY_BYTES = 304,
	PLAN_CONFIG = 401,
	PLAN_WORKSPACE_BYTES = 402,
	PLAN_JSON = 405,
	CONV_FORWARD_W = 703,
	CONV_FORWARD_X = 704,
	CONV_BACKWARD_DATA_W = 709,
	CONV_BACKWARD_DATA_DX = 710,
	CONV_BACKWARD_FILTER_DW = 715,
	CONV_BACKWARD_FILTER_X = 716,
	GRAPH_OPERATIONS = 801,
	GRAPH_ENGINE_COUNT = 802,
	TENSOR_DATA_TYPE = 901,
	TENSOR_DIMS = 902,
	ENGINE_GRAPH = 1300,
	ENGINE_INDEX = 1301,
};

/* One attribute: `count` values of `type`, owned. Values of VALUE_DESCRIPTOR are references. */
struct backend_attribute {
	struct backend_attribute *next;
	int name;
	int type;
	int64_t count;
	void *values;
};

/* A descriptor is a bag of attributes. It lives as long as its owner or any parent refers to it. */
struct backend_desc {
	int kind;
	int references;
	struct backend_attribute *attributes;
};

struct backend_desc *backend_desc_new(int kind);
void backend_desc_release(struct backend_desc *desc);

/* Replaces the attribute. Takes references of its own on descriptors. 0 or CUDNN_ALLOC_FAILED. */
int backend_desc_set(struct backend_desc *desc, int name, int type, int64_t count,
		     const void *values);

/* Makes `to` a second descriptor with the kind and attributes of `from`. */
int backend_desc_copy(struct backend_desc *to, const struct backend_desc *from);

/* NULL when desc is NULL or lacks the attribute. */
const struct backend_attribute *backend_desc_find(const struct backend_desc *desc, int name);

/* The first descriptor under that name, borrowed; NULL when there is none. */
struct backend_desc *backend_desc_child(const struct backend_desc *desc, int name);

/*
 * Answers the questions whose answer the library computes and nobody has set: heuristics, workspace
 * and shared-memory sizes. Returns 1 when it answered, with the status in *status; 0 when the
 * question is about a stored attribute.
 */
int backend_answer(struct backend_desc *desc, int name, int64_t wanted, int64_t *count, void *out,
		   int *status);

#pragma GCC visibility pop

#endif
