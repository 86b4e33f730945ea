/* A program on ggml, what llama.cpp computes with: weights, room for what is between them, and products, on the
 * CUDA backend whose path it is given. It tells the sizes of the buffers that it knows of and what is in use. */
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>
#include <stdio.h>
#include <stdlib.h>

#define WIDTH  4096
#define TOKENS 512
#define LAYERS 4

static void *need(void *made, const char *what)
{
	if (!made) {
		fprintf(stderr, "no %s\n", what);
		exit(1);
	}
	return made;
}

static struct ggml_context *context(void)
{
	struct ggml_init_params room = {.mem_size = 1 << 20, .no_alloc = true};
	return need(ggml_init(room), "context");
}

/* What goes through all layers; the weights are new tensors of `model`. */
static struct ggml_tensor *layers(struct ggml_context *model, struct ggml_context *work)
{
	struct ggml_tensor *value = ggml_new_tensor_2d(work, GGML_TYPE_F32, WIDTH, TOKENS);
	ggml_set_input(value);
	for (int i = 0; i < LAYERS; i++)
		value = ggml_mul_mat(work, ggml_new_tensor_2d(model, GGML_TYPE_F16, WIDTH, WIDTH), value);
	return value;
}

int main(int count, char **arguments)
{
	ggml_backend_reg_t cuda = need(count > 1 ? ggml_backend_load(arguments[1]) : NULL, "backend");
	ggml_backend_dev_t device = need(ggml_backend_reg_dev_get(cuda, 0), "device");
	ggml_backend_t backend = need(ggml_backend_dev_init(device, NULL), "stream");
	struct ggml_context *model = context(), *work = context();
	struct ggml_cgraph *graph = ggml_new_graph(work);
	ggml_build_forward_expand(graph, layers(model, work));
	ggml_backend_buffer_t weights = need(ggml_backend_alloc_ctx_tensors(model, backend), "weights");
	ggml_gallocr_t room = need(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend)), "allocator");
	size_t unused_bytes, total_bytes;
	if (!ggml_gallocr_alloc_graph(room, graph) || ggml_backend_graph_compute(backend, graph) != GGML_STATUS_SUCCESS)
		return 1;
	ggml_backend_synchronize(backend);
	ggml_backend_dev_memory(device, &unused_bytes, &total_bytes);
	printf("{\"weights_bytes\": %zu, \"work_bytes\": %zu, \"used_bytes\": %zu}\n",
	       ggml_backend_buffer_get_size(weights), ggml_gallocr_get_buffer_size(room, 0), total_bytes - unused_bytes);
	return 0;
}
