/* `memtrace report --json`: what is said of a device. Owns the objects of "devices". Must never
 * write a figure that the model does not know: those keys are null. */
#include "report/devices.h"
#include "report/json.h"
#include "report/peak.h"
#include "report/sites.h"
#include "report/untracked.h"

#define STACKS_SHOWN 100

static void add_counter(struct json *json, const char *key, const struct model_counter *counter)
{
	json_open(json, key, '{');
	json_unsigned(json, "current_bytes", counter->current_bytes);
	json_unsigned(json, "peak_bytes", counter->peak_bytes);
	json_unsigned(json, "total_bytes", counter->total_bytes);
	json_unsigned(json, "allocations", counter->allocations);
	json_unsigned(json, "frees", counter->frees);
	json_unsigned(json, "at_exit_frees", counter->at_exit_frees);
	json_close(json, '}');
}

static void add_pytorch(struct json *json, const struct model_device *device)
{
	if (!devices_is_pytorch(device)) {
		json_null(json, "pytorch");
		return;
	}
	json_open(json, "pytorch", '{');
	add_counter(json, "allocated", &device->pytorch_allocated);
	if (device->pytorch_reserved_known)
		add_counter(json, "reserved", &device->pytorch_reserved);
	else
		json_null(json, "reserved");
	json_known(json, "segments", device->pytorch_reserved_known, device->pytorch_segments);
	json_close(json, '}');
}

