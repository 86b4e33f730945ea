/* report/summary: what is printed at the end of a run, literally. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "report/by.h"
#include "report/levers.h"
#include "report/step_table.h"
#include "report/summary.h"
#include "report/timeline.h"
#include "report_scene.h"

static struct scene scene;
static struct text text;

static void print(void)
{
	scene_finish(&scene);
	summary_print(&text, &scene.model, scene.defs, &scene.facts);
}

static void healthy_run_with_pytorch(void **state)
{
	(void)state;
	print();
	assert_golden(&text, "summary_pytorch.txt");
	assert_true(text_columns(&text) <= 80 && text_lines(&text) <= 40);
}

static struct model_moment moment(uint64_t mib)
{
	struct model_moment moment = {.is_known = true, .allocated_bytes = mib * MIB};
	moment.categories.bytes[MODEL_PARAMETERS] = 475 * MIB;
	moment.categories.bytes[MODEL_GRADIENTS] = 475 * MIB;
	moment.categories.bytes[MODEL_OPTIMIZER_STATE] = 950 * MIB;
	moment.categories.bytes[MODEL_ACTIVATIONS] = 3000 * MIB;
	return moment;
}

static void add_step(uint64_t number, uint64_t mib)
{
	scene.model.steps[scene.model.step_count++] = (struct model_step){
		.step = number,
		.peak_bytes = (mib + 1464) * MIB,
		.peak_phase = MODEL_PHASE_BACKWARD,
		.phase_peak_bytes = {[MODEL_PHASE_FORWARD] = mib * MIB, [MODEL_PHASE_BACKWARD] = (mib + 1464) * MIB,
				     [MODEL_PHASE_OPTIMIZER] = mib / 2 * MIB},
		.after = {moment(mib), moment(mib / 2), moment(mib / 3)},
	};
	scene.model.step_totals = (struct model_step_totals){400, 400, 800};
}

static void start_training(void)
{
	static const uint64_t mib[] = {3000, 5110, 5111, 4000, 4500, 4600, 5110};
	static const uint8_t categories[] = {MODEL_ACTIVATIONS, MODEL_ACTIVATIONS, MODEL_OPTIMIZER_STATE,
					     MODEL_TEMPORARY,	MODEL_PARAMETERS,  MODEL_OTHER,
					     MODEL_COMMUNICATION};
	for (size_t i = 0; i < sizeof mib / sizeof *mib; i++) {
		add_step(i + 1, mib[i]);
		scene.model.at_peak.rows[i].category = categories[i];
	}
	scene.model.devices[0].peak.step = 2;
	scene.model.devices[0].peak.phase = MODEL_PHASE_FORWARD;
	scene.model.devices[0].peak.is_phase_known = true;
}

/* Five runs of equal steps, and categories; then the same for those who ask for the steps alone. */
static void training_run_is_told_by_category_and_step(void **state)
{
	const struct step_table_style style = {.one_each = true, .has_change = true};
	(void)state;
	start_training();
	print();
	size_t lines = text_lines(&text);
	text_add(&text, "--\n");
	step_table_print(&text, &scene.model, &style);
	assert_golden(&text, "summary_training.txt");
	assert_true(text_columns(&text) <= 80 && lines <= 40);
}

/* Its largest share is of activations, but two smaller ones of parameters are more together. */
static void a_row_is_named_after_the_category_with_most_bytes(void **state)
{
	struct fake_rows *rows = &scene.model.at_peak;
	(void)state;
	rows->count = 0;
	fake_share(rows, 2000 * MIB, 1, STACK_HEAD);
	fake_share(rows, 1500 * MIB, 1, STACK_HEAD_OTHER);
	fake_share(rows, 900 * MIB, 1, STACK_HEAD_OTHER);
	rows->rows[0].category = MODEL_ACTIVATIONS;
	rows->rows[1].category = rows->rows[2].category = MODEL_PARAMETERS;
	print();
	assert_non_null(strstr(text_string(&text), "train.py:38 step › functional.py linear, +2..   4400 "
						   "      3  parameters\n"));
	by_print(&text, &scene.model, scene.defs, &scene.facts, &(struct by_style){BY_MODULE, 0, {0}});
	assert_non_null(strstr(text_string(&text), "(outside of modules)                            4400 "
						   "      3  parameters\n"));
}

