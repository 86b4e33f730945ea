/* `memtrace report --json`: the fragmentation of a device, at its peak, at its fullest and at the end. Owns
 * the objects of "fragmentation". Must never write a figure that was not known at that moment. */
#include "base/arena.h"
#include "model/segments.h"
#include "report/devices.h"
#include "report/json.h"

#define PINNERS_SHOWN 10

static void add_ratio(struct json *json, const char *key, bool is_known, double value)
{
	json_key(json, key);
	if (is_known)
		text_add_decimal(json->out, value, 6);
	else
		text_add(json->out, "null");
}

/* 1 - a / r; null where they make no sense together. */
static void add_fragmentation_index(struct json *json, const char *key, uint64_t allocated, uint64_t reserved)
{
	bool is_known = reserved && allocated <= reserved;
	add_ratio(json, key, is_known, is_known ? 1 - (double)allocated / (double)reserved : 0);
}

/* ---------- a map ---------- */

static void add_metrics(struct json *json, const struct segment_metrics *metrics)
{
	json_unsigned(json, "reserved_bytes", metrics->reserved_bytes);
	json_unsigned(json, "allocated_bytes", metrics->allocated_bytes);
	json_unsigned(json, "external_bytes", metrics->external_bytes);
	json_unsigned(json, "releasable_bytes", metrics->releasable_bytes);
	json_unsigned(json, "pinned_bytes", metrics->pinned_bytes);
	json_unsigned(json, "internal_bytes", metrics->internal_bytes);
	json_unsigned(json, "internal_unknown_of_bytes", metrics->unasked_bytes);
	json_unsigned(json, "sole_pinned_bytes", metrics->sole_pinned_bytes);
	json_unsigned(json, "largest_hole_bytes", metrics->largest_hole_bytes);
	add_ratio(json, "largest_hole_index", true, metrics->largest_hole_index);
	json_unsigned(json, "segments", metrics->segments);
}

static void add_classes(struct json *json, const struct segment_map *map)
{
	struct segment_class classes[SEGMENT_CLASSES_MAX];
	size_t count = segment_classes_of(map, classes, SEGMENT_CLASSES_MAX);
	json_open(json, "classes", '[');
	for (size_t i = 0; i < count; i++) {
		json_open(json, NULL, '{');
		json_unsigned(json, "stream_id", classes[i].stream);
		json_string(json, "size", classes[i].is_small ? "small" : "large");
		json_bool(json, "captured", classes[i].is_captured);
		add_metrics(json, &classes[i].metrics);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void add_pinner(struct json *json, const struct defs *defs, const struct segment_pinner *pinner)
{
	json_open(json, NULL, '{');
	json_unsigned(json, "hostage_bytes", pinner->hostage_bytes);
	json_unsigned(json, "live_bytes", pinner->live_bytes);
	json_unsigned(json, "segments", pinner->segments);
	json_unsigned(json, "sole_segments", pinner->sole_segments);
	json_unsigned(json, "sole_bytes", pinner->sole_bytes);
	json_unsigned(json, "oldest_sequence", pinner->oldest_born);
	json_unsigned(json, "newest_sequence", pinner->newest_born);
	json_add_stack(json, defs, pinner->stack);
	json_close(json, '}');
}

static void add_pinners(struct json *json, const struct segment_map *map, const struct defs *defs)
{
	struct segment_pinner pinners[PINNERS_SHOWN];
	struct arena *arena = arena_create();
	size_t count = arena ? segment_pinners_of(map, arena, pinners, PINNERS_SHOWN) : 0;
	json_open(json, "pinners", '[');
	for (size_t i = 0; i < count; i++)
		add_pinner(json, defs, &pinners[i]);
	json_close(json, ']');
	if (arena)
		arena_release(arena);
}

void json_add_segment_map(struct json *json, const char *key, const struct segment_map *map, const struct defs *defs,
			  uint64_t wanted_bytes)
{
	if (!map) {
		json_null(json, key);
		return;
	}
	struct segment_metrics metrics = segment_metrics_of(map);
	json_open(json, key, '{');
	add_metrics(json, &metrics);
	if (wanted_bytes)
		add_ratio(json, "unusable_index", true, segment_unusable_index(map, wanted_bytes));
	add_classes(json, map);
	add_pinners(json, map, defs);
	json_close(json, '}');
}

/* ---------- the device ---------- */

static void add_peak(struct json *json, const struct model_device *device)
{
	const struct model_peak *peak = &device->peak;
	uint64_t external = peak->pytorch_reserved_bytes - peak->pytorch_allocated_bytes;
	bool is_known = peak->pytorch_reserved_bytes >= peak->pytorch_allocated_bytes &&
			external >= peak->releasable_bytes;
	json_known(json, "external_at_peak_bytes", is_known, external);
	json_known(json, "releasable_at_peak_bytes", is_known, peak->releasable_bytes);
	json_known(json, "pinned_at_peak_bytes", is_known, external - peak->releasable_bytes);
	json_unsigned(json, "internal_at_peak_bytes", peak->internal_bytes);
	json_unsigned(json, "internal_unknown_of_at_peak_bytes", peak->unasked_bytes);
}

static void add_fullest(struct json *json, const struct model_device *device)
{
	const struct model_fullest *fullest = &device->fullest;
	json_open(json, "at_peak_reserved", '{');
	json_unsigned(json, "time_ns", fullest->time_ns);
	json_unsigned(json, "reserved_bytes", fullest->reserved_bytes);
	json_unsigned(json, "allocated_bytes", fullest->allocated_bytes);
	json_unsigned(json, "releasable_bytes", fullest->releasable_bytes);
	add_fragmentation_index(json, "of_instant", fullest->allocated_bytes, fullest->reserved_bytes);
	json_close(json, '}');
}

void json_add_fragmentation(struct json *json, const struct model *model, const struct defs *defs,
			    const struct model_device *device)
{
	if (!devices_knows_fragmentation(device)) {
		json_null(json, "fragmentation");
		return;
	}
	json_open(json, "fragmentation", '{');
	add_peak(json, device);
	add_fragmentation_index(json, "of_peaks", device->pytorch_allocated.peak_bytes,
				device->pytorch_reserved.peak_bytes);
	add_fullest(json, device);
	json_add_segment_map(json, "at_end", model_segments_now(model, device->ordinal), defs, 0);
	json_close(json, '}');
}
