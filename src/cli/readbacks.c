/* Collects MEMTRACE_READBACK by the program's line. Owns the sentence about them. Cannot tell which
 * value steers the program: that a line stands here is a question to its author. */
#include "cli/readbacks.h"

#include <stdlib.h>
#include <string.h>

#include "cli/load.h"
#include "cli/output.h"
#include "report/layout.h"
#include "report/where.h"

#define ROWS_SHOWN 5
#define INDENT	   15
#define LINE_COLUMNS 50
#define COUNT_END  74

static struct readback *row_of(struct readbacks *readbacks, const char *line)
{
	for (unsigned i = 0; i < readbacks->row_count; i++)
		if (!strcmp(readbacks->rows[i].line, line))
			return &readbacks->rows[i];
	char *copy = readbacks->row_count < READBACKS_MAX ? strdup(line) : NULL;
	if (!copy)
		return NULL;
	struct readback *row = &readbacks->rows[readbacks->row_count++];
	*row = (struct readback){.line = copy};
	return row;
}

static void add_event(struct readbacks *readbacks, const struct defs *defs, const struct event *event)
{
	struct text line;
	struct where where = where_find(defs, event->stack, event->thread);
	text_init(&line);
	if (where.line || where.module || where.native.frame || where.is_autograd)
		where_add(&line, defs, &where, output_is_ascii());
	else
		text_add(&line, "no line of Python"); /* these stacks have no native frames */
	struct readback *row = row_of(readbacks, text_string(&line));
	readbacks->count++;
	if (row)
		row->count++;
	text_release(&line);
}

void readbacks_add(struct readbacks *readbacks, const char *trace_path)
{
	char error[512];
	struct event event;
	struct trace *trace = trace_open(trace_path, error, sizeof error);
	while (trace && trace_next(trace, &event))
		if (event.what == MEMTRACE_READBACK)
			add_event(readbacks, trace_defs(trace), &event);
	if (trace)
		trace_close(trace);
}

static int compare(const void *a, const void *b)
{
	const struct readback *first = a, *second = b;
	if (first->count != second->count)
		return first->count < second->count ? 1 : -1;
	return strcmp(first->line, second->line);
}

static void print_row(struct text *out, const char *line, uint64_t count)
{
	struct text piece;
	text_init(&piece);
	text_add(&piece, line);
	text_printf(out, "%*s", INDENT, "");
	layout_cut(out, &piece, LINE_COLUMNS);
	layout_number(out, count, COUNT_END);
	text_add(out, " times\n");
	text_release(&piece);
}

static void print_heading(struct text *out, bool has_values)
{
	text_add(out, "  read back    what a GPU would have computed was read as zeros");
	text_add(out, has_values ? ", small whole\n"
				   "               numbers as they are; where a zero steers the program, the figures\n"
				   "               are of another run:\n"
				 : "; where that steers the\n"
				   "               program (a stop flag, a count), the figures are of another run;\n"
				   "               --values computes small whole numbers:\n");
}

void readbacks_print(struct text *out, struct readbacks *readbacks, bool has_values)
{
	uint64_t shown = 0;
	unsigned i;
	if (!readbacks->count)
		return;
	qsort(readbacks->rows, readbacks->row_count, sizeof *readbacks->rows, compare);
	print_heading(out, has_values);
	for (i = 0; i < readbacks->row_count && i < ROWS_SHOWN; i++) {
		print_row(out, readbacks->rows[i].line, readbacks->rows[i].count);
		shown += readbacks->rows[i].count;
	}
	if (shown < readbacks->count)
		print_row(out, "other lines", readbacks->count - shown);
}

void readbacks_release(struct readbacks *readbacks)
{
	for (unsigned i = 0; i < readbacks->row_count; i++)
		free(readbacks->rows[i].line);
	*readbacks = (struct readbacks){.count = 0};
}
