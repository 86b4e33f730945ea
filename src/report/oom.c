/* What is said when memory ran out. Owns the facts of it: who asked for how much, what was free,
 * who held the rest. The cause is the model's, its words are verdict.c's. No malloc, stdio or
 * locale: see summary.c. */
#include "report/oom.h"

#include "base/units.h"
#include "report/backward.h"
#include "report/devices.h"
#include "report/layout.h"
#include "report/oom_tables.h"
#include "report/summary.h"
#include "report/untracked.h"
#include "report/verdict.h"
#include "report/where.h"

static void add_place(struct text *out, const struct model *model, const struct defs *defs, size_t index, bool ascii)
{
	const struct model_oom *oom = model_oom(model, index);
	const struct composition of = {COMPOSITION_OOM, (unsigned)index};
	struct where where = where_find(defs, oom->stack, oom->thread);
	if (backward_has_made(defs, oom->stack, &where))
		backward_add_place(out, model, defs, &where, of, ascii);
	else
		where_add(out, defs, &where, ascii);
}

static void add_title(struct text *out, const struct model *model, const struct defs *defs, size_t index, bool ascii)
{
	char buffer[512];
	struct text place;
	const struct model_oom *oom = model_oom(model, index);
	text_add(out, "memtrace: ");
	devices_add_ordinal(out, oom->device);
	text_add(out, oom->device == MEMTRACE_DEVICE_HOST ? " ran out of memory to pin after " : " ran out of memory after ");
	text_add_duration(out, oom->time_ns);
	text_add(out, ", ");
	text_init_fixed(&place, buffer, sizeof buffer);
	add_place(&place, model, defs, index, ascii);
	layout_last(out, &place);
	text_add_char(out, '\n');
}

static void add_size_or_unknown(struct text *out, const char *title, bool is_known, uint64_t bytes)
{
	text_add(out, title);
	if (is_known)
		text_add_size(out, bytes);
	else
		text_add(out, "unknown");
}

static void add_request(struct text *out, const struct model_oom *oom)
{
	add_size_or_unknown(out, "  asked ", oom->requested_bytes, oom->requested_bytes);
	add_size_or_unknown(out, "  free ", oom->free_bytes != UINT64_MAX, oom->free_bytes);
	add_size_or_unknown(out, " of ", oom->total_bytes, oom->total_bytes);
	if (oom->driver_bytes)
		add_size_or_unknown(out, "  the driver was asked for ", true, oom->driver_bytes);
	else if (oom->by_pytorch)
		text_add(out, "  no driver call failed");
	text_add_char(out, '\n');
}

static void add_pytorch(struct text *out, const struct model_oom *oom)
{
	bool makes_sense = oom->pytorch_reserved_bytes >= oom->pytorch_allocated_bytes;
	add_size_or_unknown(out, "  PyTorch reserved ", true, oom->pytorch_reserved_bytes);
	add_size_or_unknown(out, "  live ", true, oom->pytorch_allocated_bytes);
	add_size_or_unknown(out, "  idle in its cache ", makes_sense,
			    oom->pytorch_reserved_bytes - oom->pytorch_allocated_bytes);
	add_size_or_unknown(out, "\n  given back while it tried ", true, oom->flushed_bytes);
	bool is_free_told = oom->flushed_bytes && oom->free_bytes != UINT64_MAX; /* then: by PyTorch's message */
	if (is_free_told)
		add_size_or_unknown(out, "  free then ", true, oom->free_bytes + oom->flushed_bytes);
	if (oom->retries) {
		text_add(out, is_free_told ? "\n  cache emptied so far " : "  cache emptied so far ");
		text_add_count(out, oom->retries);
		text_add(out, oom->retries == 1 ? " time" : " times");
	}
	text_add_char(out, '\n');
}

