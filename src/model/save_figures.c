/* Saves and loads the figures of devices: sums, compositions with their peaks, what was frozen, and the
 * failures that are or may become OOMs. The index by stack of a composition is made anew. */
#include <errno.h>

#include "model/save_private.h"

static const struct field meter_fields[] = {
	FIELD(struct meter, live_bytes), FIELD(struct meter, peak_bytes), FIELD(struct meter, total_bytes),
	FIELD(struct meter, allocations), FIELD(struct meter, frees), FIELD_END,
};

static const struct field peak_fields[] = {
	FIELD(struct model_peak, time_ns),
	FIELD(struct model_peak, sequence),
	FIELD(struct model_peak, allocated_bytes),
	FIELD(struct model_peak, reserved_bytes),
	FIELD(struct model_peak, pytorch_reserved_bytes),
	FIELD(struct model_peak, pytorch_allocated_bytes),
	FIELD(struct model_peak, releasable_bytes),
	FIELD(struct model_peak, internal_bytes),
	FIELD(struct model_peak, unasked_bytes),
	STACK_OF(struct model_peak, stack),
	FIELD_BELOW(struct model_peak, thread, ARCHIVE_KNOWN(BOUND_THREADS)),
	FIELD(struct model_peak, step),
	FIELD_BELOW(struct model_peak, phase, MODEL_PHASE_COUNT),
	FIELD_BOOL(struct model_peak, is_phase_known),
	FIELD_END,
};

static const struct field share_fields[] = {
	FIELD(struct share, bytes),
	FIELD(struct share, count),
	FIELD(struct share, largest_bytes),
	FIELD(struct share, peak_bytes),
	FIELD(struct share, peak_count),
	FIELD(struct share, epoch),
	STACK_OF(struct share, stack),
	FIELD_BELOW(struct share, label, LABEL_COUNT),
	FIELD_END,
};

static const struct field composition_fields[] = {
	FIELD(struct composition, epoch),
	FIELD_ROW(struct composition, label_bytes),
	FIELD_END,
};

static const struct field snapshot_row_fields[] = {
	FIELD(struct snapshot_row, bytes), FIELD(struct snapshot_row, count), FIELD_END,
};

static const struct field pool_reads_fields[] = {
	FIELD_BOOL(struct pool_reads, has_used),
	FIELD_BOOL(struct pool_reads, has_used_high),
	FIELD_BOOL(struct pool_reads, has_reserved),
	FIELD_BOOL(struct pool_reads, has_reserved_high),
	FIELD(struct pool_reads, used_bytes),
	FIELD(struct pool_reads, used_high_bytes),
	FIELD(struct pool_reads, reserved_bytes),
	FIELD(struct pool_reads, reserved_high_bytes),
	FIELD_END,
};

static const struct field owner_fields[] = {
	FIELD(struct owner_bytes, live_bytes),
	FIELD(struct owner_bytes, peak_bytes),
	FIELD(struct owner_bytes, frozen_bytes),
	FIELD(struct owner_bytes, raised_by),
	FIELD(struct owner_bytes, before_bytes),
	FIELD(struct owner_bytes, at_peak[0].bytes),
	FIELD(struct owner_bytes, at_peak[0].epoch),
	FIELD(struct owner_bytes, at_peak[1].bytes),
	FIELD(struct owner_bytes, at_peak[1].epoch),
	FIELD_END,
};

static const struct field spread_fields[] = {
	FIELD(struct spread, releasable_bytes), FIELD(struct spread, internal_bytes),
	FIELD(struct spread, unasked_bytes), FIELD_END,
};

static const struct field device_fields[] = {
	FIELD_BOOL(struct device, has_blocks),
	FIELD_BOOL(struct device, has_async),
	FIELD_BOOL(struct device, free_known),
	FIELD_BOOL(struct device, is_unwinding),
	FIELD_BOOL(struct device, has_phases),
	FIELD_BELOW(struct device, phase, MODEL_PHASE_COUNT),
	FIELD(struct device, step),
	FIELD(struct device, retries),
	FIELD(struct device, waits),
	FIELD(struct device, ooms),
	FIELD(struct device, total_bytes),
	FIELD(struct device, free_bytes),
	FIELD(struct device, fullest.time_ns),
	FIELD(struct device, fullest.sequence),
	FIELD(struct device, fullest.reserved_bytes),
	FIELD(struct device, fullest.allocated_bytes),
	FIELD(struct device, fullest.releasable_bytes),
	FIELD_END,
};

