/* A progress bar on stderr. Owns its look and its pace. Must never write a byte where nobody looks:
 * to a file, a pipe, or for work that is over before one could read it. */
#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/output.h"
#include "report/layout.h"

#define FIRST_AFTER_NS 2000000000u
#define EVERY_NS       100000000u
#define BAR_COLUMNS    30
#define TITLE_COLUMNS  36
#define NUMBER_COLUMNS 9 /* "[", "] 100 %  " and the last column, after which some terminals go on in the next line */

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

/* A line that is wider than the terminal would stay there for each time it is drawn. */
static int columns_left(void)
{
	unsigned columns = output_columns(STDERR_FILENO);
	return (int)(columns ? columns : LAYOUT_COLUMNS) - NUMBER_COLUMNS;
}

static void add_title(struct text *line, const char *path, int columns)
{
	char buffer[512];
	struct text title;
	text_init_fixed(&title, buffer, sizeof buffer);
	text_add_escaped(&title, path);
	layout_cut(line, &title, (size_t)columns);
}

void progress_update(struct progress *progress, double done)
{
	char buffer[512];
	struct text line;
	if (!progress->is_wanted || now_ns() < progress->next_ns)
		return;
	int left = columns_left(), bar = left < BAR_COLUMNS ? left : BAR_COLUMNS, filled = (int)(done * bar);
	text_init_fixed(&line, buffer, sizeof buffer);
	text_add(&line, "\r[");
	for (int i = 0; i < bar; i++)
		text_add_char(&line, i < filled ? '#' : ' ');
	text_printf(&line, "] %3d %%", (int)(done * 100));
	if (left >= bar + 4) {
		text_add(&line, "  ");
		add_title(&line, progress->title, left - bar - 2 < TITLE_COLUMNS ? left - bar - 2 : TITLE_COLUMNS);
	}
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
