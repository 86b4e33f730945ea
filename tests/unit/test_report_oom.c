/* report/oom and report/run_table: what is printed when memory ran out, and of several processes;
 * literally. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "report/oom.h"
#include "report/run_table.h"
#include "report/verdict.h"
#include "report_scene.h"

static struct scene scene;
static struct text text;

static void start_oom(void)
{
	scene.model.oom_count = 1;
	scene.model.ooms[0] = (struct model_oom){
		.by_pytorch = true,
		.time_ns = 12300000000,
		.requested_bytes = 64 * MIB,
		.driver_bytes = 66 * MIB,
		.free_bytes = 12 * MIB,
		.total_bytes = 16155 * MIB,
		.allocated_bytes = 15782 * MIB,
		.pytorch_allocated_bytes = 15750 * MIB,
		.reserved_bytes = 15802 * MIB,
		.pytorch_reserved_bytes = 15770 * MIB,
		.stack = STACK_STATE,
		.thread = 1,
	};
	scene.model.at_oom = scene.model.at_peak;
	scene.facts.ended = SUMMARY_RUNNING;
}

static void oom_of_pytorch(void **state)
{
	(void)state;
	start_oom();
	scene_finish(&scene);
	oom_print(&text, &scene.model, scene.defs, &scene.facts, 0, NULL);
	assert_golden(&text, "oom_pytorch.txt");
	assert_true(text_columns(&text) <= 80 && text_lines(&text) <= 40);
}

static void unknown_figures_are_called_unknown(void **state)
{
	struct model_oom *oom = scene.model.ooms;
	(void)state;
	start_oom();
	oom->by_pytorch = false;
	oom->driver_bytes = 64 * MIB;
	oom->free_bytes = UINT64_MAX;
	oom->total_bytes = 0;
	oom->pytorch_allocated_bytes = oom->pytorch_reserved_bytes = 0;
	oom->stack = 0;
	scene_finish(&scene);
	oom_print_head(&text, &scene.model, scene.defs, &scene.facts, 0, "memtrace.4242.oom1.txt");
	assert_golden(&text, "oom_unknown.txt");
}

static void what_no_setting_cures_is_not_certain(void **state)
{
	const struct verdict pieces = {.cause = VERDICT_FRAGMENTATION, .kind = VERDICT_KIND_PINNED, .is_certain = true};
	struct verdict_cure refuted = {.was_replayed = true, .tried = 9};
	struct verdict verdict = pieces;
	(void)state;
	verdict_heed_cure(&verdict, NULL);
	assert_true(verdict.is_certain);
	verdict_heed_cure(&verdict, &refuted);
	assert_false(verdict.is_certain);
	verdict = pieces;
	refuted.count = 1;
	verdict_heed_cure(&verdict, &refuted);
	assert_true(verdict.is_certain);
	verdict.kind = VERDICT_KIND_PRIVATE_POOL; /* of which settings are no cure */
	refuted.count = 0;
	verdict_heed_cure(&verdict, &refuted);
	assert_true(verdict.is_certain);
}

static void a_setting_comes_before_what_gains_an_unknown_amount(void **state)
{
	const struct verdict_cure cure = {.was_replayed = true, .count = 1, .settings = {{.conf = "expandable_segments:True"}}};
	const struct verdict_words words = {.defs = scene.defs, .facts = &scene.facts, .cure = &cure};
	struct verdict verdict = {.cause = VERDICT_FRAGMENTATION,
				  .action_count = 2,
				  .actions = {{ADVICE_WHATIF, false, 0}, {ADVICE_SMALLER_BATCH, false, 0}}};
	(void)state;
	scene_finish(&scene);
	verdict_print(&text, &verdict, &words);
	const char *setting = strstr(text_string(&text), "expandable_segments:True");
	const char *batch = strstr(text_string(&text), "what helps\n    half the batch");
	assert_true(setting && batch && setting < batch);
	text.used_bytes = 0;
	verdict.actions[0] = (struct verdict_action){ADVICE_FREE_PINNERS, true, 64 * MIB};
	verdict_print(&text, &verdict, &words);
	assert_true(strstr(text_string(&text), "make them before") < strstr(text_string(&text), "expandable_segments"));
}

static void advice_is_never_cut(void **state)
{
	(void)state;
	scene_finish(&scene);
	const struct verdict_words words = {.defs = scene.defs, .facts = &scene.facts};
	for (int is_known = 0; is_known < 2; is_known++)
		for (unsigned advice = 0; advice < ADVICE_COUNT; advice++) {
			const struct verdict verdict = {.cause = VERDICT_LEAK,
							.action_count = 1,
							.actions = {{advice, is_known, 1234 * MIB}}};
			text.used_bytes = 0;
			verdict_print(&text, &verdict, &words);
			assert_null(strstr(text_string(&text), "..\n"));
			assert_null(strstr(text_string(&text), ".. "));
			assert_true(!is_known || strstr(text_string(&text), " up to 1234 MiB\n"));
			assert_true(text_columns(&text) <= 80);
		}
}