static void expect_place(const char *expected)
{
	text.used_bytes = 0;
	summary_print(&text, &scene.model, scene.defs, &scene.facts);
	assert_non_null(strstr(text_string(&text), expected));
}

/* Two lines call backward(): that whose gradient of the loss is live is meant, and none if there is none. */
static void a_peak_in_a_backward_pass_has_the_line_that_called_it(void **state)
{
	enum { FIRST_CALL = STACK_NCCL + 1, SECOND_CALL };
	(void)state;
	start_training();
	scene.model.devices[0].peak.phase = MODEL_PHASE_BACKWARD;
	scene.model.devices[0].peak.stack = STACK_AUTOGRAD;
	scene.model.devices[0].peak.thread = 2;
	scene_frame(&scene, 9, PACKAGES "torch/autograd/__init__.py", 233, "_make_grads");
	scene_frame(&scene, 10, "/home/me/gpt/train.py", 60, "generate");
	put_stack(&scene.records, FIRST_CALL, 0, 3, 0, (const uint32_t[]){9, 2, 8});
	put_stack(&scene.records, SECOND_CALL, 0, 3, 0, (const uint32_t[]){9, 10, 8});
	scene_finish(&scene);
	expect_place(", backward,\n    (autograd thread)\n");
	fake_share(&scene.model.at_peak, 512, 1, SECOND_CALL);
	expect_place(", backward,\n    train.py:60 generate\n");
	fake_share(&scene.model.at_peak, 512, 1, FIRST_CALL);
	expect_place(", backward,\n    (autograd thread)\n");
}

/* Rows of the table of lines, without the one that sums up the rest. */
static size_t count_sites(void)
{
	const char *at = strstr(text_string(&text), "Where it was allocated");
	size_t rows = 0;
	while ((at = strchr(at, '\n')) && *++at == ' ')
		rows += !strstr(at, " more ") || strstr(at, " more ") > strchr(at, '\n');
	return rows;
}

/* However much else is to be said: here of as many categories, steps and levers as there are. */
static void most_of_the_peak_has_its_rows(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		add_step(i + 1, 3000 + 300 * (i % 3));
	scene.model.at_peak.count = 0;
	for (uint8_t i = 1; i < MODEL_CATEGORY_COUNT; i++) {
		fake_share(&scene.model.at_peak, 700 * MIB, 1, 1 + i % STACK_NCCL);
		scene.model.at_peak.rows[i - 1].category = i;
	}
	print();
	assert_in_range(count_sites(), 3, 8); /* 1400 each, of 6300 */
}

static struct lever lever(const char *name, uint64_t mib)
{
	struct lever lever = {.name = name, .applies = mib, .saves_bytes = mib * MIB, .reason = "why"};
	strcpy(lever.text, name);
	return lever;
}

/* Of the two stages of sharding one is told, and what would not help is no row. */
static void levers_without_a_row_are_counted(void **state)
{
	struct levers levers = {.peak_bytes = 5000 * MIB,
				.rows = {lever("a", 900), lever("zero_3", 800), lever("zero_1", 700), lever("b", 600), lever("c", 0)},
				.count = 5};
	(void)state;
	levers_print(&text, &levers, 2);
	assert_string_equal(text_string(&text), "Would lower this peak (1 more: memtrace report --full)     MiB\n"
						"  a                                                        900\n"
						"  zero_3                                                   800\n"
						"  would not: c (why)\n");
	text.used_bytes = 0;
	levers_print(&text, &levers, 3);
	assert_null(strstr(text_string(&text), " more"));
	assert_non_null(strstr(text_string(&text), "\n  b   "));
	text.used_bytes = 0;
	levers_print(&text, &levers, 0);
	assert_int_equal(text.used_bytes, 0);
}

