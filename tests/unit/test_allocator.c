/* model/allocator: the rules of PyTorch's caching allocator, on sequences counted by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/allocator.h"
#include "model/pieces.h"

#define MIB (1ull << 20)
#define KIB (1ull << 10)
#define ANY_SIZE ((struct allocator_limits){.capacity_bytes = ALLOCATOR_NO_LIMIT})

static struct allocator_conf conf_of(const char *framework, const char *text)
{
	char buffer[256];
	struct text reason;
	struct allocator_conf conf;
	text_init_fixed(&reason, buffer, sizeof buffer);
	allocator_conf_init(&conf, allocator_version_of(framework));
	if (allocator_conf_parse(&conf, text, &reason))
		fail_msg("%s: %s", text, text_string(&reason));
	return conf;
}

static struct allocator *start(const char *framework, const char *text,
			       struct allocator_limits limits)
{
	struct allocator_conf conf = conf_of(framework, text);
	struct allocator *allocator = allocator_create(&conf, &limits, 2, NULL);
	assert_non_null(allocator);
	return allocator;
}

static uint64_t reserved(const struct allocator *allocator)
{
	return allocator_counters(allocator)->reserved_bytes;
}

static struct piece *take(struct allocator *allocator, uint64_t bytes)
{
	struct piece *piece = allocator_alloc(allocator, 0, bytes);
	assert_non_null(piece);
	return piece;
}

/* Eight blocks of 16 MiB, freed; then four of 32 MiB. Returns the peak reserved. */
static uint64_t run_devlog(const char *framework, const char *text)
{
	struct piece *first[8];
	struct allocator *allocator = start(framework, text, ANY_SIZE);
	for (int i = 0; i < 8; i++)
		first[i] = take(allocator, 16 * MIB);
	for (int i = 0; i < 8; i++)
		allocator_free(allocator, first[i]);
	for (int i = 0; i < 4; i++)
		take(allocator, 32 * MIB);
	uint64_t peak = allocator_counters(allocator)->peak_reserved_bytes;
	assert_int_equal(allocator_counters(allocator)->peak_allocated_bytes, 128 * MIB);
	allocator_release(allocator);
	return peak;
}

static void expandable_segments_grow_where_whole_ones_do_not_fit(void **state)
{
	static const char *const versions[] = {"torch 2.6.0", "torch 2.8.0", "torch 2.15.0+cu132",
					       NULL};
	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(run_devlog(versions[i], ""), 256 * MIB);
		assert_int_equal(run_devlog(versions[i], "expandable_segments:True"), 140 * MIB);
	}
}

static void segments_have_the_sizes_of_pytorch(void **state)
{
	static const struct {
		uint64_t asked, reserved;
	} cases[] = {{1, 2 * MIB},
		     {MIB, 2 * MIB},
		     {MIB + 1, 20 * MIB},
		     {10 * MIB - 1024, 20 * MIB},
		     {10 * MIB, 10 * MIB},
		     {10 * MIB + 1, 12 * MIB},
		     {33 * MIB, 34 * MIB}};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct allocator *allocator = start(NULL, "", ANY_SIZE);
		take(allocator, cases[i].asked);
		assert_int_equal(reserved(allocator), cases[i].reserved);
		allocator_release(allocator);
	}
}

static void large_blocks_keep_a_rest_of_up_to_one_mebibyte(void **state)
{
	(void)state;
	struct allocator *allocator = start(NULL, "", ANY_SIZE);
	assert_int_equal(take(allocator, 11 * MIB)->bytes, 12 * MIB);
	assert_int_equal(take(allocator, 11 * MIB - 512)->bytes, 11 * MIB - 512);
	assert_int_equal(take(allocator, 100)->bytes, 512);
	allocator_release(allocator);
}

static void streams_share_no_segment(void **state)
{
	(void)state;
	struct allocator *allocator = start(NULL, "", ANY_SIZE);
	allocator_free(allocator, allocator_alloc(allocator, 0, 30 * MIB));
	allocator_alloc(allocator, 1, 30 * MIB);
	assert_int_equal(reserved(allocator), 60 * MIB);
	allocator_alloc(allocator, 0, 30 * MIB);
	assert_int_equal(reserved(allocator), 60 * MIB);
	allocator_release(allocator);
}

