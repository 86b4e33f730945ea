/* base/units: sizes and times as people write them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/units.h"

static void expect_bytes(const char *string, uint64_t expected)
{
	uint64_t bytes = 12345;
	if (parse_bytes(string, &bytes))
		fail_msg("'%s' was refused", string);
	assert_int_equal(bytes, expected);
}

static void expect_refused(const char *string, int error)
{
	uint64_t bytes = 12345;
	int got = parse_bytes(string, &bytes);
	if (got != error)
		fail_msg("'%s' gave %d", string, got);
	assert_int_equal(bytes, 12345); /* untouched */
}

static void sizes_are_read_as_people_write_them(void **state)
{
	(void)state;
	expect_bytes("0", 0);
	expect_bytes("4096", 4096);
	expect_bytes("512B", 512);
	expect_bytes("64KiB", 65536);
	expect_bytes("512M", (uint64_t)512 << 20);
	expect_bytes("24G", (uint64_t)24 << 30);
	expect_bytes("24GiB", (uint64_t)24 << 30);
	expect_bytes("24 gib", (uint64_t)24 << 30);
	expect_bytes(" 1.5 GiB ", (uint64_t)3 << 29);
	expect_bytes("10MB", 10000000);
	expect_bytes("80GB", 80000000000);
	expect_bytes("0.1GB", 100000000);
	expect_bytes("0.333333333333333333333 TiB", 366503875925);
}

static void what_is_not_a_size_is_refused(void **state)
{
	static const char *const strings[] = {
		"",     " ",   "G",        "-1",    "+1",   "1.",  "1.G", ".5G", "1.5", "1.5B",
		"1,5G", "12x", "12 GiB x", "1GiBs", "0x10", "1e3", "1 2", "NaN", "1PB"};
	(void)state;
	for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
		expect_refused(strings[i], -EINVAL);
}

static void sizes_out_of_range_are_told_from_nonsense(void **state)
{
	(void)state;
	expect_bytes("9223372036854775807", INT64_MAX);
	expect_refused("9223372036854775808", -ERANGE);
	expect_refused("99999999999999999999999", -ERANGE);
	expect_refused("8388608TiB", -ERANGE);
	expect_refused("16777216T", -ERANGE); /* exactly 2^64 */
	expect_refused("99999999999999999999999x", -EINVAL);
}

static void expect_size(uint64_t bytes, const char *expected)
{
	struct text text;
	text_init(&text);
	text_add_size(&text, bytes);
	assert_string_equal(text_string(&text), expected);
	text_release(&text);
}

static void sizes_are_written_short_and_never_off_by_much(void **state)
{
	const uint64_t kib = 1024, mib = kib * kib, gib = mib * kib;
	(void)state;
	expect_size(0, "0 B");
	expect_size(512, "512 B");
	expect_size(1023, "1023 B");
	expect_size(kib, "1 KiB");
	expect_size(1536, "1.5 KiB");
	expect_size(12 * kib + 100, "12 KiB");
	expect_size(mib - 1, "1.0 MiB");
	expect_size(mib, "1 MiB");
	expect_size(mib * 18 / 10, "1.8 MiB");
	expect_size(9 * mib + 1000 * kib, "10 MiB");
	expect_size(6574 * mib, "6574 MiB");
	expect_size(gib * 157 / 10, "15.7 GiB");
	expect_size(24 * gib, "24 GiB");
	expect_size(UINT64_MAX, "16777216.0 TiB");
}

static void mebibytes_are_rounded_and_aligned(void **state)
{
	struct text text;
	(void)state;
	text_init(&text);
	text_add_mib(&text, ((uint64_t)6574 << 20) + 524288, 6);
	text_add_mib(&text, 524287, 3);
	assert_string_equal(text_string(&text), "  6575  0");
	text_release(&text);
}

static void expect_duration(uint64_t ns, const char *expected)
{
	struct text text;
	text_init(&text);
	text_add_duration(&text, ns);
	assert_string_equal(text_string(&text), expected);
	text_release(&text);
}

static void durations_are_written_in_the_unit_that_fits(void **state)
{
	const uint64_t ms = 1000000, s = 1000 * ms;
	(void)state;
	expect_duration(0, "0 ns");
	expect_duration(850000, "850 us");
	expect_duration(12 * ms, "12 ms");
	expect_duration(12 * ms + 3, "12 ms");
	expect_duration(1500000, "1.5 ms");
	expect_duration(4200 * ms, "4.2 s");
	expect_duration(59990 * ms, "1 min 0 s");
	expect_duration(192 * s, "3 min 12 s");
	expect_duration(7260 * s, "2 h 1 min");
	expect_duration(3600 * s - 1, "1 h 0 min");
	expect_duration(UINT64_MAX, "5124095 h 34 min");
}

static void counts_have_separators(void **state)
{
	struct text text;
	(void)state;
	text_init(&text);
	text_add_count(&text, 969600);
	assert_string_equal(text_string(&text), "969,600");
	text_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_read_as_people_write_them),
		cmocka_unit_test(what_is_not_a_size_is_refused),
		cmocka_unit_test(sizes_out_of_range_are_told_from_nonsense),
		cmocka_unit_test(sizes_are_written_short_and_never_off_by_much),
		cmocka_unit_test(mebibytes_are_rounded_and_aligned),
		cmocka_unit_test(durations_are_written_in_the_unit_that_fits),
		cmocka_unit_test(counts_have_separators),
	};
	return cmocka_run_group_tests_name("units", tests, 0, 0);
}
