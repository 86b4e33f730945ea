/* report/where: which line of the user's code a stack stands for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/where.h"
#include "report_scene.h"

static struct scene scene;

static void expect_where(uint32_t stack, uint32_t thread, const char *expected)
{
	struct text text;
	struct where where = where_find(scene.defs, stack, thread);
	text_init(&text);
	where_add(&text, scene.defs, &where, false);
	assert_string_equal(text_string(&text), expected);
	text_release(&text);
}

static void user_line_comes_before_the_library_frame(void **state)
{
	(void)state;
	expect_where(STACK_HEAD, 1, "train.py:38 step › functional.py linear");
	expect_where(STACK_GELU, 1, "model/gpt.py:24 forward");
}

static void library_frame_stands_alone_without_a_user_line(void **state)
{
	(void)state;
	expect_where(STACK_STATE, 1, "torch/optim/adamw.py:96 _init_group");
}

static void stack_without_python_is_told_by_thread_or_module(void **state)
{
	(void)state;
	expect_where(STACK_AUTOGRAD, 2, "(autograd thread)");
	expect_where(STACK_AUTOGRAD, 1, "libc10_cuda.so");
	expect_where(STACK_AUTOGRAD, 0, "(autograd or other C++ thread)");
	expect_where(STACK_NCCL, 1, "libnccl.so.2");
}

static void unknown_ids_are_unknown(void **state)
{
	(void)state;
	expect_where(0, 0, "unknown");
	expect_where(4000000000u, 4000000000u, "unknown");
}

static void hostile_names_are_escaped(void **state)
{
	(void)state;
	expect_where(STACK_HOSTILE, 1, "\\x1b[31mevil\\x0a.py:1 f\\xff\"x");
}

/* A file of its own: paths and what they are taken for. */
static const struct {
	const char *file, *expected;
} files[] = {
	{"/home/me/gpt/train.py", "train.py:7 f"},
	{"/home/me/gpt2/train.py", "gpt2/train.py:7 f"},
	{"/srv/job.py", "srv/job.py:7 f"},
	{"/job.py", "/job.py:7 f"},
	{"relative/job.py", "relative/job.py:7 f"},
	{"/home/me/gpt/.venv/lib/python3.12/site-packages/x/y.py", "x/y.py:7 f"},
	{"/usr/lib/python3/dist-packages/x.py", "x.py:7 f"},
	{"/usr/lib64/python3.9/json/decoder.py", "json/decoder.py:7 f"},
	{"/opt/python311.zip/json/decoder.py", "json/decoder.py:7 f"},
	{"/home/me/python3.11/train.py", "python3.11/train.py:7 f"},
	{"/src/pytorch/torch/nn/modules/linear.py", "torch/nn/modules/linear.py:7 f"},
	{"/tmp/torchinductor_me/lf/clf2iv7ydsh2pcitvpov76onxbrjacu4kxhhadrhiusoahobp3i2.py",
	 "clf2iv7ydsh2pcitvpov76onxbrjacu4kxhhadrhiusoahobp3i2.py:7 f"},
	{"/home/me/lf/clf.py", "lf/clf.py:7 f"},
	{"<frozen importlib._bootstrap>", "unknown"},
	{"<string>", "<string>:7 f"},
	{"<eval_with_key>.3", "<eval_with_key>.3:7 f"},
	{"", ":7 f"},
};

static void paths_are_shortened_by_what_they_are(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		scene_start(&scene);
		scene_frame(&scene, 9, files[i].file, 7, "f");
		put_stack(&scene.records, STACK_NCCL + 1, 0, 1, 0, (const uint32_t[]){9});
		scene_finish(&scene);
		expect_where(STACK_NCCL + 1, 1, files[i].expected);
		scene_end(&scene);
	}
}

