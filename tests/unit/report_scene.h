/* One invented training run that the tests of the printers share: definitions by hand, and a model
 * to go with it. */
#ifndef TEST_REPORT_SCENE_H
#define TEST_REPORT_SCENE_H

#include "build_defs.h"
#include "fake_model.h"
#include "report/facts.h"

#define MIB ((uint64_t)1 << 20)

enum scene_stack { /* ids */
		   STACK_NONE,
		   STACK_HEAD,       /* train.py:38 forward, inside functional.py linear */
		   STACK_GELU,       /* gpt.py:24, itself innermost */
		   STACK_STATE,      /* torch/optim only */
		   STACK_AUTOGRAD,   /* no Python */
		   STACK_HOSTILE,    /* a file name with control bytes */
		   STACK_HEAD_OTHER, /* train.py:38 again, inside another library frame */
		   STACK_NCCL,
};

struct scene {
	struct records records;
	struct defs *defs;
	uint32_t strings;
	struct model model;
	struct summary_facts facts;
};

static uint32_t scene_string(struct scene *scene, const char *text)
{
	put_string(&scene->records, ++scene->strings, text);
	return scene->strings;
}

static void scene_info(struct scene *scene, enum memtrace_info key, const char *text)
{
	put_info(&scene->records, key, scene_string(scene, text));
}

static void scene_frame(struct scene *scene, uint32_t id, const char *file, int line,
			const char *function)
{
	uint32_t file_id = scene_string(scene, file), function_id = scene_string(scene, function);
	put_python_frame(&scene->records, id, file_id, function_id, line);
}

/* A native frame with the symbol of its function, 0x10 bytes into it. */
static inline void scene_native(struct scene *scene, uint32_t id, uint32_t module,
				const char *symbol)
{
	put_native_frame(&scene->records, id, module, 0x1000 * id);
	put_symbol(&scene->records, id, scene_string(scene, symbol), 0x10);
}

#define PACKAGES "/opt/venv/lib/python3.11/site-packages/"
#define STACK(id, owner, python, native, ...) \
	put_stack(&scene->records, id, owner, python, native, (const uint32_t[]){__VA_ARGS__})

static void scene_frames(struct scene *scene)
{
	scene_frame(scene, 1, PACKAGES "torch/nn/functional.py", 2300, "linear");
	scene_frame(scene, 2, "/home/me/gpt/train.py", 38, "step");
	scene_frame(scene, 3, "/home/me/gpt/model/gpt.py", 24, "forward");
	scene_frame(scene, 4, PACKAGES "torch/optim/adamw.py", 96, "_init_group");
	scene_frame(scene, 5, "/opt/venv/lib/python3.11/contextlib.py", 81, "inner");
	scene_frame(scene, 6, "/home/me/gpt/\x1b[31mevil\n.py", 1, "f\xff\"x");
	scene_frame(scene, 7, PACKAGES "torch/nn/functional.py", 2900, "layer_norm");
	scene_frame(scene, 8, "/home/me/gpt/train.py", 99, "<module>");
}

static void scene_stacks(struct scene *scene)
{
	put_module(&scene->records, 1, scene_string(scene, PACKAGES "torch/lib/libc10_cuda.so"));
	put_module(&scene->records, 2, scene_string(scene, "/usr/lib/libnccl.so.2"));
	put_native_frame(&scene->records, 1, 1, 0x1a2b);
	put_native_frame(&scene->records, 2, 2, 0x33);
	STACK(STACK_HEAD, 1, 3, 1, 1, 2, 8, 1);
	STACK(STACK_GELU, 1, 2, 0, 3, 8);
	STACK(STACK_STATE, 1, 2, 1, 4, 5, 1);
	STACK(STACK_AUTOGRAD, 1, 0, 1, 1);
	STACK(STACK_HOSTILE, 1, 1, 1, 6, 1);
	STACK(STACK_HEAD_OTHER, 1, 3, 0, 7, 2, 8);
	STACK(STACK_NCCL, 2, 0, 1, 2);
}

