/* `memtrace report --json`: what is said of an OOM, and of a run without one. Owns the objects of "ooms" and
 * "findings". Must never give a verdict or an advice that the model did not: "unknown", null and empty lists
 * stand for them. */
#include "model/segments.h"
#include "report/json.h"
#include "report/oom_tables.h"
#include "report/sites.h"
#include "report/untracked.h"
#include "report/verdict.h"

/* a - b where both are known and make sense together, else null. */
static void add_difference(struct json *json, const char *key, bool is_known, uint64_t a,
			   uint64_t b)
{
	json_known(json, key, is_known && a >= b, a - b);
}

static void add_evidence(struct json *json, const struct model_oom *oom)
{
	bool knows_free = oom->free_bytes != UINT64_MAX;
	uint64_t others = 0;
	json_open(json, "evidence", '{');
	json_bool(json, "by_pytorch", oom->by_pytorch);
	json_known(json, "driver_bytes", oom->driver_bytes, oom->driver_bytes);
	json_known(json, "total_bytes", oom->total_bytes, oom->total_bytes);
	json_unsigned(json, "pytorch_allocated_bytes", oom->pytorch_allocated_bytes);
	json_unsigned(json, "pytorch_reserved_bytes", oom->pytorch_reserved_bytes);
	add_difference(json, "idle_bytes", true, oom->pytorch_reserved_bytes,
		       oom->pytorch_allocated_bytes);
	add_difference(json, "outside_bytes", true, oom->reserved_bytes,
		       oom->pytorch_reserved_bytes);
	json_unsigned(json, "flushed_bytes", oom->flushed_bytes);
	if (oom->untracked_known)
		json_unsigned(json, "untracked_bytes", oom->untracked_bytes);
	else
		add_difference(json, "untracked_bytes",
			       knows_free && oom->total_bytes &&
				       oom->free_bytes <= oom->total_bytes,
			       oom->total_bytes - oom->free_bytes, oom->reserved_bytes);
	json_known(json, "other_processes_bytes", untracked_others_at_oom(oom, &others),
		   others);
	json_unsigned(json, "retries", oom->retries);
	json_close(json, '}');
}

/* null: too few steps to tell. */
static void add_forecast(struct json *json, const struct model *model, size_t index)
{
	struct model_forecast forecast = model_forecast_at_oom(model, index);
	if (forecast.is_known)
		json_bool(json, "grows", forecast.grows);
	else
		json_null(json, "grows");
	json_known(json, "bytes_a_step", forecast.grows, forecast.each_bytes);
	json_known(json, "in_step", forecast.end_step, forecast.now_step);
	json_known(json, "runs_out_in_step", forecast.end_step, forecast.end_step);
}

/* Of steps: null where there were none. */
static void add_lows(struct json *json, const struct model *model, size_t index)
{
	uint64_t lows[OOM_LOWS_SHOWN], each;
	size_t count = model_lows_at_oom(model, index, lows, OOM_LOWS_SHOWN, &each);
	json_open(json, "least_live", '{');
	json_known(json, "steps_each", count, each);
	json_open(json, "bytes", '[');
	for (size_t i = 0; i < count; i++)
		json_unsigned(json, NULL, lows[i]);
	json_close(json, ']');
	add_forecast(json, model, index);
	json_close(json, '}');
}

static void add_oom(struct json *json, const struct model *model, const struct defs *defs,
		    size_t index, const struct verdict_cure *cure)
{
	const struct composition of = {COMPOSITION_OOM, (unsigned)index};
	const struct model_oom *oom = model_oom(model, index);
	struct verdict_words words = {.defs = defs, .cure = cure};
	struct model_categories categories;
	struct verdict verdict;
	model_categories_at_oom(model, index, &categories);
	json_open(json, NULL, '{');
	json_known(json, "device", oom->device < MEMTRACE_DEVICE_HOST, oom->device);
	json_string(json, "space", oom->device == MEMTRACE_DEVICE_HOST ? "pinned" : "device");
	json_unsigned(json, "time_ns", oom->time_ns);
	json_unsigned(json, "sequence", oom->sequence);
	json_unsigned(json, "requested_bytes", oom->requested_bytes);
	json_known(json, "free_bytes", oom->free_bytes != UINT64_MAX, oom->free_bytes);
	json_unsigned(json, "allocated_bytes", oom->allocated_bytes);
	json_unsigned(json, "reserved_bytes", oom->reserved_bytes);
	json_add_categories(json, "categories", categories.bytes);
	json_add_categories(json, "provisional", categories.provisional_bytes);
	model_verdict(model, index, &verdict);
	verdict_heed_cure(&verdict, cure);
	verdict_add_json(json, &verdict, &words);
	add_evidence(json, oom);
	add_lows(json, model, index);
	json_add_segment_map(json, "fragmentation", model_segments_at_oom(model, index), defs, oom->requested_bytes);
	json_open(json, "stack", '{');
	json_add_stack(json, defs, oom->stack);
	json_close(json, '}');
	json_add_composition(json, "stacks", model, defs, &of, oom->allocated_bytes);
	json_close(json, '}');
}

void json_add_ooms(struct json *json, const struct model *model, const struct defs *defs,
		   const struct verdict_cure *cures)
{
	json_open(json, "ooms", '[');
	for (size_t i = 0; i < model_oom_count(model); i++)
		add_oom(json, model, defs, i, cures ? &cures[i] : NULL);
	json_close(json, ']');
}

void json_add_findings(struct json *json, const struct model *model, const struct defs *defs)
{
	struct verdict found[FINDINGS_MAX];
	const struct verdict_words words = {.defs = defs, .is_finding = true};
	size_t count = model_findings(model, found, FINDINGS_MAX);
	json_open(json, "findings", '[');
	for (size_t i = 0; i < count; i++) {
		json_open(json, NULL, '{');
		json_known(json, "device", found[i].device != MEMTRACE_DEVICE_UNKNOWN, found[i].device);
		verdict_add_json(json, &found[i], &words);
		json_close(json, '}');
	}
	json_close(json, ']');
}