/* Two equal holes, the older one at the higher address. */
static bool takes_the_older(const char *framework)
{
	struct allocator *allocator =
		start(framework, "",
		      (struct allocator_limits){.capacity_bytes = ALLOCATOR_NO_LIMIT,
						.addresses_descend = true});
	struct piece *older = take(allocator, 30 * MIB), *younger = take(allocator, 30 * MIB);
	uint64_t address = older->address;
	assert_true(younger->address < address);
	allocator_free(allocator, older);
	allocator_free(allocator, younger);
	bool is_older = take(allocator, 30 * MIB)->address == address;
	allocator_release(allocator);
	return is_older;
}

static void ties_are_broken_by_age_from_2_13_on(void **state)
{
	(void)state;
	assert_false(takes_the_older("torch 2.6.0"));
	assert_false(takes_the_older("torch 2.12.1"));
	assert_true(takes_the_older("torch 2.13.0"));
	assert_true(takes_the_older("torch 3.0.0"));
	assert_true(takes_the_older(NULL));
}

static void a_full_device_is_retried_after_a_flush(void **state)
{
	(void)state;
	struct allocator *allocator =
		start(NULL, "", (struct allocator_limits){.capacity_bytes = 100 * MIB});
	allocator_free(allocator, take(allocator, 40 * MIB));
	struct piece *kept = take(allocator, 30 * MIB); /* a part of the 40 */
	allocator_take_outside(allocator, 20 * MIB);
	take(allocator, 40 * MIB);
	assert_int_equal(allocator_counters(allocator)->retries, 0);
	assert_null(allocator_alloc(allocator, 0, 60 * MIB));
	assert_int_equal(allocator_counters(allocator)->retries, 1);
	assert_int_equal(reserved(allocator), 80 * MIB); /* the 40 are not whole */
	allocator_free(allocator, kept);
	take(allocator, 38 * MIB);
	assert_null(allocator_alloc(allocator, 0, 40 * MIB));
	allocator_give_outside(allocator, 20 * MIB);
	take(allocator, 20 * MIB);
	assert_int_equal(reserved(allocator), 100 * MIB);
	assert_int_equal(allocator_counters(allocator)->peak_used_bytes, 100 * MIB);
	allocator_release(allocator);
}

static void private_pools_keep_their_segments_in_a_flush(void **state)
{
	static const bool is_private[2] = {false, true};
	struct allocator_conf conf = conf_of(NULL, "");
	struct allocator_limits limits = {.capacity_bytes = 100 * MIB};
	(void)state;
	struct allocator *allocator = allocator_create(&conf, &limits, 2, is_private);
	allocator_free(allocator, allocator_alloc(allocator, 1, 60 * MIB));
	assert_null(allocator_alloc(allocator, 0, 50 * MIB));
	allocator_free(allocator, allocator_alloc(allocator, 0, 40 * MIB));
	assert_null(allocator_alloc(allocator, 0, 50 * MIB));
	assert_int_equal(reserved(allocator), 60 * MIB);
	allocator_release_cached(allocator, is_private);
	assert_int_equal(reserved(allocator), 0);
	allocator_release(allocator);
}

static void blocks_above_max_split_size_are_kept_whole(void **state)
{
	(void)state;
	struct allocator *allocator = start(NULL, "max_split_size_mb:64", ANY_SIZE);
	allocator_free(allocator, take(allocator, 100 * MIB));
	take(allocator, 50 * MIB); /* never a part of the 100 */
	assert_int_equal(reserved(allocator), 150 * MIB);
	allocator_free(allocator, take(allocator, 80 * MIB)); /* 100 would waste 20 */
	assert_int_equal(reserved(allocator), 230 * MIB);
	assert_int_equal(take(allocator, 81 * MIB)->bytes, 100 * MIB);
	assert_int_equal(reserved(allocator), 230 * MIB);
	allocator_release(allocator);
}

static void oversize_blocks_are_released_before_everything_is(void **state)
{
	(void)state;
	struct allocator *allocator = start(
		NULL, "max_split_size_mb:64", (struct allocator_limits){.capacity_bytes = 200 * MIB});
	allocator_free(allocator, take(allocator, 100 * MIB));
	allocator_free(allocator, take(allocator, 40 * MIB));
	take(allocator, 70 * MIB);
	assert_int_equal(reserved(allocator), 110 * MIB); /* the 100 went, the 40 stayed */
	assert_int_equal(allocator_counters(allocator)->retries, 0);
	allocator_release(allocator);
}

static uint64_t reserved_after_collection(const char *framework, const char *text)
{
	struct piece *pieces[5];
	struct allocator *allocator =
		start(framework, text,
		      (struct allocator_limits){.capacity_bytes = 1000 * MIB,
						.total_bytes = 1000 * MIB});
	for (int i = 0; i < 5; i++)
		pieces[i] = take(allocator, 100 * MIB);
	for (int i = 0; i < 5; i++)
		allocator_free(allocator, pieces[i]);
	take(allocator, 200 * MIB);
	uint64_t bytes = reserved(allocator);
	allocator_release(allocator);
	return bytes;
}