static void scene_facts(struct scene *scene)
{
	scene->facts = (struct summary_facts){
		.trace_path = "memtrace.4242.mtrace",
		.pid = 4242,
		.ended = SUMMARY_EXIT,
		.status = 0,
		.duration_ns = 192000000000,
		.file_bytes = 1887437,
		.events = 970000,
	};
}

static void scene_model(struct scene *scene)
{
	struct model *model = &scene->model;
	model->totals = (struct model_totals){.events = 970000, .block_events = 969600};
	model->device_count = 1;
	model->devices[0] = (struct model_device){
		.has_blocks = true,
		.allocated = {1885 * MIB, 6574 * MIB, 90000 * MIB, 484900, 484700, 12},
		.reserved = {7180 * MIB, 7180 * MIB, 7180 * MIB, 400, 0, 3},
		.pytorch_allocated = {1677 * MIB, 6366 * MIB, 89000 * MIB, 484800, 484600, 12},
		.pytorch_reserved = {6972 * MIB, 6972 * MIB, 6972 * MIB, 390, 0, 3},
		.pytorch_reserved_known = true,
		.pytorch_segments = 390,
		.total_bytes = 81158 * MIB,
		.free_bytes_last = 73560 * MIB,
		.free_known = true,
		.untracked_known = true,
		.untracked_is_own = true,
		.untracked_bytes = 418 * MIB,
		.untracked_at_peak_bytes = 418 * MIB,
		.in_use_known = true,
		.in_use_bytes = 7598 * MIB,
		.others_known = true,
		.peak = {12300000000, 54321, 6574 * MIB, 6972 * MIB, 6764 * MIB, STACK_GELU, 1,
			 .pytorch_allocated_bytes = 6366 * MIB},
	};
	model->owners[0] = (struct model_owner){"pytorch", 6972 * MIB, 6972 * MIB, 6764 * MIB};
	model->owners[1] = (struct model_owner){"nccl", 176 * MIB, 176 * MIB, 176 * MIB};
	model->owners[2] = (struct model_owner){"cublas", 32 * MIB, 32 * MIB, 32 * MIB};
	model->owner_count = 3;
	fake_share(&model->at_peak, 2000 * MIB, 1, STACK_HEAD);
	fake_share(&model->at_peak, 1152 * MIB, 24, STACK_GELU);
	fake_share(&model->at_peak, 1100 * MIB, 298, STACK_STATE);
	fake_share(&model->at_peak, 900 * MIB, 40, STACK_AUTOGRAD);
	fake_share(&model->at_peak, 800 * MIB, 8, STACK_HEAD_OTHER);
	fake_share(&model->at_peak, 446 * MIB, 3, STACK_HOSTILE);
	fake_share(&model->at_peak, 176 * MIB, 4, STACK_NCCL);
}

static void scene_start(struct scene *scene)
{
	memset(scene, 0, sizeof *scene);
	scene_frames(scene);
	scene_stacks(scene);
	scene_info(scene, MEMTRACE_INFO_ARGUMENT, "/opt/venv/bin/python");
	scene_info(scene, MEMTRACE_INFO_ARGUMENT, "train.py");
	scene_info(scene, MEMTRACE_INFO_CWD, "/home/me/gpt");
	scene_info(scene, MEMTRACE_INFO_FRAMEWORK, "torch 2.15.0+cu132");
	put_thread(&scene->records, 1, 4242, scene_string(scene, "python"));
	put_thread(&scene->records, 2, 4250, scene_string(scene, "pt_autograd_0"));
	put_device(&scene->records, 0, scene_string(scene, "NVIDIA A100-SXM4-80GB"), 81158 * MIB);
	scene_facts(scene);
	scene_model(scene);
}

/* Decodes the definitions: no more can be added after this. */
static void scene_finish(struct scene *scene)
{
	scene->defs = defs_create();
	assert_non_null(scene->defs);
	assert_int_equal(
		defs_add(scene->defs, scene->records.data, scene->records.used_bytes, NULL), 0);
}

static void scene_end(struct scene *scene)
{
	defs_release(scene->defs);
}

#endif
