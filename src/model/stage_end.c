/* What had grown from step to step, and was let go while the program went on: a function that trained has returned, and
 * evaluation, or another training, follows. Owns which such moment is kept, one a device: that before which most had
 * grown, if it was much. What is let go again and again, as the results of an epoch are, is known by coming again.
 * Takes O(1) an event, but where live memory falls below the least of the last steps. */
#include "model/model_private.h"

#define LEAST_BYTES (16ull << 20)
#define STEPS_LEAST 4 /* between two of which the second is no part of the first */

static uint64_t live_of(const struct device *d)
{
	return d->now.pytorch_allocated.live_bytes;
}

static void note_again(struct device *d)
{
	struct stage_end *kept = &d->stage_end;
	if (kept->moment && d->let_go.bytes >= kept->growth_bytes / 4 * 3 &&
	    live_of(d) <= kept->low_bytes + kept->growth_bytes / 4 &&
	    d->trend.steps.total_periods >= kept->periods + STEPS_LEAST)
		kept->came_again = true;
}

/* A fair part of what the run ever had; more by a quarter than the one before, so that few are kept. */
static bool is_worth(const struct device *d, uint64_t growth_bytes, uint64_t least_bytes)
{
	return growth_bytes >= LEAST_BYTES && growth_bytes >= d->now.pytorch_allocated.peak_bytes / 8 &&
	       live_of(d) + growth_bytes / 2 <= least_bytes && growth_bytes / 5 >= d->stage_end.growth_bytes / 4;
}

static bool are_parameters_gone(const struct model *m, const struct device *d)
{
	struct model_categories gone = {.bytes = {0}}, left;
	for (uint32_t i = 0; i < d->let_go.count; i++)
		categories_add(m, &gone, d->let_go.blocks[i].label, d->let_go.blocks[i].bytes);
	model_categories_now(m, slot_ordinal(d->slot), &left);
	return gone.bytes[MODEL_PARAMETERS] > left.bytes[MODEL_PARAMETERS];
}

static struct suspect *moment_create(struct model *m, const struct device *d)
{
	struct suspect *moment = model_new(m, sizeof *moment);
	if (!moment)
		return NULL;
	moment->oom = (struct model_oom){
		.device = slot_ordinal(d->slot),
		.sequence = d->let_go.since,
		.free_bytes = d->free_known ? d->free_bytes : UINT64_MAX,
		.total_bytes = device_capacity_bytes(m, d),
		.pytorch_allocated_bytes = live_of(d) + d->let_go.bytes,
		.reserved_bytes = d->now.reserved.live_bytes,
		.pytorch_reserved_bytes = d->now.pytorch_reserved.live_bytes,
		.retries = d->retries,
	};
	attribution_describe_work(m, d->slot, &moment->work);
	moment->map = segment_map_of_blocks(m, d);
	moment->trend = model_new(m, sizeof *moment->trend);
	if (moment->trend)
		*moment->trend = d->trend;
	return moment;
}

static void keep(struct model *m, struct device *d, uint64_t growth_bytes)
{
	suspect_release(m, d->stage_end.moment);
	d->stage_end = (struct stage_end){
		.moment = moment_create(m, d),
		.growth_bytes = growth_bytes,
		.low_bytes = live_of(d),
		.periods = d->trend.steps.total_periods,
		.has_ended = are_parameters_gone(m, d),
	};
}

void stage_end_look(struct model *m, struct device *d)
{
	const struct trend_series *steps = &d->trend.steps;
	if (m->is_frozen || !d->let_go.count || d->is_unwinding || !trend_is_long(steps))
		return;
	note_again(d);
	uint64_t least_bytes = steps->windows[steps->count - 1].least_bytes;
	bool has_fallen = live_of(d) + LEAST_BYTES / 2 <= least_bytes && live_of(d) + d->let_go.bytes >= least_bytes;
	if (!has_fallen)
		return;
	struct trend_growth growth = trend_growth_of(steps);
	if (growth.is_growing && !trend_fell_before(&growth) && is_worth(d, growth.bytes, least_bytes))
		keep(m, d, growth.bytes);
}