static const struct field stage_end_fields[] = {
	FIELD(struct stage_end, growth_bytes),
	FIELD(struct stage_end, low_bytes),
	FIELD(struct stage_end, periods),
	FIELD_BOOL(struct stage_end, has_ended),
	FIELD_BOOL(struct stage_end, came_again),
	FIELD_END,
};

static const struct field casts_fields[] = {
	FIELD(struct casts, bytes),
	FIELD(struct casts, count),
	FIELD(struct casts, copy_bytes),
	FIELD(struct casts, event_count),
	FIELD(struct casts, last_end),
	STACK_OF(struct casts, stack),
	FIELD(struct casts, most.bytes),
	FIELD(struct casts, most.count),
	FIELD(struct casts, most.left_bytes),
	STACK_OF(struct casts, most.stack),
	FIELD_END,
};

static const struct field bursts_fields[] = {
	FIELD(struct bursts, number), FIELD(struct bursts, event_count), FIELD(struct bursts, site),
	FIELD_BELOW(struct bursts, count, BURST_PLACES + 1), FIELD_END,
};

static const struct field burst_place_fields[] = {
	FIELD(struct burst_place, burst),
	FIELD(struct burst_place, anywhere),
	FIELD(struct burst_place, handed),
	FIELD(struct burst_place, birth),
	FIELD(struct burst_place, first_site),
	FIELD(struct burst_place, blocks),
	FIELD_END,
};

static const struct field oom_fields[] = {
	FIELD_BELOW(struct model_oom, device, 256),
	FIELD_BOOL(struct model_oom, by_pytorch),
	FIELD(struct model_oom, time_ns),
	FIELD(struct model_oom, sequence),
	FIELD(struct model_oom, requested_bytes),
	FIELD(struct model_oom, driver_bytes),
	FIELD(struct model_oom, free_bytes),
	FIELD(struct model_oom, total_bytes),
	FIELD(struct model_oom, allocated_bytes),
	FIELD(struct model_oom, pytorch_allocated_bytes),
	FIELD(struct model_oom, reserved_bytes),
	FIELD(struct model_oom, pytorch_reserved_bytes),
	FIELD(struct model_oom, flushed_bytes),
	FIELD_BOOL(struct model_oom, untracked_known),
	FIELD(struct model_oom, untracked_bytes),
	FIELD(struct model_oom, releasable_bytes),
	FIELD(struct model_oom, retries),
	STACK_OF(struct model_oom, stack),
	FIELD_BELOW(struct model_oom, thread, ARCHIVE_KNOWN(BOUND_THREADS)),
	FIELD_END,
};

static const struct field suspect_fields[] = {
	FIELD(struct suspect, deadline),
	FIELD_BOOL(struct suspect, is_async),
	FIELD_BELOW(struct suspect, outside.owner, ARCHIVE_WITHIN(BOUND_OWNERS)),
	STACK_OF(struct suspect, outside.stack),
	FIELD(struct suspect, outside.bytes),
	FIELD_END,
};

static const struct field window_fields[] = {
	FIELD(struct trend_window, begin), FIELD(struct trend_window, least_bytes),
	FIELD(struct trend_window, allocations), FIELD(struct trend_window, frees), FIELD_END,
};

static const struct field series_fields[] = {
	FIELD_BELOW(struct trend_series, count, TREND_WINDOWS), FIELD(struct trend_series, stride),
	FIELD(struct trend_series, periods), FIELD(struct trend_series, total_periods), FIELD_END,
};

static const struct field sums_fields[] = {
	FIELD(struct timeline_sums, allocated_bytes), FIELD(struct timeline_sums, reserved_bytes), FIELD_END,
};

static const struct field timeline_fields[] = {
	FIELD_BELOW(struct timeline, count, TIMELINE_BUCKETS + 1),
	FIELD_BELOW(struct timeline, doublings, TIMELINE_DOUBLINGS_MAX + 1), FIELD_END,
};