static void typed_in_code_gives_way_to_a_file(void **state)
{
	(void)state;
	scene_start(&scene);
	scene_frame(&scene, 9, "<string>", 3, "__init__");
	put_stack(&scene.records, STACK_NCCL + 1, 0, 2, 0, (const uint32_t[]){9, 2});
	scene_finish(&scene);
	expect_where(STACK_NCCL + 1, 1, "train.py:38 step › <string> __init__");
	scene_end(&scene);
}

static const char torch_modules[] = "/usr/lib/python3/dist-packages/torch/nn/modules/module.py";

struct caller_frame {
	const char *file, *function; /* file NULL: PyTorch's call of a module */
	uint32_t line;
};

/* Innermost first; `line` of the caller, 0 none. */
static void expect_caller(const struct caller_frame *frames, uint32_t count, uint32_t line)
{
	uint32_t ids[8];
	scene_start(&scene);
	for (uint32_t i = 0; i < count; i++) {
		const char *file = frames[i].file ? frames[i].file : torch_modules;
		ids[i] = 9 + i;
		scene_frame(&scene, ids[i], file, frames[i].line, frames[i].function);
	}
	put_stack(&scene.records, STACK_NCCL + 1, 0, count, 0, ids);
	scene_finish(&scene);
	const struct def_python_frame *caller = where_find_caller(scene.defs, STACK_NCCL + 1);
	assert_int_equal(caller ? caller->line : 0, line);
	scene_end(&scene);
}

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

static void the_line_that_called_the_outermost_module_is_found(void **state)
{
	static const struct caller_frame nested[] = {{"/a/net.py", "Block.forward", 1}, {NULL, "Module._call_impl", 2},
						     {"/a/net.py", "Net.forward", 3},	{NULL, "Module._call_impl", 4},
						     {"/a/train.py", "step", 5},	{"/a/train.py", "<module>", 6}};
	static const struct caller_frame made[] = {{"/a/net.py", "Net.__init__.<locals>.<listcomp>", 1},
						   {NULL, "ModuleList.extend", 2},
						   {"/a/net.py", "Net.__init__", 3},
						   {"/a/sweep.py", "trial", 4}};
	static const struct caller_frame direct[] = {{NULL, "Module._call_impl", 1}, {"/a/train.py", "step", 2}};
	static const struct caller_frame plain[] = {{"/a/train.py", "step", 1}, {"/a/train.py", "<module>", 2}};
	(void)state;
	expect_caller(nested, COUNT_OF(nested), 5);
	expect_caller(made, COUNT_OF(made), 4);
	expect_caller(direct, COUNT_OF(direct), 0); /* it is the line itself */
	expect_caller(plain, COUNT_OF(plain), 0);
	expect_caller(plain, 0, 0);
}

/* Stacks of native frames alone, with the names of their functions. */
enum { FREE_STACK = STACK_NCCL + 1, FREE_FRAME = 3 };

