/* The comparison of the hooks with CUPTI, in words and as JSON. Must never call a check clean that
 * did not come to its end. */
#include "report/witness.h"

#include "trace/event.h"

static void add_missed_line(struct text *out, const struct model_missed *row)
{
	text_printf(out, "  CUPTI saw, but not memtrace: %s memory, %'llu allocations",
		    event_space_name(row->space), (unsigned long long)row->allocations);
	if (row->allocations)
		text_printf(out, " of %'llu bytes", (unsigned long long)row->bytes);
	text_printf(out, ", %'llu frees", (unsigned long long)row->frees);
	text_printf(out, "; 0x%llx\n", (unsigned long long)row->addresses[0]);
}

void witness_add_gaps(struct text *out, const struct model *model)
{
	struct model_missed rows[MEMTRACE_SPACE_COUNT];
	size_t count = model_missed(model, rows, MEMTRACE_SPACE_COUNT);
	struct model_witness witness = model_witness(model);
	for (size_t i = 0; i < count; i++)
		add_missed_line(out, &rows[i]);
	if (witness.is_over && witness.unconfirmed)
		text_printf(out, "  allocations that CUPTI did not see: %'llu\n",
			    (unsigned long long)witness.unconfirmed);
	if (witness.is_there && !witness.is_over)
		text_add(out,
			 "  CUPTI was not asked for its last records: the check is not complete\n");
}

void witness_add_line(struct text *out, const struct model *model)
{
	struct model_missed row;
	struct model_witness witness = model_witness(model);
	if (!witness.is_over || witness.unconfirmed || model_missed(model, &row, 1))
		return;
	text_printf(
		out,
		"Checked against CUPTI: all of its %'llu allocations and %'llu frees were seen\n",
		(unsigned long long)witness.allocations, (unsigned long long)witness.frees);
}

static void add_missed_json(struct json *json, const struct model_missed *row)
{
	json_open(json, NULL, '{');
	json_string(json, "space", event_space_name(row->space));
	json_unsigned(json, "allocations", row->allocations);
	json_unsigned(json, "frees", row->frees);
	json_unsigned(json, "bytes", row->bytes);
	json_open(json, "addresses", '[');
	for (unsigned i = 0; i < MODEL_MISSED_ADDRESSES && row->addresses[i]; i++)
		json_unsigned(json, NULL, row->addresses[i]);
	json_close(json, ']');
	json_close(json, '}');
}

void witness_add_json(struct json *json, const struct model *model)
{
	struct model_missed rows[MEMTRACE_SPACE_COUNT];
	struct model_witness witness = model_witness(model);
	if (!witness.is_there)
		return;
	size_t count = model_missed(model, rows, MEMTRACE_SPACE_COUNT);
	json_open(json, "check", '{');
	json_string(json, "by", "cupti");
	json_bool(json, "complete", witness.is_over);
	json_unsigned(json, "allocations", witness.allocations);
	json_unsigned(json, "frees", witness.frees);
	json_unsigned(json, "bytes", witness.bytes);
	json_unsigned(json, "unconfirmed", witness.unconfirmed);
	json_open(json, "missed", '[');
	for (size_t i = 0; i < count; i++)
		add_missed_json(json, &rows[i]);
	json_close(json, ']');
	json_close(json, '}');
}