static const struct field work_fields[] = {
	FIELD(struct work, steps), FIELD(struct work, backwards), FIELD(struct work, call_begin),
	FIELD(struct work, casts_end), FIELD(struct work, backward_end), FIELD(struct work, step_most_bytes),
	FIELD(struct work, passes), FIELD(struct work, passes_least),
	FIELD_BOOL(struct work, has_trained), FIELD_BOOL(struct work, is_without_grad), FIELD_END,
};

SAVED_SIZE(meter, 40);
SAVED_SIZE(model_peak, 96);
SAVED_SIZE(share, 64);
SAVED_SIZE(composition, 512);
SAVED_SIZE(snapshot, 48);
SAVED_SIZE(snapshot_row, 16);
SAVED_SIZE(pool_reads, 40);
SAVED_SIZE(owner_bytes, 72);
SAVED_SIZE(spread, 24);
SAVED_SIZE(device_figures, 192);
SAVED_SIZE(device, 11912);
SAVED_SIZE(stage_end, 40);
SAVED_SIZE(casts, 80);
SAVED_SIZE(bursts, 1304);
SAVED_SIZE(burst_place, 40);
SAVED_SIZE(model_oom, 136);
SAVED_SIZE(suspect, 296);
SAVED_SIZE(trend_window, 32);
SAVED_SIZE(trend_series, 1592);
SAVED_SIZE(trend, 3192);
SAVED_SIZE(work, 64);
SAVED_SIZE(timeline_sums, 16);
SAVED_SIZE(timeline, 4128);

/* ---------- compositions ---------- */

static void save_composition(struct model *m, struct archive *a, struct composition *c)
{
	archive_fields(a, &c->meter, meter_fields);
	archive_fields(a, &c->peak, peak_fields);
	archive_fields(a, &c->previous_peak, peak_fields);
	archive_fields(a, c, composition_fields);
	for (uint32_t i = 0; save_has_item(a, i < c->share_count); i++) {
		struct share share = {0};
		if (!a->is_loading)
			share = c->shares[i];
		archive_fields(a, &share, share_fields);
		if (a->is_loading && !a->error && composition_restore(m, c, &share))
			archive_fail(a, -ENOMEM);
	}
}

/* Of a composition that is known. An empty one has no rows and is no snapshot. */
static void save_snapshot_rows(struct model *m, struct archive *a, const struct composition *c,
			       struct snapshot *snapshot)
{
	struct snapshot fresh = {.of = c};
	archive_number(a, a->is_loading ? &fresh.sequence : &snapshot->sequence);
	if (a->is_loading)
		snapshot_restore(m, snapshot, &fresh);
	for (uint32_t i = 0; save_has_item(a, !a->is_loading && i < snapshot->count); i++) {
		struct snapshot_row row = {0};
		if (!a->is_loading)
			row = snapshot->rows[i];
		archive_fields(a, &row, snapshot_row_fields);
		struct snapshot_row *place = a->is_loading ? snapshot_row(m, snapshot, i) : NULL;
		if (place)
			*place = row;
		else if (a->is_loading)
			archive_fail(a, -ENOMEM);
	}
}

/* `d` NULL: of page-locked host memory. */
static void save_snapshot(struct model *m, struct archive *a, struct device *d, struct snapshot *snapshot)
{
	bool is_allocated = !a->is_loading && d && snapshot->of != &d->whole;
	if (!save_has_item(a, !a->is_loading && snapshot->rows))
		return;
	archive_bool(a, &is_allocated);
	const struct composition *of_device = d && is_allocated ? &d->allocated : d ? &d->whole : &m->pinned;
	save_snapshot_rows(m, a, of_device, snapshot);
}

/* ---------- trends ---------- */

static void save_series(struct archive *a, struct trend_series *series)
{
	archive_fields(a, series, series_fields);
	archive_fields(a, &series->open, window_fields);
	for (uint32_t i = 0; i < series->count; i++)
		archive_fields(a, &series->windows[i], window_fields);
}

static void save_trend(struct archive *a, struct trend *trend)
{
	save_series(a, &trend->steps);
	save_series(a, &trend->events);
	archive_number(a, &trend->event_count);
}