static void processes_have_a_row_each(void **state)
{
	struct run_table table;
	(void)state;
	scene_info(&scene, MEMTRACE_INFO_RANK, "0");
	scene_finish(&scene);
	run_table_start(&table, &text, 2);
	run_table_add(&table, &scene.model, scene.defs, &scene.facts);
	scene.facts.pid = 4243;
	scene.facts.ended = SUMMARY_SIGNAL;
	scene.facts.status = 9;
	scene.facts.trace_path = "other.mtrace";
	scene.model.devices[0].pytorch_allocated.peak_bytes += MIB;
	run_table_add(&table, &scene.model, scene.defs, &scene.facts);
	run_table_end(&table);
	assert_golden(&text, "run_table.txt"); /* 80 columns and the name of the trace */
}

static void another_rank_is_a_line(void **state)
{
	(void)state;
	scene_info(&scene, MEMTRACE_INFO_RANK, "3");
	scene_finish(&scene);
	scene.facts.status = 1;
	scene.facts.lost = 1234;
	run_line_print(&text, &scene.model, scene.defs, &scene.facts);
	assert_string_equal(text_string(&text),
			    "memtrace: rank 3: peak 6366 MiB allocated, 7180 MiB reserved (not by PyTorch"
			    " alone), exit status 1, 1,234 events lost; memtrace.4242.mtrace\n");
}

/* On one line, with one space between words. */
static const char *told(const struct verdict *verdict, const struct verdict_words *words)
{
	text.used_bytes = 0;
	verdict_print(&text, verdict, words);
	size_t length = 0;
	for (size_t i = 0; i < text.used_bytes; i++) {
		char c = text.data[i] == '\n' ? ' ' : text.data[i];
		if (c != ' ' || !length || text.data[length - 1] != ' ')
			text.data[length++] = c;
	}
	text.used_bytes = length;
	return text_string(&text);
}

static void a_setting_is_not_hoped_for_and_ruled_out_at_once(void **state)
{
	struct verdict_cure cure = {.was_replayed = true, .tried = 9};
	struct verdict_words words = {.facts = &scene.facts};
	struct verdict verdict = {.cause = VERDICT_TOO_BIG,
				  .counter = VERDICT_FRAGMENTATION,
				  .counter_bytes = 12 * MIB};
	(void)state;
	scene_finish(&scene);
	words.defs = scene.defs;
	assert_non_null(strstr(told(&verdict, &words), "A setting of PyTorch's allocator may gain that"));
	words.cure = &cure;
	assert_null(strstr(told(&verdict, &words), "may gain that"));
	assert_non_null(strstr(told(&verdict, &words), "will not help: settings"));
	words.cure = NULL;
	verdict.cause = VERDICT_LEAK;
	verdict.not_advised[verdict.not_advised_count++] = NOT_SETTINGS;
	assert_null(strstr(told(&verdict, &words), "may gain that"));
	assert_non_null(strstr(told(&verdict, &words), "will not help: settings"));
}

static void less_than_is_missing_is_not_called_more(void **state)
{
	struct verdict verdict = {.cause = VERDICT_LEAK,
				  .counter = VERDICT_FRAGMENTATION,
				  .counter_bytes = 12 * MIB,
				  .evidence.missing_bytes = 14 * MIB};
	(void)state;
	scene_finish(&scene);
	const struct verdict_words words = {.defs = scene.defs, .facts = &scene.facts};
	assert_non_null(strstr(told(&verdict, &words), "live blocks of PyTorch's, of the 14 MiB that are missing."));
	verdict.evidence.missing_bytes = 10 * MIB;
	assert_non_null(strstr(told(&verdict, &words), "of PyTorch's, more than the 10 MiB that are missing."));
}

static void no_number_of_steps_is_zero(void **state)
{
	struct verdict_words words = {.facts = &scene.facts, .is_finding = true};
	struct verdict verdict = {.cause = VERDICT_LEAK};
	verdict.evidence.growth_is_by_step = true;
	(void)state;
	scene_finish(&scene);
	words.defs = scene.defs;
	assert_non_null(strstr(told(&verdict, &words), "The next step may run out of memory."));
	verdict.evidence.periods_left = 1;
	assert_non_null(strstr(told(&verdict, &words), "in about 1 step."));
	verdict.evidence.periods_left = UINT64_MAX;
	assert_null(strstr(told(&verdict, &words), "ut of memory"));
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
		TEST(oom_of_pytorch),
		TEST(unknown_figures_are_called_unknown),
		TEST(what_no_setting_cures_is_not_certain),
		TEST(a_setting_comes_before_what_gains_an_unknown_amount),
		TEST(advice_is_never_cut),
		TEST(processes_have_a_row_each),
		TEST(another_rank_is_a_line),
		TEST(a_setting_is_not_hoped_for_and_ruled_out_at_once),
		TEST(less_than_is_missing_is_not_called_more),
		TEST(no_number_of_steps_is_zero),
	};
	return cmocka_run_group_tests_name("report_oom", tests, NULL, NULL);
}
