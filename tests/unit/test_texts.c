/* Which values of a command line a trace may keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder/texts.h"

/* What is kept of an argument that follows those before it. */
static void expect_kept(bool *hide_next, const char *argument, const char *kept)
{
	char buffer[64];
	struct text room;
	text_init_fixed(&room, buffer, sizeof buffer);
	assert_string_equal(texts_argument(argument, hide_next, &room), kept);
}

static void values_of_secret_options_are_hidden(void **state)
{
	(void)state;
	static const char *const lines[][2] = {
		{"train.py", "train.py"},
		{"--token", "--token"},
		{"hf_abc", "***"},
		{"--lr", "--lr"},
		{"0.1", "0.1"},
		{"--API-Key=42", "--API-Key=***"},
		{"plain", "plain"},
		{"--password", "--password"},
		{"-Zx9_begins-with-a-dash", "***"},
		{"--use-secret", "--use-secret"}, /* takes no value: another option follows */
		{"--verbose", "--verbose"},
		{"--secret", "--secret"},
		{"--token=t", "--token=***"},
		{"key=value", "key=value"},
	};
	bool hide_next = false;
	for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++)
		expect_kept(&hide_next, lines[i][0], lines[i][1]);
	assert_false(hide_next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(values_of_secret_options_are_hidden)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
