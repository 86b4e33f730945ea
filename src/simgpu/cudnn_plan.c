/*
 * What the stand-in for cuDNN's backend API computes instead of storing: for every operation graph
 * the heuristics find exactly one engine, and the plan made from it states a workspace.
 *
 * Must never refuse a graph for what is in it, and must never leave a size unanswered: the front
 * end reads CONFIG_SHARED_MEMORY_BYTES into a variable that it did not initialise, and drops the
 * engine ("No execution plans support the graph") when the garbage it finds there is too large.
 */
#include "sim_cudnn.h"

#include <string.h>

/* Less than any card's shared memory for a block (48 KiB), so that no engine is dropped for it. */
#define ENGINE_SHARED_MEMORY_BYTES 1024

static size_t element_count(const struct backend_attribute *dims, int64_t first)
{
	const int64_t *sizes = dims->values;
	size_t count = 1;

	for (int64_t i = first; i < dims->count; i++)
		count *= (size_t)sizes[i];
	return count;
}

static size_t tensor_bytes(const struct backend_desc *tensor)
{
	const struct backend_attribute *dims = backend_desc_find(tensor, TENSOR_DIMS);
	const struct backend_attribute *type = backend_desc_find(tensor, TENSOR_DATA_TYPE);

	if (!dims || !type)
		return 0;
	return element_count(dims, 0) * cudnn_type_bytes(*(const int *)type->values);
}

/* Dimensions of a filter are output channels, input channels, then the window. */
static size_t filter_window(const struct backend_desc *filter)
{
	const struct backend_attribute *dims = backend_desc_find(filter, TENSOR_DIMS);

	return dims ? element_count(dims, 2) : 1;
}

/* Which attributes of a convolution name its image and its filter. */
static const struct conv_row {
	int kind;
	enum cudnn_conv_direction direction;
	int image_name;
	int filter_name;
} conv_rows[] = {
	{KIND_CONV_FORWARD, CONV_FORWARD, CONV_FORWARD_X, CONV_FORWARD_W},
	{KIND_CONV_BACKWARD_DATA, CONV_BACKWARD_DATA, CONV_BACKWARD_DATA_DX, CONV_BACKWARD_DATA_W},
	{KIND_CONV_BACKWARD_FILTER, CONV_BACKWARD_FILTER, CONV_BACKWARD_FILTER_X,
	 CONV_BACKWARD_FILTER_DW},
};

static size_t operation_workspace_bytes(const struct backend_desc *operation)
{
	for (size_t i = 0; i < sizeof(conv_rows) / sizeof(conv_rows[0]); i++) {
		const struct conv_row *row = &conv_rows[i];
		const struct backend_desc *filter;

		if (row->kind != operation->kind)
			continue;
		filter = backend_desc_child(operation, row->filter_name);
		return cudnn_conv_workspace_bytes(
			row->direction,
			tensor_bytes(backend_desc_child(operation, row->image_name)),
			tensor_bytes(filter), filter_window(filter));
	}
	return 0; /* attention: the front end adds the scratch tensors of the backward pass itself
		   */
}

/* config → engine → graph → its operations */
static int64_t config_workspace_bytes(const struct backend_desc *config)
{
	const struct backend_desc *engine = backend_desc_child(config, CONFIG_ENGINE);
	const struct backend_desc *graph = backend_desc_child(engine, ENGINE_GRAPH);
	const struct backend_attribute *operations = backend_desc_find(graph, GRAPH_OPERATIONS);
	size_t bytes = 0;

	for (int64_t i = 0; operations && i < operations->count; i++)
		bytes += operation_workspace_bytes(((struct backend_desc **)operations->values)[i]);
	return (int64_t)bytes;
}

static int answer_int64(int64_t value, int64_t wanted, int64_t *count, void *out)
{
	*count = 1;
	if (out && wanted > 0)
		memcpy(out, &value, sizeof(value));
	return CUDNN_SUCCESS;
}

static int answer_int32(int32_t value, int64_t wanted, int64_t *count, void *out)
{
	*count = 1;
	if (out && wanted > 0)
		memcpy(out, &value, sizeof(value));
	return CUDNN_SUCCESS;
}

static int answer_text(const char *text, int64_t wanted, int64_t *count, void *out)
{
	*count = (int64_t)strlen(text) + 1;
	if (out && wanted >= *count)
		memcpy(out, text, (size_t)*count);
	return CUDNN_SUCCESS;
}

static int fill_engine(struct backend_desc *engine, struct backend_desc *graph)
{
	int64_t index = 0;
	int status = backend_desc_set(engine, ENGINE_INDEX, VALUE_INT64, 1, &index);

	if (!status && graph)
		status = backend_desc_set(engine, ENGINE_GRAPH, VALUE_DESCRIPTOR, 1, &graph);
	return status;
}

/* Fills the caller's engine configuration with the one engine that every graph has. */
static int answer_heuristics(struct backend_desc *heuristics, int64_t wanted, int64_t *count,
			     void *out)
{
	struct backend_desc *graph = backend_desc_child(heuristics, HEURISTIC_GRAPH);
	struct backend_desc **configs = out;
	struct backend_desc *engine;
	int status;

	*count = 1;
	if (!configs || wanted < 1)
		return CUDNN_SUCCESS;
	if (!configs[0])
		configs[0] = backend_desc_new(KIND_ENGINE_CONFIG);
	engine = backend_desc_new(KIND_ENGINE);
	if (!configs[0] || !engine) {
		backend_desc_release(engine);
		return CUDNN_ALLOC_FAILED;
	}
	status = fill_engine(engine, graph);
	if (!status)
		status = backend_desc_set(configs[0], CONFIG_ENGINE, VALUE_DESCRIPTOR, 1, &engine);
	backend_desc_release(engine); /* the configuration holds it now */
	return status;
}

static int64_t plan_workspace_bytes(const struct backend_desc *plan)
{
	return config_workspace_bytes(backend_desc_child(plan, PLAN_CONFIG));
}

int backend_answer(struct backend_desc *desc, int name, int64_t wanted, int64_t *count, void *out,
		   int *status)
{
	switch (name) {
	case HEURISTIC_RESULTS:
		*status = answer_heuristics(desc, wanted, count, out);
		return 1;
	case GRAPH_ENGINE_COUNT:
		*status = answer_int64(1, wanted, count, out);
		return 1;
	case CONFIG_WORKSPACE_BYTES:
		*status = answer_int64(config_workspace_bytes(desc), wanted, count, out);
		return 1;
	case CONFIG_SHARED_MEMORY_BYTES:
		*status = answer_int32(ENGINE_SHARED_MEMORY_BYTES, wanted, count, out);
		return 1;
	case PLAN_WORKSPACE_BYTES:
		*status = answer_int64(plan_workspace_bytes(desc), wanted, count, out);
		return 1;
	case PLAN_JSON:
		*status = answer_text("{}", wanted, count, out);
		return 1;
	default:
		return 0;
	}
}