static const struct {
	const char *symbols[5]; /* innermost first */
	const char *expected;
	uint32_t module; /* of the scene; 0: the program's own */
} natives[] = {
	{{"_ZN3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocator6mallocEv",
	  "_ZN2at6native10empty_cudaEv", "_ZN2at4_ops2mm4callERKNS_6TensorES4_",
	  "_ZN5torch8autograd9generated11MmBackward05applyEOSt6vectorIN2at6TensorESaIS4_EE"},
	 "(backward) MmBackward0",
	 1},
	{{"_ZN2at6native10empty_cudaEv", "_ZN5torch8autograd14AccumulateGrad5applyEv"},
	 "(backward) AccumulateGrad",
	 1},
	{{"_ZN2at6native10empty_cudaEv", "_ZN2at4_ops8gelu_out10redispatchEv"},
	 "aten::gelu_out",
	 1},
	{{"_ZN2at6native10empty_cudaEv", "_ZN2at4_ops19empty_memory_format4callEv"},
	 "aten::empty_memory_format",
	 1},
	{{"_ZN2at6native17gpu_reduce_kernelIffLi4EEEvRNS_14TensorIteratorE",
	  "_ZN2at4_ops15sum_dim_IntList10redispatchEv", "_ZN2at4_ops15sum_dim_IntList4callEv",
	  "_ZN5torch8autograd13InputMetadata11reduce_gradERN2at6TensorE"},
	 "aten::sum_dim_IntList",
	 1},
	{{"_ZN2at6native10empty_cudaEv", "_ZN2at4_ops5addmm4callEv", "_ZN2at6native6linearEv",
	  "_ZN2at4_ops6linear4callEv"},
	 "aten::linear",
	 1},
	{{"_ZN2at6native10empty_cudaEv", "_ZN2at4_ops19empty_memory_format4callEv", "_ZN4c10d7Reducer4growEv"},
	 "c10d::Reducer::grow",
	 1},
	{{"_ZN2at6native10empty_cudaEv", "_ZZN2at6native12_GLOBAL__N_14coolEvENKUlvE_clEv"},
	 "at::native::cool",
	 1},
	{{"_ZL10cudaMallocIfE9cudaErrorPPT_m", "_ZN6Engine4growEm", "main"},
	 "Engine::grow (trainer)",
	 0},
	{{"take", "main"}, "take (trainer)", 0},
	{{"\x1b[31mevil\n", "main"}, "\\x1b[31mevil\\x0a (trainer)", 0},
};

static void native_stacks_are_told_by_the_function_that_says_most(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof natives / sizeof *natives; i++) {
		uint32_t ids[5], count = 0;
		scene_start(&scene);
		put_module(&scene.records, 3, scene_string(&scene, "/home/me/trainer"));
		for (; count < 5 && natives[i].symbols[count]; count++) {
			ids[count] = FREE_FRAME + count;
			scene_native(&scene, ids[count], natives[i].module ? natives[i].module : 3,
				     natives[i].symbols[count]);
		}
		put_stack(&scene.records, FREE_STACK, 3, 0, count, ids);
		scene_finish(&scene);
		expect_where(FREE_STACK, 0, natives[i].expected);
		scene_end(&scene);
	}
}

static void source_lines_come_before_functions(void **state)
{
	static const struct def_place places[] = {
		{.function = "_ZL10cudaMallocIfE9cudaErrorPPT_m",
		 .file = "/usr/include/cuda.h",
		 .line = 9},
		{.function = "grow", .file = "/home/me/gpt/src/pool.c", .line = 12},
	};
	(void)state;
	scene_start(&scene);
	scene_native(&scene, FREE_FRAME, 2, "main");
	put_stack(&scene.records, FREE_STACK, 2, 0, 1, (const uint32_t[]){FREE_FRAME});
	scene_finish(&scene);
	assert_int_equal(defs_place_native_frame(scene.defs, FREE_FRAME, places, 2), 0);
	expect_where(FREE_STACK, 0, "src/pool.c:12 grow");
	scene_end(&scene);
}

static int start(void **state)
{
	(void)state;
	scene_start(&scene);
	scene_finish(&scene);
	return 0;
}

static int end(void **state)
{
	(void)state;
	scene_end(&scene);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(user_line_comes_before_the_library_frame, start,
						end),
		cmocka_unit_test_setup_teardown(library_frame_stands_alone_without_a_user_line,
						start, end),
		cmocka_unit_test_setup_teardown(stack_without_python_is_told_by_thread_or_module,
						start, end),
		cmocka_unit_test_setup_teardown(unknown_ids_are_unknown, start, end),
		cmocka_unit_test_setup_teardown(hostile_names_are_escaped, start, end),
		cmocka_unit_test(paths_are_shortened_by_what_they_are),
		cmocka_unit_test(typed_in_code_gives_way_to_a_file),
		cmocka_unit_test(the_line_that_called_the_outermost_module_is_found),
		cmocka_unit_test(native_stacks_are_told_by_the_function_that_says_most),
		cmocka_unit_test(source_lines_come_before_functions),
	};
	return cmocka_run_group_tests_name("report_where", tests, NULL, NULL);
}
