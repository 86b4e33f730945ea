/* A progress bar on stderr. Owns its look and its pace. Must never write a byte where nobody looks:
 * to a file, a pipe, or for work that is over before one could read it. */
#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/output.h"

#define FIRST_AFTER_NS 2000000000u
#define EVERY_NS       100000000u
#define BAR_COLUMNS    30

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void progress_start(struct progress *progress, const char *title)
{
	const char *term = getenv("TERM");
	bool is_terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
	*progress = (struct progress){.title = title, .is_wanted = is_terminal};
	progress->next_ns = now_ns() + FIRST_AFTER_NS;
}

void progress_update(struct progress *progress, double done)
{
	char buffer[256];
	struct text line;
	if (!progress->is_wanted || now_ns() < progress->next_ns)
		return;
	int filled = (int)(done * BAR_COLUMNS);
	text_init_fixed(&line, buffer, sizeof buffer);
	text_add(&line, "\r[");
	for (int i = 0; i < BAR_COLUMNS; i++)
		text_add_char(&line, i < filled ? '#' : ' ');
	text_printf(&line, "] %3d %%  ", (int)(done * 100));
	text_add_escaped_bytes(&line, progress->title, strnlen(progress->title, 36));
	output_words(&line);
	progress->is_shown = true;
	progress->next_ns = now_ns() + EVERY_NS;
}

void progress_end(struct progress *progress)
{
	char buffer[16];
	struct text line;
	if (!progress->is_shown)
		return;
	text_init_fixed(&line, buffer, sizeof buffer);
	text_add(&line, "\r\033[K");
	output_words(&line);
	progress->is_shown = false;
}
