/* model/whatif: what settings need, and their order, on sequences counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/whatif.h"

#define MIB   (1ull << 20)
#define COUNT 88u
#define BLOCK (256 * MIB)
#define KEPT  "garbage_collection_threshold:0.6,per_process_memory_fraction:0.95"

/* Each request is kept; at the last one the recorded run gave up. */
static struct act acts[COUNT];
static uint64_t sequences[COUNT];
static struct classes classes = {.count = 1};
static struct sequence sequence;
static struct script script = {.acts = acts,
			       .act_count = COUNT,
			       .sequences = sequences,
			       .slot_count = COUNT,
			       .largest_bytes = BLOCK,
			       .classes = &classes};

static void start(struct whatif *whatif, uint64_t total_bytes, uint64_t other_bytes)
{
	*whatif = (struct whatif){.sequence = &sequence,
				  .script = &script,
				  .other_bytes = other_bytes,
				  .limits = {.capacity_bytes = ALLOCATOR_NO_LIMIT,
					     .total_bytes = total_bytes}};
	for (uint32_t i = 0; i < COUNT; i++)
		acts[i] = (struct act){.bytes = BLOCK,
				       .slot = i,
				       .kind = i + 1 < COUNT ? ACT_ALLOC : ACT_TRY};
}

static const struct whatif_setting *row_of(const struct whatif *whatif, const char *conf)
{
	for (size_t i = 0; i < whatif->setting_count; i++)
		if (!strcmp(whatif->settings[i].conf, conf))
			return &whatif->settings[i];
	fail_msg("there is no row of %s", conf);
	return NULL;
}

static void compare(struct whatif *whatif, const char *conf, uint64_t memory_bytes)
{
	char buffer[256];
	struct text reason;
	text_init_fixed(&reason, buffer, sizeof buffer);
	assert_int_equal(whatif_add(whatif, "", false, &reason), 0);
	assert_int_equal(whatif_add(whatif, conf, false, &reason), 0);
	whatif_find_twins(whatif);
	for (size_t i = 0; i < whatif->setting_count; i++)
		assert_int_equal(whatif_try(whatif, i, memory_bytes), 0);
	whatif_rank(whatif, 0);
}

/* 88 × 256 MiB are 22528; 95 % of 23714 are 22528.3, of 23712 only 22526.4. */
static void a_fraction_needs_a_larger_device(void **state)
{
	static const uint64_t totals_mib[] = {22800, 24576, 81920}; /* of the recorded device */
	struct whatif whatif;
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		start(&whatif, totals_mib[i] * MIB, 0);
		compare(&whatif, KEPT, 0);
		assert_int_equal(row_of(&whatif, "")->need_bytes, 22528 * MIB);
		assert_int_equal(row_of(&whatif, KEPT)->need_bytes, 23714 * MIB);
		assert_int_equal(row_of(&whatif, KEPT)->result.counters.peak_reserved_bytes,
				 row_of(&whatif, "")->result.counters.peak_reserved_bytes);
		assert_string_equal(whatif.settings[0].conf, "");
	}
}

/* The fraction is of the whole device, the need beside what others hold of it. */
static void what_others_hold_counts_for_a_fraction(void **state)
{
	struct whatif whatif;
	(void)state;
	start(&whatif, 24576 * MIB, 514 * MIB);
	compare(&whatif, KEPT, 0);
	assert_int_equal(row_of(&whatif, KEPT)->need_bytes, (23714 - 514) * MIB);
	start(&whatif, 24576 * MIB, 2048 * MIB); /* more than the fraction leaves over */
	compare(&whatif, KEPT, 0);
	assert_int_equal(row_of(&whatif, KEPT)->need_bytes, 22528 * MIB);
}

static void what_runs_out_comes_last(void **state)
{
	struct whatif whatif;
	(void)state;
	start(&whatif, 23034 * MIB, 0);
	compare(&whatif, KEPT, 22800 * MIB); /* of which 21660 are 84 blocks and a part of one */
	assert_string_equal(whatif.settings[0].conf, "");
	assert_int_equal(whatif.settings[0].result.ooms, 0);
	assert_true(whatif.settings[1].result.ooms);
	assert_int_equal(whatif.settings[1].result.counters.peak_reserved_bytes, 84 * BLOCK);
	assert_int_equal(whatif.settings[1].need_bytes, 23714 * MIB);
}

/* On the card of the run the first of the two would empty its cache and ask again. */
static void what_reserves_more_than_the_card_has_comes_after_the_rest(void **state)
{
	static struct whatif whatif;
	const uint64_t cards[][2] = {{0, 100}, {400, 200}, {500, 100}};
	(void)state;
	whatif.setting_count = 2;
	for (size_t i = 0; i < 3; i++) {
		for (size_t row = 0; row < 2; row++)
			whatif.settings[row] = (struct whatif_setting){.twin = row, .need_bytes = (100 + 100 * row) * MIB};
		whatif.settings[0].result.counters.peak_reserved_bytes = 500 * MIB;
		whatif.settings[1].result.counters.peak_reserved_bytes = 300 * MIB;
		whatif_rank(&whatif, cards[i][0] * MIB);
		assert_int_equal(whatif.settings[0].need_bytes, cards[i][1] * MIB);
	}
}

/* A cache of 6 × 100 MiB and then 450 MiB: collecting garbage does without the cache, and so does a retry. */
static void garbage_that_is_collected_is_not_needed(void **state)
{
	struct whatif whatif;
	(void)state;
	start(&whatif, 0, 0);
	for (uint32_t i = 0; i < 12; i++)
		acts[i] = (struct act){.bytes = 100 * MIB,
				       .slot = i % 6,
				       .kind = i < 6 ? ACT_ALLOC : ACT_FREE};
	acts[12] = (struct act){.bytes = 450 * MIB, .slot = 6};
	script.act_count = 13;
	compare(&whatif, KEPT, 0);
	script.act_count = COUNT;
	assert_int_equal(row_of(&whatif, "")->need_bytes, 600 * MIB);
	assert_int_equal(row_of(&whatif, KEPT)->need_bytes, 632 * MIB); /* × 0.95 = 600.4 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fraction_needs_a_larger_device),
		cmocka_unit_test(what_others_hold_counts_for_a_fraction),
		cmocka_unit_test(what_runs_out_comes_last),
		cmocka_unit_test(what_reserves_more_than_the_card_has_comes_after_the_rest),
		cmocka_unit_test(garbage_that_is_collected_is_not_needed),
	};
	return cmocka_run_group_tests_name("whatif", tests, NULL, NULL);
}
