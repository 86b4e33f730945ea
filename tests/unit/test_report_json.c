/* report/json and report/dump: keys and values, literally. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden.h"
#include "report/dump.h"
#include "report/json.h"
#include "report_scene.h"

static struct scene scene;
static struct text text;

static void report_of_a_healthy_run(void **state)
{
	(void)state;
	scene_info(&scene, MEMTRACE_INFO_RANK, "1");
	scene_info(&scene, MEMTRACE_INFO_WORLD_SIZE, "2x");
	scene.model.timeline = (struct model_timeline){
		.width_ns = 1ull << 36, .count = 2, .allocated_bytes = {7, 8}, .reserved_bytes = {9, 10}};
	scene_finish(&scene);
	json_print(&text, &scene.model, scene.defs, &scene.facts);
	assert_golden(&text, "report.json");
}

static void what_is_not_known_is_null(void **state)
{
	struct model_device *device = scene.model.devices;
	(void)state;
	device->pytorch_reserved_known = false;
	device->free_known = false;
	device->untracked_known = false;
	device->in_use_known = false;
	device->total_bytes = 0;
	scene.facts.ended = SUMMARY_UNKNOWN;
	scene.facts.status = -1;
	scene_finish(&scene);
	json_print(&text, &scene.model, scene.defs, &scene.facts);
	assert_non_null(strstr(text_string(&text), "\"ended\": \"unknown\", \"status\": null"));
	assert_non_null(strstr(text_string(&text), "\"total_bytes\": null"));
	assert_non_null(strstr(text_string(&text), "\"reserved\": null, \"segments\": null"));
	assert_non_null(strstr(text_string(&text), "\"untracked_bytes\": null"));
	assert_non_null(strstr(text_string(&text), "\"in_use_bytes\": null"));
	assert_non_null(strstr(text_string(&text), "\"untracked_history\": null"));
	assert_non_null(strstr(text_string(&text), "\"fragmentation\": null"));
	assert_non_null(strstr(text_string(&text), "\"rank\": null"));
}

static void oom_has_evidence_and_no_verdict(void **state)
{
	(void)state;
	scene.model.oom_count = 1;
	scene.model.ooms[0] = (struct model_oom){
		.by_pytorch = true,
		.time_ns = 20,
		.requested_bytes = 64 * MIB,
		.free_bytes = UINT64_MAX,
		.allocated_bytes = 100 * MIB,
		.pytorch_allocated_bytes = 90 * MIB,
		.reserved_bytes = 130 * MIB,
		.pytorch_reserved_bytes = 120 * MIB,
		.stack = STACK_STATE,
	};
	scene_finish(&scene);
	json_print(&text, &scene.model, scene.defs, &scene.facts);
	const char *ooms = strstr(text_string(&text), "\"ooms\": [{");
	assert_non_null(ooms);
	assert_non_null(strstr(ooms, "\"free_bytes\": null"));
	assert_non_null(
		strstr(ooms, "\"verdict\": \"unknown\", \"kind\": null, \"confidence\": null"));
	assert_non_null(strstr(ooms, "\"idle_bytes\": 31457280, \"outside_bytes\": 10485760"));
	assert_non_null(strstr(ooms, "\"advice\": [], \"not_advised\": []"));
	assert_non_null(strstr(ooms, "adamw.py:96 _init_group"));
}

static void blind_spots_are_listed(void **state)
{
	(void)state;
	scene.facts.blind_deepbind = 2;
	scene.model.totals.block_events = 0;
	scene_finish(&scene);
	json_print(&text, &scene.model, scene.defs, &scene.facts);
	assert_non_null(strstr(text_string(&text), "\"blind\": [{\"what\": \"deepbind\", \"name\": "
						   "null, \"count\": 2, \"since_ns\": null}, "
						   "{\"what\": \"no_block_events\", \"name\": "
						   "null, \"count\": 1, \"since_ns\": null}]"));
}

static const struct event events[] = {
	{0, 1024, 0x7f0000000000, 2097152, 0, 0, STACK_HEAD, 1, MEMTRACE_ALLOC,
	 MEMTRACE_SPACE_DEVICE, 0, 0, 0},
	{1, 2048, 0x7f0000000000, 1024, 1000, 7, STACK_HEAD, 1, MEMTRACE_BLOCK_ALLOC,
	 MEMTRACE_SPACE_BLOCK, 0, 0, 0},
	{2, 3072, 0x7f0000000000, 1024, 0, 7, STACK_AUTOGRAD, 2, MEMTRACE_BLOCK_FREE,
	 MEMTRACE_SPACE_BLOCK, 0, 1, 0},
	{3, 4096, 0x10000, 4096, 0xabc, 0, STACK_NCCL, 1, MEMTRACE_MAP, MEMTRACE_SPACE_VMM, 1, 0,
	 0},
	{4, 5120, 0x20000, 512, 0x99, 0, 0, 0, MEMTRACE_ALLOC, MEMTRACE_SPACE_STREAM, 0,
	 MEMTRACE_ASYNC_POOL, 0},
	{5, 6144, 0, 123, 456, 0, 0, 9, MEMTRACE_MEMINFO, MEMTRACE_SPACE_NONE, 0xff, 2, 0},
	{6, 7168, 0, 99, 0, 0, STACK_HOSTILE, 1, MEMTRACE_OOM, MEMTRACE_SPACE_PINNED, 0xfe, 0, 2},
	{7, 8192, 1, 2, 3, 4, 4000000000u, 5, 77, 88, 3, 0xff, -1},
};

static void dump_events(void (*print)(struct text *, const struct defs *, const struct event *,
				      const struct dump_style *))
{
	for (int stacks = 0; stacks < 2; stacks++)
		for (size_t i = 0; i < sizeof events / sizeof *events; i++)
			print(&text, scene.defs, &events[i],
			      &(struct dump_style){.stacks = stacks});
}

static void dump_json_line(struct text *out, const struct defs *defs, const struct event *event,
			   const struct dump_style *style)
{
	dump_json(out, defs, event, event->what == MEMTRACE_BLOCK_ALLOC ? "input" : NULL, style);
}

static void dump_has_a_line_an_event(void **state)
{
	(void)state;
	scene_finish(&scene);
	dump_events(dump_json_line);
	assert_golden(&text, "dump.json");
	assert_int_equal(text_lines(&text), 2 * sizeof events / sizeof *events);
}

static void dump_for_people_is_a_table(void **state)
{
	(void)state;
	scene_finish(&scene);
	dump_table_head(&text);
	dump_events(dump_table);
	assert_golden(&text, "dump.txt");
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
		TEST(report_of_a_healthy_run),         TEST(what_is_not_known_is_null),
		TEST(oom_has_evidence_and_no_verdict), TEST(blind_spots_are_listed),
		TEST(dump_has_a_line_an_event),        TEST(dump_for_people_is_a_table),
	};
	return cmocka_run_group_tests_name("report_json", tests, NULL, NULL);
}