static void add_others(struct text *out, const struct model_oom *oom, bool is_pytorch)
{
	bool knows_used = oom->free_bytes != UINT64_MAX && oom->free_bytes <= oom->total_bytes &&
			  oom->total_bytes;
	uint64_t others, used = knows_used ? oom->total_bytes - oom->free_bytes : 0;
	uint64_t outside = oom->reserved_bytes - oom->pytorch_reserved_bytes;
	add_size_or_unknown(out, is_pytorch ? "  outside PyTorch " : "  allocated ",
			    oom->reserved_bytes >= oom->pytorch_reserved_bytes, outside);
	if (untracked_others_at_oom(oom, &others)) {
		add_size_or_unknown(out, "  untracked (context, kernels) ", true,
				    oom->untracked_bytes);
		add_size_or_unknown(out, "\n  other processes ", true, others);
	} else if (!knows_used && oom->untracked_known) {
		add_size_or_unknown(out, "  untracked (context, kernels) ", true, oom->untracked_bytes);
	} else {
		add_size_or_unknown(out, "  untracked (context, kernels, other processes) ",
				    knows_used && used >= oom->reserved_bytes,
				    used - oom->reserved_bytes);
	}
	text_add_char(out, '\n');
}

static void add_host_figures(struct text *out, const struct model_oom *oom)
{
	add_size_or_unknown(out, "  asked ", oom->requested_bytes, oom->requested_bytes);
	add_size_or_unknown(out, "  page-locked by this process ", true, oom->allocated_bytes);
	text_add_char(out, '\n');
}

static void add_figures(struct text *out, const struct model_oom *oom)
{
	if (oom->device == MEMTRACE_DEVICE_HOST) {
		add_host_figures(out, oom);
		return;
	}
	bool is_pytorch =
		oom->by_pytorch || oom->pytorch_reserved_bytes || oom->pytorch_allocated_bytes;
	add_request(out, oom);
	if (is_pytorch)
		add_pytorch(out, oom);
	add_others(out, oom, is_pytorch);
}

static void add_snapshot(struct text *out, const struct summary_facts *facts)
{
	if (!facts->snapshot_path)
		return;
	text_add(out, "Snapshot: ");
	text_add_escaped(out, facts->snapshot_path);
	text_add(out, " (opens in PyTorch's memory_viz)\n");
}

void oom_print_head(struct text *out, const struct model *model, const struct defs *defs,
		    const struct summary_facts *facts, size_t index, const char *report_path)
{
	const struct model_oom *oom = model_oom(model, index);
	struct verdict_words words = {.defs = defs, .facts = facts};
	struct verdict verdict;
	add_title(out, model, defs, index, facts->ascii);
	model_verdict(model, index, &verdict);
	verdict_print(out, &verdict, &words);
	text_add_char(out, '\n');
	add_figures(out, oom);
	text_add(out, "\nWhat was live then: ");
	text_add_escaped(out, report_path);
	text_add_char(out, '\n');
	add_snapshot(out, facts);
}

static void add_next(struct text *out, const struct verdict *verdict, const struct summary_facts *facts,
		     const struct verdict_cure *cure)
{
	const char *verb = "report --by stack";
	if (!cure)
		verb = "oom";
	else if (verdict->cause == VERDICT_FRAGMENTATION && (cure->count || !cure->was_replayed))
		verb = "whatif";
	summary_add_next(out, verb, facts);
}

void oom_print(struct text *out, const struct model *model, const struct defs *defs,
	       const struct summary_facts *facts, size_t index, const struct verdict_cure *cure)
{
	const struct model_oom *oom = model_oom(model, index);
	struct verdict_words words = {.defs = defs, .facts = facts, .cure = cure};
	struct verdict verdict;
	model_verdict(model, index, &verdict);
	verdict_heed_cure(&verdict, cure);
	add_title(out, model, defs, index, facts->ascii);
	verdict_print(out, &verdict, &words);
	text_add_char(out, '\n');
	add_figures(out, oom);
	oom_print_trend(out, model, index, &verdict);
	text_add_char(out, '\n');
	oom_print_live(out, model, defs, facts, index);
	text_add_char(out, '\n');
	oom_print_holes(out, model, defs, index, &verdict, facts->ascii);
	summary_add_gaps(out, model, defs, facts);
	add_snapshot(out, facts);
	summary_add_trace(out, facts);
	add_next(out, &verdict, facts, cure);
}