static void garbage_collection_leaves_private_pools_alone(void **state)
{
	static const bool is_private[2] = {false, true};
	struct allocator_conf conf =
		conf_of(NULL, "garbage_collection_threshold:0.4,per_process_memory_fraction:0.5");
	struct allocator_limits limits = {.capacity_bytes = ALLOCATOR_NO_LIMIT, .total_bytes = 1000 * MIB};
	(void)state;
	struct allocator *allocator = allocator_create(&conf, &limits, 2, is_private);
	allocator_free(allocator, allocator_alloc(allocator, 1, 150 * MIB));
	allocator_free(allocator, allocator_alloc(allocator, 0, 100 * MIB));
	assert_non_null(allocator_alloc(allocator, 0, 200 * MIB));
	assert_int_equal(reserved(allocator), 350 * MIB);
	allocator_release(allocator);
}

static void garbage_is_collected_above_the_threshold_of_the_fraction(void **state)
{
	(void)state;
	const char *with_limit =
		"garbage_collection_threshold:0.4,per_process_memory_fraction:0.5";
	const char *whole = "garbage_collection_threshold:0.4,per_process_memory_fraction:1.0";
	/* 500 are above 0.4 * 500 = 200; the five are of one age: all go */
	assert_int_equal(reserved_after_collection(NULL, with_limit), 200 * MIB);
	assert_int_equal(reserved_after_collection(NULL, "garbage_collection_threshold:0.4"),
			 700 * MIB);
	assert_int_equal(reserved_after_collection("torch 2.8.0", whole), 200 * MIB);
	assert_int_equal(reserved_after_collection("torch 2.15.0", whole), 700 * MIB);
}

static void a_fraction_limits_what_is_reserved(void **state)
{
	(void)state;
	struct allocator *allocator =
		start(NULL, "per_process_memory_fraction:0.5",
		      (struct allocator_limits){.capacity_bytes = 1000 * MIB,
						.total_bytes = 1000 * MIB});
	take(allocator, 500 * MIB);
	assert_null(allocator_alloc(allocator, 0, 2 * MIB));
	assert_non_null(allocator_alloc_unlimited(allocator, 0, 2 * MIB));
	assert_int_equal(reserved(allocator), 520 * MIB);
	allocator_release(allocator);
}

static void a_flush_unmaps_whole_pages_only(void **state)
{
	(void)state;
	struct allocator *allocator = start(NULL, "expandable_segments:True", ANY_SIZE);
	struct piece *first = take(allocator, 10 * MIB), *pin = take(allocator, 2 * MIB);
	struct piece *last = take(allocator, 60 * MIB);
	assert_int_equal(reserved(allocator), 80 * MIB); /* 72, in pages of 20 */
	allocator_free(allocator, first);
	allocator_free(allocator, last);
	allocator_release_cached(allocator, NULL);
	assert_int_equal(reserved(allocator), 20 * MIB);
	take(allocator, 30 * MIB);
	assert_int_equal(reserved(allocator), 60 * MIB); /* from the 8 left on the page */
	allocator_free(allocator, pin);
	allocator_release_cached(allocator, NULL);
	allocator_release(allocator);
}

/* ---------- settings ---------- */

static void sizes_are_rounded_to_divisions(void **state)
{
	(void)state;
	struct allocator_conf four = conf_of(NULL, "roundup_power2_divisions:4");
	assert_int_equal(allocator_round(&four, 1200 * KIB), 1280 * KIB);
	assert_int_equal(allocator_round(&four, 1024 * KIB), 1024 * KIB);
	assert_int_equal(allocator_round(&four, 2048), 2048);
	assert_int_equal(allocator_round(&four, 2049), 2560);
	assert_int_equal(allocator_round(&four, 1500), 1536); /* not above 4 * 512 */
	struct allocator_conf one = conf_of(NULL, "roundup_power2_divisions:1");
	assert_int_equal(allocator_round(&one, 1200 * KIB + 1), 1200 * KIB + 512);
}

