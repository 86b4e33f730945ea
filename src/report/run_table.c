/* The processes of one `memtrace run`. Owns the columns of the table. Must never add up processes:
 * they may have peaked at different moments. */
#include "report/run_table.h"

#include <string.h>

#include "report/layout.h"
#include "report/summary.h"

#define PID_COLUMN       8
#define RANK_COLUMN      13
#define PROGRAM_COLUMNS  16
#define ALLOCATED_COLUMN 41
#define RESERVED_COLUMN  51
#define LOST_COLUMN      57

void run_table_start(struct run_table *table, struct text *out, size_t count)
{
	*table = (struct run_table){.out = out};
	text_printf(out, "memtrace: %zu processes, peaks in MiB\n\n", count);
	layout_word(out, "pid", PID_COLUMN);
	layout_word(out, "rank", RANK_COLUMN);
	text_add(out, "  program");
	layout_word(out, "allocated", ALLOCATED_COLUMN);
	layout_word(out, "reserved", RESERVED_COLUMN);
	layout_word(out, "lost", LOST_COLUMN);
	text_add(out, "  how it ended\n");
}

static void add_rank(struct text *out, const struct defs *defs)
{
	const char *rank = defs_info(defs, MEMTRACE_INFO_RANK, 0);
	char buffer[32];
	struct text piece;
	text_init_fixed(&piece, buffer, sizeof buffer);
	text_add_escaped_bytes(&piece, rank ? rank : "-", rank ? strnlen(rank, 5) : 1);
	layout_word(out, text_string(&piece), RANK_COLUMN);
}

static void add_ended(struct text *out, const struct summary_facts *facts)
{
	char buffer[64];
	struct text piece;
	text_init_fixed(&piece, buffer, sizeof buffer);
	summary_add_ended(&piece, facts);
	text_add(out, piece.used_bytes ? text_string(&piece) + 2
				       : "exit status 0"); /* without its comma */
}

void run_table_add(struct run_table *table, const struct model *model, const struct defs *defs,
		   const struct summary_facts *facts)
{
	const struct unit mib = {"MiB", 20};
	const struct model_device *device;
	uint64_t allocated = 0, reserved = 0;
	for (unsigned i = 0; (device = model_device(model, i)); i++) {
		allocated = device->allocated.peak_bytes > allocated ? device->allocated.peak_bytes
								     : allocated;
		reserved = device->reserved.peak_bytes > reserved ? device->reserved.peak_bytes
								  : reserved;
	}
	layout_number(table->out, facts->pid, PID_COLUMN);
	add_rank(table->out, defs);
	text_add(table->out, "  ");
	summary_add_program(table->out, defs, PROGRAM_COLUMNS);
	layout_number(table->out, unit_round(mib, allocated), ALLOCATED_COLUMN);
	layout_number(table->out, unit_round(mib, reserved), RESERVED_COLUMN);
	layout_number(table->out, facts->lost, LOST_COLUMN);
	text_add(table->out, "  ");
	add_ended(table->out, facts);
	text_add_char(table->out, '\n');
	if (!*table->next || allocated > table->highest_bytes) {
		table->highest_bytes = allocated;
		strncpy(table->next, facts->trace_path, sizeof table->next - 1);
	}
}

void run_table_end(struct run_table *table)
{
	struct summary_facts next = {.trace_path = table->next};
	text_add_char(table->out, '\n');
	if (*table->next)
		summary_add_next(table->out, "report", &next);
}
