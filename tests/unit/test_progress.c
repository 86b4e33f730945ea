/* The progress bar, on a terminal of this test. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/progress.h"

/* What stands on stderr, a terminal of so many columns, at `done`. */
static void draw(unsigned short columns, const char *title, double done, char *seen, size_t bytes)
{
	struct winsize size = {.ws_row = 24, .ws_col = columns};
	struct progress progress = {.title = title, .is_wanted = true}; /* and two seconds have passed */
	int terminal = posix_openpt(O_RDWR | O_NOCTTY), kept = dup(STDERR_FILENO);
	assert_true(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal));
	int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	assert_int_equal(ioctl(other, TIOCSWINSZ, &size), 0);
	dup2(other, STDERR_FILENO);
	progress_update(&progress, done);
	dup2(kept, STDERR_FILENO);
	ssize_t got = read(terminal, seen, bytes - 1);
	seen[got > 0 ? got : 0] = 0;
	close(other);
	close(terminal);
	close(kept);
}

static void the_line_is_narrower_than_the_terminal(void **state)
{
	static const char *const titles[] = {"a", "train.mtrace", "a/path/that/is/longer/than/there/is/room/for.mtrace"};
	char seen[512];
	(void)state;
	for (unsigned short columns = 10; columns < 120; columns++)
		for (size_t t = 0; t < sizeof titles / sizeof *titles; t++) {
			draw(columns, titles[t], 0.5, seen, sizeof seen);
			assert_memory_equal(seen, "\r[", 2);
			assert_true(strlen(seen + 1) < columns);
			assert_non_null(strstr(seen, "]  50 %"));
		}
}

static void a_part_of_the_title_is_no_part_of_a_character(void **state)
{
	char seen[512];
	(void)state;
	for (unsigned short columns = 40; columns < 90; columns++) {
		draw(columns, "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc"
			      "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc"
			      "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc",
		     1, seen, sizeof seen);
		assert_null(strchr(seen, '\\'));
		assert_non_null(strstr(seen, "100 %"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_is_narrower_than_the_terminal),
		cmocka_unit_test(a_part_of_the_title_is_no_part_of_a_character),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