static void the_next_command_tells_more_of_what_helps_most(void **state)
{
	struct levers levers = {.rows = {lever(LEVER_OF_ALLOCATOR, 900), lever("a", 800)}, .count = 2};
	(void)state;
	assert_string_equal(levers_next(NULL, true), "report --by stack");
	assert_string_equal(levers_next(&(struct levers){.count = 0}, false), "report --by stack");
	assert_string_equal(levers_next(&levers, true), "whatif");
	assert_string_equal(levers_next(&levers, false), "report --full");
	levers.rows[0] = lever("b", 900);
	assert_string_equal(levers_next(&levers, true), "report --by stack");
}

static void the_program_is_cut_so_that_it_shows(void **state)
{
	static const char whole[] = "python train.py src/long name/other.py --epochs 3";
	(void)state;
	scene_info(&scene, MEMTRACE_INFO_ARGUMENT, "src/long name/other.py");
	scene_info(&scene, MEMTRACE_INFO_ARGUMENT, "--epochs");
	scene_info(&scene, MEMTRACE_INFO_ARGUMENT, "3");
	scene_finish(&scene);
	summary_add_program(&text, scene.defs, sizeof whole - 1);
	assert_string_equal(text_string(&text), whole);
	text.used_bytes = 0;
	summary_add_program(&text, scene.defs, sizeof whole - 2);
	assert_string_equal(text_string(&text), "python train.py other.py --epochs 3");
	text.used_bytes = 0;
	summary_add_program(&text, scene.defs, sizeof "python train.py" + 2);
	assert_string_equal(text_string(&text), "python train.py ..");
	text.used_bytes = 0;
	summary_add_program(&text, scene.defs, sizeof "python train.py" + 1); /* one too few for the blank */
	assert_string_equal(text_string(&text), "python train.p..");
}

static void a_small_run_on_a_large_card_has_readable_figures(void **state)
{
	struct model_device *device = scene.model.devices;
	(void)state;
	device->pytorch_allocated = device->allocated =
		(struct model_counter){.current_bytes = 300 * 1024, .peak_bytes = 400 * 1024};
	device->pytorch_reserved = device->reserved =
		(struct model_counter){.current_bytes = 2048 * 1024, .peak_bytes = 2048 * 1024};
	scene.model.owner_count = 1;
	device->in_use_bytes = 420 * MIB;
	print();
	assert_non_null(strstr(text_string(&text), " 400 KiB      300 KiB\n"));
	assert_non_null(strstr(text_string(&text), " 2048 KiB     2048 KiB\n"));
	assert_non_null(strstr(text_string(&text), " 420 MiB      420 MiB of 81158\n"));
}

static void beside_a_leak_half_the_batch_is_no_offer(void **state)
{
	(void)state;
	start_training();
	scene.model.finding.cause = VERDICT_LEAK;
	print();
	assert_null(strstr(text_string(&text), "half the batch"));
	assert_true(text_columns(&text) <= 80 && text_lines(&text) <= 40);
	summary_print_limit(&text, &scene.model, scene.defs, &scene.facts, 5);
	assert_null(strstr(text_string(&text), "half the batch"));
	assert_non_null(strstr(text_string(&text),
			       "\n  would not: a smaller batch (a leak grows);\n"
			       "             allocator settings (nearly all that is reserved is allocated)\n"));
}

/* Categories, lines, steps, levers, what was found and what ran out: each has as much of the 40 lines as is left. */
static void what_was_found_leaves_room_for_the_rest(void **state)
{
	(void)state;
	start_training();
	scene.model.finding.cause = VERDICT_LEAK;
	for (uint32_t i = 0; i < 4; i++) {
		fake_share(&scene.model.at_peak, (700 - i) * MIB, 1, 1 + i % STACK_NCCL);
		scene.model.at_peak.rows[scene.model.at_peak.count - 1].category = (uint8_t)(i + 1);
	}
	for (unsigned retries = 0; retries < 4; retries++) {
		scene.model.devices[0].retries = retries;
		scene.facts.lost = retries > 1 ? 5 : 0;
		text.used_bytes = 0;
		print();
		assert_true(text_lines(&text) <= 40);
		assert_true(count_sites() >= 1);
	}
}

