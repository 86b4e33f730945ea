/* base/text: texts for people and for JSON. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

#define EXPECT_PRINTED(expected, ...)                                 \
	do {                                                          \
		struct text printed;                                  \
		text_init(&printed);                                  \
		text_printf(&printed, __VA_ARGS__);                   \
		assert_string_equal(text_string(&printed), expected); \
		text_release(&printed);                               \
	} while (0)

static void printf_formats_as_the_c_library_does(void **state)
{
	(void)state;
	EXPECT_PRINTED("plain 100%", "plain %d%%", 100);
	EXPECT_PRINTED("-2147483648 0 4294967295", "%d %i %u", INT_MIN, 0, UINT_MAX);
	EXPECT_PRINTED("-9223372036854775808", "%ld", LONG_MIN);
	EXPECT_PRINTED("18446744073709551615 ffff", "%llu %lx", ULLONG_MAX, 0xffffUL);
	EXPECT_PRINTED("[   42][42   ][00042][-0042]", "[%5d][%-5d][%05d][%05d]", 42, 42, 42, -42);
	EXPECT_PRINTED("[  abc][abc  ][ab]", "[%5s][%-5s][%.*s]", "abc", "abc", 2, "abc");
	EXPECT_PRINTED("[ab   ]", "[%-*.2s]", 5, "abc");
	EXPECT_PRINTED("x 7 1f 1F", "%c %zu %x %X", 'x', (size_t)7, 31, 31);
	EXPECT_PRINTED("0xabc", "%p", (void *)0xabc);
}

static void printf_separates_thousands(void **state)
{
	(void)state;
	EXPECT_PRINTED("0", "%'d", 0);
	EXPECT_PRINTED("999", "%'d", 999);
	EXPECT_PRINTED("1,000", "%'d", 1000);
	EXPECT_PRINTED("-1,234,567", "%'ld", -1234567L);
	EXPECT_PRINTED("18,446,744,073,709,551,615", "%'llu", ULLONG_MAX);
	EXPECT_PRINTED("[   1,000]", "[%'8d]", 1000);
}

static void printf_survives_what_it_does_not_know(void **state)
{
	struct text text;
	const char *volatile no_string = 0;
	const char *format = "a %d %q %s";
	(void)state;
	text_init(&text);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
	text_printf(&text, format, 1, 2);
	assert_string_equal(text_string(&text), "a 1 %q %s");
	format = "%";
	text_printf(&text, format);
	assert_string_equal(text_string(&text), "a 1 %q %s%");
	format = "%s";
	text_printf(&text, format, no_string);
#pragma GCC diagnostic pop
	assert_string_equal(text_string(&text), "a 1 %q %s%(null)");
	text_release(&text);
}

static void expect_decimal(double value, int digits, const char *expected)
{
	struct text text;
	text_init(&text);
	text_add_decimal(&text, value, digits);
	assert_string_equal(text_string(&text), expected);
	text_release(&text);
}

static void decimals_round_half_away_from_zero(void **state)
{
	(void)state;
	expect_decimal(0, 0, "0");
	expect_decimal(0.5, 0, "1");
	expect_decimal(-0.5, 0, "-1");
	expect_decimal(0.49999999999999994, 0, "0");
	expect_decimal(2.25, 1, "2.3");
	expect_decimal(9.99, 1, "10.0");
	expect_decimal(-0.04, 1, "0.0");
	expect_decimal(1.000000001, 9, "1.000000001");
	expect_decimal(12.5, 3, "12.500");
	expect_decimal(1e20, 0, "100000000000000000000");
	expect_decimal(-__builtin_inf(), 2, "-inf");
	expect_decimal(__builtin_nan(""), 2, "nan");
}

static void expect_escaped(const char *string, const char *expected)
{
	struct text text;
	text_init(&text);
	text_add_escaped(&text, string);
	assert_string_equal(text_string(&text), expected);
	text_release(&text);
}

static void untrusted_text_cannot_drive_a_terminal(void **state)
{
	(void)state;
	expect_escaped("train.py", "train.py");
	expect_escaped("a\x1b[2Jb\n", "a\\x1b[2Jb\\x0a");
	expect_escaped("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80",
		       "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
	expect_escaped("\xff\xc3", "\\xff\\xc3");                   /* no lead byte; cut off */
	expect_escaped("\xc0\x80", "\\xc0\\x80");                   /* overlong */
	expect_escaped("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* surrogate */
	expect_escaped("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above 10FFFF */
	expect_escaped("\xc2\x9b"
		       "2J",
		       "\\xc2\\x9b"
		       "2J"); /* C1: control sequence introducer */
	expect_escaped("\xe2\x80\xae"
		       "cba",
		       "\\xe2\\x80\\xae"
		       "cba"); /* right-to-left override */
	expect_escaped("\x7f", "\\x7f");
}

static void expect_json(const char *string, const char *expected)
{
	struct text text;
	text_init(&text);
	text_add_json(&text, string);
	assert_string_equal(text_string(&text), expected);
	text_release(&text);
}

static void json_strings_are_valid_whatever_the_bytes(void **state)
{
	(void)state;
	expect_json("", "\"\"");
	expect_json("a \"b\" \\ c", "\"a \\\"b\\\" \\\\ c\"");
	expect_json("\n\t\r\x01\x7f", "\"\\n\\t\\r\\u0001\\u007f\"");
	expect_json("gr\xc3\xbc\xf0\x9f\x98\x80", "\"gr\xc3\xbc\xf0\x9f\x98\x80\"");
	/* What some readers take for the end of a line, and what turns the direction of writing round. */
	expect_json("\xc2\x85\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xae", "\"\\u0085\\u2028\\u2029\\u202e\"");
	expect_json("\xff"
		    "a\xc3",
		    "\"\\\\xff"
		    "a\\\\xc3\"");
}

static void bytes_with_zeros_are_escaped(void **state)
{
	struct text text;
	(void)state;
	text_init(&text);
	text_add_escaped_bytes(&text, "a\0b", 3);
	assert_string_equal(text_string(&text), "a\\x00b");
	text_release(&text);
}

static void padding_counts_characters_of_the_last_line(void **state)
{
	struct text text;
	(void)state;
	text_init(&text);
	text_add(&text, "a long first line\n\xc3\xbc");
	text_pad_to(&text, 4);
	text_add_char(&text, '|');
	text_pad_to(&text, 3);
	assert_string_equal(text_string(&text), "a long first line\n\xc3\xbc   |");
	text_release(&text);
}

static void a_fixed_text_is_cut_at_a_whole_character(void **state)
{
	char buffer[6];
	struct text text;
	(void)state;
	text_init_fixed(&text, buffer, sizeof buffer);
	text_add(&text, "abc");
	assert_false(text_failed(&text));
	text_add(&text, "d\xc3\xbcx");
	assert_true(text_failed(&text));
	text_add(&text, "z");
	assert_string_equal(text_string(&text), "abcd");
	text_init_fixed(&text, buffer, 0);
	text_add(&text, "abc");
	assert_string_equal(text_string(&text), "");
	text_release(&text);
}

static void a_text_grows(void **state)
{
	struct text text;
	(void)state;
	text_init(&text);
	for (int i = 0; i < 100000; i++)
		text_printf(&text, "%05d\n", i);
	assert_int_equal(text.used_bytes, 600000);
	assert_memory_equal(text_string(&text) + 599994, "99999\n", 7);
	assert_false(text_failed(&text));
	text_add_bytes(&text, "", SIZE_MAX / 2); /* refused, not tried */
	assert_true(text_failed(&text));
	assert_int_equal(text.used_bytes, 600000);
	text_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printf_formats_as_the_c_library_does),
		cmocka_unit_test(printf_separates_thousands),
		cmocka_unit_test(printf_survives_what_it_does_not_know),
		cmocka_unit_test(decimals_round_half_away_from_zero),
		cmocka_unit_test(untrusted_text_cannot_drive_a_terminal),
		cmocka_unit_test(json_strings_are_valid_whatever_the_bytes),
		cmocka_unit_test(bytes_with_zeros_are_escaped),
		cmocka_unit_test(padding_counts_characters_of_the_last_line),
		cmocka_unit_test(a_fixed_text_is_cut_at_a_whole_character),
		cmocka_unit_test(a_text_grows),
	};
	return cmocka_run_group_tests_name("text", tests, 0, 0);
}