static void add_owners(struct json *json, const struct model *model, unsigned ordinal)
{
	const struct model_owner *owner;
	json_open(json, "owners", '[');
	for (unsigned i = 0; (owner = model_owner(model, ordinal, i)); i++) {
		json_open(json, NULL, '{');
		json_string(json, "owner", owner->name);
		json_unsigned(json, "current_bytes", owner->current_bytes);
		json_unsigned(json, "peak_bytes", owner->peak_bytes);
		json_unsigned(json, "at_peak_bytes", owner->at_peak_bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* Pinned memory belongs to no device: with several of them it is only in the outer object. */
static void add_pinned(struct json *json, const struct model *model)
{
	const struct model_totals *totals = model_totals(model);
	if (model_device(model, 1)) {
		json_null(json, "host_pinned");
		return;
	}
	json_open(json, "host_pinned", '{');
	json_unsigned(json, "current_bytes", totals->pinned_current_bytes);
	json_unsigned(json, "peak_bytes", totals->pinned_peak_bytes);
	json_close(json, '}');
}

/* `unknown` comes last. */
void json_add_categories(struct json *json, const char *key, const uint64_t bytes[MODEL_CATEGORY_COUNT])
{
	json_open(json, key, '{');
	for (unsigned i = 1; i <= MODEL_CATEGORY_COUNT; i++) {
		enum model_category category = i % MODEL_CATEGORY_COUNT;
		json_unsigned(json, model_category_name(category), bytes[category]);
	}
	json_close(json, '}');
}

/* In steps, of the blocks of an OOM's stack: see ages.h. */
static void add_age(struct json *json, const char *key, const struct ages *ages, uint64_t born)
{
	if (ages)
		json_known(json, key, born && ages->steps, born ? age_of(ages, born) : 0);
}

static void add_share(struct json *json, const struct defs *defs, const struct model_share *share,
		      const struct ages *ages, struct birth birth)
{
	json_open(json, NULL, '{');
	json_unsigned(json, "bytes", share->bytes);
	json_unsigned(json, "count", share->count);
	json_string(json, "category", model_category_name(share->category));
	json_string(json, "detail", model_detail_name(share->detail));
	json_bool(json, "provisional", share->is_provisional);
	add_age(json, "newest_age_steps", ages, birth.newest);
	add_age(json, "oldest_age_steps", ages, birth.oldest);
	json_known(json, "stack", share->stack, share->stack);
	json_add_stack(json, defs, share->stack);
	json_close(json, '}');
}

void json_add_composition(struct json *json, const char *key, const struct model *model,
			  const struct defs *defs, const struct composition *of, uint64_t all_bytes)
{
	struct arena *arena = arena_create();
	size_t count = 0;
	const struct model_share *rows = arena ? composition_shares(arena, model, *of, &count) : NULL;
	size_t shown = count < STACKS_SHOWN ? count : STACKS_SHOWN;
	bool is_oom = arena && of->kind == COMPOSITION_OOM;
	struct births births = is_oom ? births_at_oom(model, of->index, arena) : (struct births){0};
	struct ages ages = is_oom ? ages_at_oom(model, of->index) : (struct ages){0};
	json_open(json, key, '[');
	for (size_t i = 0; rows && i < shown; i++) {
		add_share(json, defs, &rows[i], is_oom ? &ages : NULL, births_of_stack(&births, rows[i].stack));
		all_bytes -= rows[i].bytes;
	}
	json_close(json, ']');
	json_open(json, "stacks_omitted", '{');
	json_known(json, "count", rows, count - shown);
	json_unsigned(json, "bytes", all_bytes);
	json_close(json, '}');
	if (arena)
		arena_release(arena);
}

static void add_peak(struct json *json, const struct model *model, const struct defs *defs,
		     const struct model_device *device)
{
	const struct composition of = {COMPOSITION_PEAK, device->ordinal};
	const struct model_peak *peak = &device->peak;
	struct model_categories categories;
	model_categories_at_peak(model, device->ordinal, &categories);
	json_open(json, "peak", '{');
	json_unsigned(json, "time_ns", peak->time_ns);
	json_unsigned(json, "sequence", peak->sequence);
	json_known(json, "step", peak->step, peak->step);
	json_string(json, "phase", peak->is_phase_known ? model_phase_name(peak->phase) : NULL);
	json_unsigned(json, "allocated_bytes", peak->allocated_bytes);
	json_known(json, "reserved_bytes",
		   !devices_is_pytorch(device) || device->pytorch_reserved_known,
		   peak->reserved_bytes);
	json_add_categories(json, "categories", categories.bytes);
	json_add_categories(json, "provisional", categories.provisional_bytes);
	json_add_composition(json, "stacks", model, defs, &of, peak->allocated_bytes);
	json_close(json, '}');
}

/* What the formula of textbooks gives with this run's figures. */
static void add_formula(struct json *json, const struct model *model, const struct model_device *device)
{
	struct peak_formula formula;
	if (!peak_formula_find(model, device->ordinal, &formula)) {
		json_null(json, "expected");
		return;
	}
	json_open(json, "expected", '{');
	json_unsigned(json, "parameters_bytes", formula.parameter_bytes);
	json_unsigned(json, "gradients_bytes", formula.gradient_bytes);
	json_unsigned(json, "optimizer_state_bytes", formula.state_bytes);
	json_unsigned(json, "activations_bytes", formula.activation_bytes);
	json_unsigned(json, "bytes", formula.expected_bytes);
	json_known(json, "bytes_a_parameter", formula.has_factor,
		   (uint64_t)(peak_bytes_a_parameter(&formula) + 0.5));
	json_bool(json, "width_is_certain", formula.is_width_sure);
	json_close(json, '}');
}

static void add_numbers(struct json *json, const char *key, const uint64_t *numbers, uint32_t count)
{
	json_open(json, key, '[');
	for (uint32_t i = 0; i < count; i++)
		json_unsigned(json, NULL, numbers[i]);
	json_close(json, ']');
}

static void add_timeline(struct json *json, const struct model *model, unsigned ordinal, bool knows_reserved)
{
	struct model_timeline timeline;
	if (!model_timeline(model, ordinal, &timeline)) {
		json_null(json, "timeline");
		return;
	}
	json_open(json, "timeline", '{');
	json_unsigned(json, "width_ns", timeline.width_ns);
	add_numbers(json, "highest_allocated_bytes", timeline.allocated_bytes, timeline.count);
	if (knows_reserved)
		add_numbers(json, "highest_reserved_bytes", timeline.reserved_bytes, timeline.count);
	else
		json_null(json, "highest_reserved_bytes");
	json_close(json, '}');
}

static void add_device(struct json *json, const struct model *model, const struct defs *defs,
		       const struct model_device *device)
{
	bool knows_reserved = !devices_is_pytorch(device) || device->pytorch_reserved_known;
	json_open(json, NULL, '{');
	json_known(json, "device", device->ordinal != MEMTRACE_DEVICE_UNKNOWN, device->ordinal);
	json_string(json, "name", devices_name(defs, device));
	json_known(json, "total_bytes", device->total_bytes, device->total_bytes);
	add_counter(json, "allocated", &device->allocated);
	if (knows_reserved)
		add_counter(json, "reserved", &device->reserved);
	else
		json_null(json, "reserved");
	add_pytorch(json, device);
	add_owners(json, model, device->ordinal);
	add_pinned(json, model);
	untracked_add_json(json, defs, device);
	json_known(json, "free_bytes_last", device->free_known, device->free_bytes_last);
	json_unsigned(json, "retries", device->retries);
	json_unsigned(json, "ooms", device->ooms);
	add_peak(json, model, defs, device);
	add_timeline(json, model, device->ordinal, knows_reserved);
	json_add_fragmentation(json, model, defs, device);
	add_formula(json, model, device);
	json_add_levers(json, model, defs, device);
	json_close(json, '}');
}

void json_add_devices(struct json *json, const struct model *model, const struct defs *defs)
{
	const struct model_device *device;
	json_open(json, "devices", '[');
	for (unsigned i = 0; (device = model_device(model, i)); i++)
		add_device(json, model, defs, device);
	json_close(json, ']');
}
