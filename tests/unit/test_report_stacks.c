/* report/stacks and report/flame: mixed stacks, literally. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden.h"
#include "report/flame.h"
#include "report/stacks.h"
#include "report_scene.h"

enum { MIXED = STACK_NCCL + 1, BACKWARD, PROGRAM, STACKS_END };

static struct scene scene;
static struct text text;

static const char *const mixed[] = {
	"_ZN3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocator6mallocEv",
	"_ZN2at6native10empty_cudaEv",
	"_ZN2at4_ops5addmm4callERKNS_6TensorES4_S4_RKN3c106ScalarES8_",
};
static const char *const backward[] = {
	"_ZN2at4_ops2mm4callERKNS_6TensorES4_",
	"_ZN5torch8autograd9generated11MmBackward05applyEOSt6vectorIN2at6TensorESaIS4_EE",
};
static const char *const program[] = {"take;it", "main"};

static uint32_t add_frames(uint32_t first, uint32_t module, const char *const *symbols,
			   size_t count)
{
	for (size_t i = 0; i < count; i++)
		scene_native(&scene, first++, module, symbols[i]);
	return first;
}

static void add_stacks(void)
{
	put_module(&scene.records, 3, scene_string(&scene, "/home/me/trainer"));
	put_module(&scene.records, 4, scene_string(&scene, "/lib/libc.so.6"));
	scene_frame(&scene, 9, PACKAGES "transformers/models/gpt2.py", 400, "GPT2.forward");
	uint32_t next = add_frames(3, 1, mixed, 3);
	next = add_frames(next, 1, backward, 2);
	next = add_frames(next, 3, program, 2);
	put_native_frame(&scene.records, next, 4, 0x27b8a);
	put_stack(&scene.records, MIXED, 1, 6, 3, (const uint32_t[]){1, 3, 7, 9, 2, 8, 3, 4, 5});
	put_stack(&scene.records, BACKWARD, 1, 0, 3, (const uint32_t[]){1, 6, 7});
	put_stack(&scene.records, PROGRAM, 3, 0, 3, (const uint32_t[]){8, 9, 10});
}

static void print_all(bool full, bool ascii)
{
	const struct stacks_style style = {.full = full, .ascii = ascii};
	for (uint32_t id = 0; id < STACKS_END; id++) {
		text_printf(&text, "%u\n", id);
		stacks_print(&text, scene.defs, id, &style);
	}
}

static void folded_stacks_begin_with_the_users_line(void **state)
{
	(void)state;
	print_all(false, false);
	assert_golden(&text, "stacks_folded.txt");
	assert_true(text_columns(&text) <= 80);
}

static void full_stacks_leave_nothing_out(void **state)
{
	(void)state;
	print_all(true, false);
	assert_golden(&text, "stacks_full.txt");
}

static void ascii_readers_get_ascii(void **state)
{
	(void)state;
	print_all(false, true);
	for (size_t i = 0; i < text.used_bytes; i++)
		assert_true((unsigned char)text.data[i] < 0x80);
}

static const char *whole_name(const char *symbol)
{
	return symbol[0] == '_' ? "whole name" : NULL;
}

static void whole_names_are_shown_in_full_stacks_only(void **state)
{
	struct stacks_style style = {.full = true, .demangle = whole_name};
	(void)state;
	stacks_print(&text, scene.defs, MIXED, &style);
	assert_non_null(strstr(text_string(&text), "libc10_cuda.so!whole name+0x10"));
	text.used_bytes = 0;
	style.full = false;
	stacks_print(&text, scene.defs, MIXED, &style);
	assert_null(strstr(text_string(&text), "whole name"));
}

static void flame_lines_run_from_the_outermost_frame_in(void **state)
{
	(void)state;
	for (uint32_t id = 0; id < STACKS_END; id++)
		flame_add(&text, scene.defs, id, id * 1000);
	assert_golden(&text, "flame.txt");
	assert_int_equal(text_lines(&text), STACKS_END);
}

static int start(void **state)
{
	(void)state;
	scene_start(&scene);
	add_stacks();
	scene_finish(&scene);
	text_init(&text);
	return 0;
}

static int end(void **state)
{
	(void)state;
	scene_end(&scene);
	text_release(&text);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(folded_stacks_begin_with_the_users_line),
		TEST(full_stacks_leave_nothing_out),
		TEST(ascii_readers_get_ascii),
		TEST(whole_names_are_shown_in_full_stacks_only),
		TEST(flame_lines_run_from_the_outermost_frame_in),
	};
	return cmocka_run_group_tests_name("report_stacks", tests, NULL, NULL);
}
