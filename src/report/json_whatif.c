/* `memtrace whatif --json`. Owns the keys. Figures are the model's own, unrounded: how far they can
 * be trusted stands in "identity" and "doubts". */
#include "report/json_text.h"
#include "report/whatif.h"

static void add_pair(struct json *json, const char *key, uint64_t model, uint64_t recorded)
{
	json_open(json, key, '[');
	json_unsigned(json, NULL, model);
	json_unsigned(json, NULL, recorded);
	json_close(json, ']');
}

static void add_identity(struct json *json, const struct whatif *whatif)
{
	const struct allocator_counters *model = &whatif->identity.counters;
	const struct sequence_counts *recorded = &whatif->sequence->counts;
	json_open(json, "identity", '{');
	add_pair(json, "peak_reserved", model->peak_reserved_bytes, recorded->peak_reserved_bytes);
	add_pair(json, "final_reserved", model->reserved_bytes, recorded->final_reserved_bytes);
	add_pair(json, "device_allocs", model->device_allocs, recorded->device_allocs);
	json_close(json, '}');
}

static void add_doubts(struct json *json, const struct whatif *whatif)
{
	const struct whatif_doubts *doubts = &whatif->doubts;
	json_open(json, "doubts", '{');
	json_bool(json, "private_pools", doubts->has_private_pools);
	json_bool(json, "adapts_to_free_memory", doubts->adapts);
	json_bool(json, "unknown_version", !whatif->version.major);
	json_bool(json, "unknown_settings", doubts->conf_unknown);
	json_bool(json, "partial", doubts->is_partial);
	json_unsigned(json, "contradictions", doubts->contradictions);
	json_unsigned(json, "ambiguous_blocks", doubts->ambiguous);
	json_close(json, '}');
}

/* null: no memory was given. */
static void add_outcome(struct json *json, const struct whatif_view *view, const struct whatif_setting *setting)
{
	static const char *const names[] = {
		[WHATIF_FITS] = "fits",
		[WHATIF_MAY_FIT] = "may_fit",
		[WHATIF_GETS_PAST] = "gets_past_oom",
		[WHATIF_MAY_GET_PAST] = "may_get_past_oom",
		[WHATIF_MAY_RUN_OUT] = "may_run_out",
		[WHATIF_RUNS_OUT] = "runs_out",
	};
	json_string(json, "outcome", view->memory_bytes ? names[whatif_outcome_of(view, setting)] : NULL);
}

static void add_setting(struct json *json, const struct whatif_view *view, const struct whatif_setting *setting)
{
	const struct allocator_counters *counters = &setting->result.counters;
	json_open(json, NULL, '{');
	json_key(json, "conf");
	text_add_json(json->out, setting->conf);
	json_bool(json, "empty_cache_each_step", setting->empties_each_step);
	json_bool(json, "recorded", setting->is_recorded);
	json_unsigned(json, "peak_reserved_bytes", counters->peak_reserved_bytes);
	json_unsigned(json, "final_reserved_bytes", counters->reserved_bytes);
	json_unsigned(json, "device_allocs", counters->device_allocs);
	json_unsigned(json, "needs_bytes", setting->need_bytes);
	json_unsigned(json, "retries", counters->retries);
	json_known(json, "oom_step", setting->result.ooms, setting->result.oom_step);
	add_outcome(json, view, setting);
	json_close(json, '}');
}

static const char *origin_of_steps(const struct sequence_counts *counts)
{
	if (counts->steps_are_marked)
		return "marks";
	return counts->steps_are_trained ? "optimizer" : "lows";
}

void whatif_print_json(struct text *out, const struct whatif_view *view)
{
	const struct whatif *whatif = view->whatif;
	struct json json = {.out = out};
	json_open(&json, NULL, '{');
	json_string(&json, "path", view->facts->trace_path);
	json_unsigned(&json, "device", view->device);
	json_string(&json, "recorded_conf", whatif->recorded_text);
	json_known(&json, "memory_bytes", view->memory_bytes, view->memory_bytes);
	json_known(&json, "other_bytes", whatif->other_bytes, whatif->other_bytes);
	const struct sequence_counts *counts = &whatif->sequence->counts;
	json_known(&json, "limit_least_bytes", counts->limit_below_bytes, counts->limit_least_bytes);
	json_known(&json, "limit_below_bytes", counts->limit_below_bytes, counts->limit_below_bytes);
	json_unsigned(&json, "steps", whatif->sequence->counts.steps);
	json_bool(&json, "steps_are_marked", whatif->sequence->counts.steps_are_marked);
	json_string(&json, "steps_from", origin_of_steps(&whatif->sequence->counts));
	add_identity(&json, whatif);
	add_doubts(&json, whatif);
	json_open(&json, "settings", '[');
	for (size_t i = 0; i < whatif->setting_count; i++)
		add_setting(&json, view, &whatif->settings[i]);
	json_close(&json, ']');
	json_close(&json, '}');
	text_add_char(out, '\n');
}