/* As it was at a moment; NULL: there is none. */
static void save_trend_then(struct model *m, struct archive *a, struct trend **trend)
{
	if (!save_has_item(a, *trend != NULL))
		return;
	if (a->is_loading)
		*trend = save_new(m, a, sizeof **trend);
	if (*trend)
		save_trend(a, *trend);
}

static void save_timeline(struct archive *a, struct timeline *timeline)
{
	archive_fields(a, timeline, timeline_fields);
	archive_fields(a, &timeline->now, sums_fields);
	for (uint32_t i = 0; i < timeline->count; i++)
		archive_fields(a, &timeline->highest[i], sums_fields);
}

/* ---------- failures ---------- */

void save_suspect(struct model *m, struct archive *a, struct suspect **suspect)
{
	if (!save_has_item(a, *suspect != NULL))
		return;
	struct suspect *s = a->is_loading ? save_new(m, a, sizeof *s) : *suspect;
	if (!s)
		return;
	archive_fields(a, &s->oom, oom_fields);
	archive_fields(a, s, suspect_fields);
	struct device *d = a->error ? NULL : device_of(m, (uint8_t)s->oom.device);
	if (!d && (a->error || s->oom.device != MEMTRACE_DEVICE_HOST)) {
		archive_fail(a, -EINVAL);
		return;
	}
	save_snapshot(m, a, d, &s->stacks);
	save_map(a, &s->map);
	save_trend_then(m, a, &s->trend);
	archive_fields(a, &s->work, work_fields);
	*suspect = s;
}

/* ---------- devices ---------- */

static void save_device_figures(struct archive *a, struct device_figures *figures)
{
	archive_fields(a, &figures->reserved, meter_fields);
	archive_fields(a, &figures->pytorch_allocated, meter_fields);
	archive_fields(a, &figures->pytorch_reserved, meter_fields);
	archive_fields(a, &figures->reads, pool_reads_fields);
	archive_number(a, &figures->segments);
	archive_fields(a, &figures->spread, spread_fields);
}

static void save_owner_bytes(struct model *m, struct archive *a, struct device *d)
{
	uint64_t count = d->owner_capacity < m->owner_count ? d->owner_capacity : m->owner_count;
	archive_number_below(a, &count, (uint64_t)m->owner_count + 1);
	if (a->is_loading && count &&
	    model_grow(m, &d->owners, &d->owner_capacity, (uint32_t)count - 1, sizeof *d->owners)) {
		archive_fail(a, -ENOMEM);
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		archive_fields(a, &d->owners[i], owner_fields);
}

static void save_device(struct model *m, struct archive *a, struct device *d)
{
	archive_fields(a, d, device_fields);
	save_composition(m, a, &d->whole);
	save_composition(m, a, &d->allocated);
	save_device_figures(a, &d->now);
	save_device_figures(a, &d->frozen);
	archive_fields(a, &d->frozen_allocated, meter_fields);
	save_snapshot(m, a, d, &d->frozen_stacks);
	save_owner_bytes(m, a, d);
	save_untracked(m, a, &d->untracked);
	struct segment_map *now = NULL; /* made when it is asked for */
	save_map(a, m->is_frozen ? &d->frozen_map : &now);
	save_let_go(m, a, &d->let_go);
	save_suspect(m, a, &d->stage_end.moment);
	archive_fields(a, &d->stage_end, stage_end_fields);
	save_trend(a, &d->trend);
	save_trend_then(m, a, &d->frozen_trend);
	archive_fields(a, &d->frozen_work, work_fields);
	archive_fields(a, &d->casts, casts_fields);
	archive_fields(a, &d->bursts, bursts_fields);
	for (uint32_t i = 0; !a->error && i < d->bursts.count; i++)
		archive_fields(a, &d->bursts.places[i], burst_place_fields);
	save_timeline(a, &d->timeline);
}

void save_devices(struct model *m, struct archive *a)
{
	save_composition(m, a, &m->pinned);
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
		if (!save_has_item(a, m->devices[slot] != NULL))
			continue;
		struct device *d = device_of(m, slot_ordinal(slot));
		if (d)
			save_device(m, a, d);
		else
			archive_fail(a, -ENOMEM);
	}
}
