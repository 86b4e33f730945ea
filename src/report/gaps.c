/* What the figures of a report leave out. Owns the sentences for it. Must never stay silent about
 * an event that was lost, and never claim a gap that was not counted. No malloc, stdio or locale:
 * see summary.c. */
#include <errno.h>

#include "base/units.h"
#include "report/layout.h"
#include "report/summary.h"
#include "report/witness.h"

static void add_count_line(struct text *out, uint64_t count, const char *words)
{
	if (count)
		text_printf(out, "  %s: %'llu\n", words, (unsigned long long)count);
}

static const char *write_error(int error)
{
	switch (error) {
	case ENOSPC:
		return "the disk was full";
	case EDQUOT:
		return "the quota was used up";
	case EFBIG:
		return "the file reached the limit of its size";
	case EIO:
		return "the disk failed";
	default:
		return "the file could not be written";
	}
}

static void add_file_gaps(struct text *out, const struct summary_facts *facts)
{
	add_count_line(out, facts->lost, "events lost, not in the figures");
	add_count_line(out, facts->in_flight,
		       "events being stored when the process died, not in the figures");
	add_count_line(out, facts->late, "events after the trace was closed, not in the figures");
	if (facts->write_errno)
		text_printf(out, "  writing stopped: %s (error %d)\n",
			    write_error(facts->write_errno), facts->write_errno);
	if (facts->torn_reason && *facts->torn_reason) {
		text_add(out, facts->has_moved	  ? "  the program was writing the file, read it again: "
			      : facts->is_foreign ? "  another version of memtrace wrote it, read it with that one: "
						  : "  the file is damaged: ");
		text_add_escaped(out, facts->torn_reason);
		text_add_char(out, '\n');
	}
}

static void add_model_gaps(struct text *out, const struct model *model)
{
	const struct model_totals *totals = model_totals(model);
	if (model_failed(model))
		text_add(out, "  memory for the tables ran out: all figures are incomplete\n");
	add_count_line(out, totals->unknown_frees, "frees of memory that was never seen allocated");
	add_count_line(out, totals->double_allocations,
		       "allocations at an address whose free was not seen");
}

static void add_managed_gap(struct text *out, const struct model *model)
{
	uint64_t bytes = model_totals(model)->managed_peak_bytes;
	if (!bytes)
		return;
	text_add(out, "  managed memory may be the host's: untracked is too low by that, up to ");
	text_add_size(out, bytes);
	text_add_char(out, '\n');
}

static void add_notices(struct text *out, const struct defs *defs)
{
	const char *notice;
	for (unsigned i = 0; i < 4 && (notice = defs_info(defs, MEMTRACE_INFO_NOTICE, i)); i++) {
		char buffer[512];
		struct text line;
		text_init_fixed(&line, buffer, sizeof buffer);
		text_add_escaped(&line, notice);
		text_add(out, "  ");
		layout_cut(out, &line, LAYOUT_COLUMNS - 2);
		text_add_char(out, '\n');
	}
}

bool summary_has_no_block_events(const struct model *model, const struct defs *defs)
{
	const char *framework = defs_info(defs, MEMTRACE_INFO_FRAMEWORK, 0);
	const struct model_device *device;
	if (!framework || model_totals(model)->block_events)
		return false;
	for (unsigned i = 0; (device = model_device(model, i)); i++)
		if (device->has_async)
			return false;
	return model_device(model, 0);
}

void summary_add_gaps(struct text *out, const struct model *model, const struct defs *defs,
		      const struct summary_facts *facts)
{
	static const char heading[] = "Not in these figures, or not certain:\n";
	size_t before = out->used_bytes;
	text_add(out, heading);
	add_file_gaps(out, facts);
	add_model_gaps(out, model);
	add_managed_gap(out, model);
	add_count_line(out, facts->stacks_lost,
		       "events without a stack because the tables were full");
	add_count_line(out, facts->disagreements,
		       "block events after which PyTorch's own total was not ours");
#define X(name, field, words) add_count_line(out, facts->field, words);
	FACTS_BLIND(X)
#undef X
	if (summary_has_no_block_events(model, defs))
		text_add(out, "  PyTorch's tensors were not seen: allocated is what the driver "
			      "gave out\n");
	witness_add_gaps(out, model);
	add_notices(out, defs);
	if (out->used_bytes == before + sizeof heading - 1)
		out->used_bytes = before;
}
