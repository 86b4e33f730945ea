/* The processes of one `memtrace run`. Owns the columns of the table. Must never add up processes:
 * they may have peaked at different moments. */
#include "report/run_table.h"

#include <string.h>

#include "report/devices.h"
#include "report/layout.h"
#include "report/summary.h"

#define RANK_COLUMN      5
#define PID_COLUMN       13
#define PROGRAM_COLUMNS  16
#define ALLOCATED_COLUMN 41
#define RESERVED_COLUMN  51
#define LOST_COLUMN      57
#define TRACE_COLUMN     81
#define RANK_BYTES_MAX   5

void run_table_start(struct run_table *table, struct text *out, size_t count)
{
	*table = (struct run_table){.out = out};
	text_printf(out, "memtrace: %zu processes, peaks in MiB\n\n", count);
	layout_word(out, "rank", RANK_COLUMN);
	layout_word(out, "pid", PID_COLUMN);
	text_add(out, "  program");
	layout_word(out, "allocated", ALLOCATED_COLUMN);
	layout_word(out, "reserved", RESERVED_COLUMN);
	layout_word(out, "lost", LOST_COLUMN);
	text_add(out, "  how it ended");
	text_pad_to(out, TRACE_COLUMN);
	text_add(out, "trace\n");
}

/* `piece` has room for it. */
static const char *name_rank(struct text *piece, const struct defs *defs)
{
	const char *rank = defs_info(defs, MEMTRACE_INFO_RANK, 0);
	rank = rank ? rank : "-";
	text_add_escaped_bytes(piece, rank, strnlen(rank, RANK_BYTES_MAX));
	return text_string(piece);
}

static void add_rank(struct text *out, const struct defs *defs)
{
	char buffer[32];
	struct text piece;
	text_init_fixed(&piece, buffer, sizeof buffer);
	layout_word(out, name_rank(&piece, defs), RANK_COLUMN);
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

struct peaks {
	uint64_t allocated, reserved;
	bool has_outsiders; /* reserved is not PyTorch's alone */
};

/* Of the device that has the highest. */
static struct peaks find_peaks(const struct model *model)
{
	struct peaks peaks = {0, 0, false};
	const struct model_device *device;
	for (unsigned i = 0; (device = model_device(model, i)); i++) {
		if (devices_allocated(device)->peak_bytes > peaks.allocated)
			peaks.allocated = devices_allocated(device)->peak_bytes;
		if (device->reserved.peak_bytes > peaks.reserved)
			peaks.reserved = device->reserved.peak_bytes;
		peaks.has_outsiders |= devices_has_outsiders(device);
	}
	return peaks;
}

static const struct unit mib = {"MiB", 20};

void run_table_add(struct run_table *table, const struct model *model, const struct defs *defs,
		   const struct summary_facts *facts)
{
	const struct peaks peaks = find_peaks(model);
	table->has_outsiders |= peaks.has_outsiders;
	add_rank(table->out, defs);
	layout_number(table->out, facts->pid, PID_COLUMN);
	text_add(table->out, "  ");
	summary_add_program(table->out, defs, PROGRAM_COLUMNS);
	layout_number(table->out, unit_round(mib, peaks.allocated), ALLOCATED_COLUMN);
	layout_number(table->out, unit_round(mib, peaks.reserved), RESERVED_COLUMN);
	layout_number(table->out, facts->lost, LOST_COLUMN);
	text_add(table->out, "  ");
	add_ended(table->out, facts);
	text_add_char(table->out, ' ');
	text_pad_to(table->out, TRACE_COLUMN);
	text_add_escaped(table->out, facts->trace_path);
	text_add_char(table->out, '\n');
	if (!*table->next || peaks.allocated > table->highest_bytes) {
		table->highest_bytes = peaks.allocated;
		strncpy(table->next, facts->trace_path, sizeof table->next - 1);
	}
}

void run_table_end(struct run_table *table)
{
	struct summary_facts next = {.trace_path = table->next};
	text_add_char(table->out, '\n');
	if (table->has_outsiders)
		text_add(table->out, "reserved counts what others than PyTorch hold, too\n");
	if (*table->next)
		summary_add_next(table->out, "report", &next);
}

void run_line_print(struct text *out, const struct model *model, const struct defs *defs,
		    const struct summary_facts *facts)
{
	const struct peaks peaks = find_peaks(model);
	char buffer[32];
	struct text piece;
	text_init_fixed(&piece, buffer, sizeof buffer);
	text_printf(out, "memtrace: rank %s: peak %llu MiB allocated, %llu MiB reserved",
		    name_rank(&piece, defs),
		    (unsigned long long)unit_round(mib, peaks.allocated),
		    (unsigned long long)unit_round(mib, peaks.reserved));
	text_add(out, peaks.has_outsiders ? " (not by PyTorch alone)" : "");
	summary_add_ended(out, facts);
	if (facts->lost)
		text_printf(out, ", %'llu events lost", (unsigned long long)facts->lost);
	text_add(out, "; ");
	text_add_escaped(out, facts->trace_path);
	text_add_char(out, '\n');
}