static void program_without_pytorch_is_shown_by_owner(void **state)
{
	struct model_device *device = scene.model.devices;
	(void)state;
	*device = (struct model_device){
		.allocated = {0, 300 * 1024, 600 * 1024, 4, 4, 0},
		.reserved = {0, 300 * 1024, 600 * 1024, 4, 4, 0},
		.peak = {1500000, 3, 300 * 1024, 300 * 1024, 0, STACK_NCCL, 1},
	};
	scene.model.totals = (struct model_totals){.events = 8};
	scene.model.owners[0] = (struct model_owner){"program", 0, 200 * 1024, 200 * 1024};
	scene.model.owners[1] = (struct model_owner){"libfoo.so", 0, 100 * 1024, 100 * 1024};
	scene.model.owner_count = 2;
	scene.model.at_peak.count = 0;
	fake_share(&scene.model.at_peak, 300 * 1024, 2, STACK_NCCL);
	scene.facts.status = 3;
	print();
	assert_golden(&text, "summary_plain.txt");
}

static void peaks_of_several_owners_are_added_only_if_they_coincide(void **state)
{
	(void)state;
	scene.model.owners[2].at_peak_bytes = 0; /* cuBLAS let go before the peak */
	print();
	assert_non_null(strstr(text_string(&text), "outside PyTorch: NCCL "));
	assert_non_null(strstr(text_string(&text), "outside PyTorch: cuBLAS "));
	assert_null(strstr(text_string(&text), "208 MiB      208 MiB"));
}

static void everything_that_can_be_wrong_is_said(void **state)
{
	(void)state;
	scene.facts.ended = SUMMARY_SIGNAL;
	scene.facts.status = 9;
	scene.facts.lost = 1234;
	scene.facts.in_flight = 2;
	scene.facts.late = 5;
	scene.facts.stacks_lost = 7;
	scene.facts.disagreements = 1;
	scene.facts.blind_lookups = 1;
	scene.facts.blind_deepbind = 2;
	scene.facts.blind_dlmopen = 3;
	scene.facts.write_errno = 28;
	scene.facts.torn_reason = "chunk at 4096: \x1b]0;bad";
	scene.model.totals.unknown_frees = 4;
	scene.model.totals.double_allocations = 6;
	scene.model.devices[0].retries = 3;
	scene.model.devices[0].ooms = 5;
	scene.model.oom_count = 1;
	scene.model.ooms[0] = (struct model_oom){.by_pytorch = true,
						 .time_ns = 20000000000,
						 .requested_bytes = 64 * MIB,
						 .stack = STACK_STATE,
						 .thread = 1};
	scene.model.devices[0].untracked_is_own = false;
	print();
	assert_golden(&text, "summary_troubles.txt");
	assert_true(text_columns(&text) <= 80 && text_lines(&text) <= 40);
}

static void several_devices_have_a_row_each(void **state)
{
	(void)state;
	scene.model.device_count = 2;
	scene.model.devices[1] = scene.model.devices[0];
	scene.model.devices[1].ordinal = 1;
	scene.model.devices[1].pytorch_reserved_known = false;
	scene.facts.ended = SUMMARY_RUNNING;
	print();
	assert_golden(&text, "summary_devices.txt");
	assert_true(text_columns(&text) <= 80);
}

static void sixty_four_devices_fit_the_page(void **state)
{
	(void)state;
	scene.model.device_count = MODEL_DEVICES_MAX;
	for (unsigned i = 1; i < MODEL_DEVICES_MAX; i++)
		scene.model.devices[i] = (struct model_device){.ordinal = i};
	print();
	assert_true(text_lines(&text) <= 40);
}

static void program_without_gpu_memory(void **state)
{
	(void)state;
	scene.model.device_count = 0;
	scene.model.totals = (struct model_totals){0};
	scene.facts.trace_path = NULL;
	print();
	assert_non_null(strstr(text_string(&text), "No GPU memory was allocated.\n"));
	assert_null(strstr(text_string(&text), "Next:"));
	assert_null(strstr(text_string(&text), "The peak"));
}