static void divisions_differ_by_size(void **state)
{
	(void)state;
	struct allocator_conf conf =
		conf_of(NULL, " roundup_power2_divisions:[256:1, 512:2,1024:4,>:8] ,"
			      "expandable_segments:True");
	assert_true(conf.is_expandable);
	assert_int_equal(conf.divisions[0], 1); /* 1 MiB and below: as the first */
	assert_int_equal(conf.divisions[8], 1); /* 256 */
	assert_int_equal(conf.divisions[9], 2);
	assert_int_equal(conf.divisions[10], 4);
	assert_int_equal(conf.divisions[11], 8);
	assert_int_equal(conf.divisions[15], 8);
	assert_int_equal(allocator_round(&conf, 600 * MIB), 768 * MIB);
	assert_int_equal(allocator_round(&conf, 300 * MIB + 5), 300 * MIB + 512);
	/* PyTorch 2.8: ">" begins with the last one named, and with the first interval when it stands alone. */
	struct allocator_conf old = conf_of("torch 2.8.0+cu128", "roundup_power2_divisions:[1:2,16:8,>:4]");
	assert_int_equal(old.divisions[0], 2);
	assert_int_equal(old.divisions[3], 0);
	assert_int_equal(old.divisions[4], 4);
	assert_int_equal(old.divisions[15], 4);
	struct allocator_conf rest = conf_of("torch 2.8.0+cu128", "roundup_power2_divisions:[>:4]");
	assert_int_equal(rest.divisions[0], 4);
	assert_int_equal(conf_of(NULL, "roundup_power2_divisions:[>:4]").divisions[0], 0);
}

static void wrong_settings_are_named(void **state)
{
	static const struct {
		const char *framework, *conf, *names;
	} cases[] = {
		{NULL, "max_splitt_size_mb:64", "max_splitt_size_mb"},
		{NULL, "expandable_segments", "expandable_segments"},
		{NULL, "expandable_segments:true", "True or False"},
		{NULL, "expandable_segments:True,max_split_size_mb:20", "above 20"},
		{NULL, "max_split_size_mb:6x", "6x"},
		{NULL, "large_segment_size_mb:10", "above 10"},
		{NULL, "garbage_collection_threshold:1.5", "between 0 and 1"},
		{NULL, "per_process_memory_fraction:0.9.1", "0.9.1"},
		{NULL, "roundup_power2_divisions:3", "power of two"},
		{NULL, "roundup_power2_divisions:[256:1,512:3]", "power of two"},
		{NULL, "roundup_power2_divisions:[256:1", "power of two"},
		{NULL, "backend:cuda", "native"},
		{"torch 2.8.0+cu128", "large_segment_size_mb:64", "2.8 does not know"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char buffer[256];
		struct text reason;
		struct allocator_conf conf, before;
		text_init_fixed(&reason, buffer, sizeof buffer);
		allocator_conf_init(&conf, allocator_version_of(cases[i].framework));
		before = conf;
		assert_int_equal(allocator_conf_parse(&conf, cases[i].conf, &reason), -EINVAL);
		assert_non_null(strstr(text_string(&reason), cases[i].names));
		assert_memory_equal(&conf, &before, sizeof conf);
	}
}

static void known_settings_without_influence_are_accepted(void **state)
{
	(void)state;
	conf_of(NULL, "pinned_use_cuda_host_register:True,pinned_num_register_threads:8,"
		      "release_lock_on_cudamalloc:True,throw_on_cudamalloc_oom:True,"
		      "expandable_segments_reserve:1,backend:native");
	assert_true(conf_of("torch 2.8.0", "backend:cudaMallocAsync").is_async);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expandable_segments_grow_where_whole_ones_do_not_fit),
		cmocka_unit_test(segments_have_the_sizes_of_pytorch),
		cmocka_unit_test(large_blocks_keep_a_rest_of_up_to_one_mebibyte),
		cmocka_unit_test(streams_share_no_segment),
		cmocka_unit_test(ties_are_broken_by_age_from_2_13_on),
		cmocka_unit_test(a_full_device_is_retried_after_a_flush),
		cmocka_unit_test(private_pools_keep_their_segments_in_a_flush),
		cmocka_unit_test(blocks_above_max_split_size_are_kept_whole),
		cmocka_unit_test(oversize_blocks_are_released_before_everything_is),
		cmocka_unit_test(garbage_collection_leaves_private_pools_alone),
		cmocka_unit_test(garbage_is_collected_above_the_threshold_of_the_fraction),
		cmocka_unit_test(a_fraction_limits_what_is_reserved),
		cmocka_unit_test(a_flush_unmaps_whole_pages_only),
		cmocka_unit_test(sizes_are_rounded_to_divisions),
		cmocka_unit_test(divisions_differ_by_size),
		cmocka_unit_test(wrong_settings_are_named),
		cmocka_unit_test(known_settings_without_influence_are_accepted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