static void hostile_arguments_and_paths_are_harmless(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++)
		scene_info(&scene, MEMTRACE_INFO_ARGUMENT, "\x1b[2J\xc3(\r\nlong argument");
	scene_info(&scene, MEMTRACE_INFO_NOTICE, "bell\a and \xe2\x80\xae turned");
	scene.facts.trace_path = "it's\n\x1b.mtrace";
	print();
	for (size_t i = 0; i < text.used_bytes; i++)
		assert_true(text.data[i] == '\n' || (unsigned char)text.data[i] >= 0x20);
	assert_null(memmem(text.data, text.used_bytes, "\xe2\x80\xae", 3));
	assert_true(text_columns(&text) <= 80);
	assert_non_null(
		strstr(text_string(&text), "report --by stack $'it\\'s\\x0a\\x1b.mtrace'\n"));
}

static void ascii_readers_get_ascii(void **state)
{
	(void)state;
	scene.facts.ascii = true;
	print();
	for (size_t i = 0; i < text.used_bytes; i++)
		assert_true((unsigned char)text.data[i] < 0x80);
}

static void tables_by_each_criterion(void **state)
{
	(void)state;
	scene_finish(&scene);
	by_print(&text, &scene.model, scene.defs, &scene.facts,
		 &(struct by_style){BY_LINE, 3, {0}});
	by_print(&text, &scene.model, scene.defs, &scene.facts,
		 &(struct by_style){BY_STACK, 2, {0}});
	by_print(&text, &scene.model, scene.defs, &scene.facts,
		 &(struct by_style){BY_OWNER, 0, {0}});
	by_print(&text, &scene.model, scene.defs, &scene.facts,
		 &(struct by_style){BY_OP, 0, {0}});
	by_print(&text, &scene.model, scene.defs, &scene.facts,
		 &(struct by_style){BY_MODULE, 1, {0}});
	by_print(&text, &scene.model, scene.defs, &scene.facts,
		 &(struct by_style){BY_CATEGORY, 0, {0}});
	assert_golden(&text, "by.txt");
	assert_true(text_columns(&text) <= 80);
}

/* Where something was there is a bar, and only the highest is a full one. */
static void the_whole_run_is_a_line_of_bars(void **state)
{
	struct model_timeline *timeline = &scene.model.timeline;
	(void)state;
	timeline_print(&text, &scene.model, false);
	assert_int_equal(text.used_bytes, 0);
	*timeline = (struct model_timeline){.width_ns = 1ull << 30, .count = 121};
	timeline->allocated_bytes[4] = 1;
	timeline->allocated_bytes[30] = 4 << 20;
	timeline->reserved_bytes[119] = 8 << 20;
	timeline->reserved_bytes[120] = 7 << 20;
	timeline_print(&text, &scene.model, false);
	timeline_print(&text, &scene.model, true);
	assert_golden(&text, "timeline.txt");
	assert_true(text_columns(&text) <= 80);
}

static int start(void **state)
{
	(void)state;
	scene_start(&scene);
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
		TEST(healthy_run_with_pytorch),
		TEST(training_run_is_told_by_category_and_step),
		TEST(what_was_found_leaves_room_for_the_rest),
		TEST(a_row_is_named_after_the_category_with_most_bytes),
		TEST(a_peak_in_a_backward_pass_has_the_line_that_called_it),
		TEST(most_of_the_peak_has_its_rows),
		TEST(levers_without_a_row_are_counted),
		TEST(the_next_command_tells_more_of_what_helps_most),
		TEST(the_program_is_cut_so_that_it_shows),
		TEST(a_small_run_on_a_large_card_has_readable_figures),
		TEST(beside_a_leak_half_the_batch_is_no_offer),
		TEST(program_without_pytorch_is_shown_by_owner),
		TEST(peaks_of_several_owners_are_added_only_if_they_coincide),
		TEST(everything_that_can_be_wrong_is_said),
		TEST(several_devices_have_a_row_each),
		TEST(sixty_four_devices_fit_the_page),
		TEST(program_without_gpu_memory),
		TEST(hostile_arguments_and_paths_are_harmless),
		TEST(ascii_readers_get_ascii),
		TEST(tables_by_each_criterion),
		TEST(the_whole_run_is_a_line_of_bars),
	};
	return cmocka_run_group_tests_name("report_summary", tests, NULL, NULL);
}
