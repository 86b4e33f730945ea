/* In which step memory runs out if the least live memory of a step grows on as it did before an OOM. Owns that
 * reckoning: what a step needs beyond its least is as in the last one that was completed. Pieces that no request fits
 * make it run out earlier. */
#include "base/bytes.h"
#include "model/model_private.h"

/* What PyTorch's blocks could have taken in all at that moment. */
static uint64_t room_of(const struct model_oom *oom)
{
	uint64_t reserved = oom->pytorch_reserved_bytes > oom->pytorch_allocated_bytes ? oom->pytorch_reserved_bytes :
											 oom->pytorch_allocated_bytes;
	return reserved + oom->free_bytes;
}

/* Whole steps that fit after the last one, whose least was `low` (of the first of the steps of its window). */
static uint64_t steps_left(const struct model_oom *oom, const struct step_record *last, uint64_t low,
			   const struct trend_growth *growth)
{
	uint64_t outside = bytes_less(oom->allocated_bytes, oom->pytorch_allocated_bytes);
	uint64_t peak = bytes_less(last->peak_bytes, outside);
	return bytes_less(room_of(oom), peak > low ? peak : low) / growth->each_bytes;
}

struct model_forecast model_forecast_at_oom(const struct model *m, size_t index)
{
	struct model_forecast forecast = {0};
	const struct suspect *suspect = index < m->oom_count ? m->ooms[index] : NULL;
	const struct trend_series *steps = suspect && suspect->trend ? &suspect->trend->steps : NULL;
	if (!steps || !trend_is_long(steps))
		return forecast;
	struct trend_growth growth = trend_growth_of(steps);
	forecast.is_known = true;
	if (!growth.is_growing || !growth.each_bytes)
		return forecast;
	const struct model_oom *oom = &suspect->oom;
	const struct step_record *last = last_step_before(m, oom->device, oom->sequence);
	forecast.grows = true;
	forecast.each_bytes = growth.each_bytes;
	forecast.over_steps = growth.periods;
	if (last && oom->free_bytes != UINT64_MAX) {
		forecast.now_step = last->step + 1;
		forecast.end_step = last->step + 1 + steps_left(oom, last, steps->windows[steps->count - 1].least_bytes, &growth);
	}
	return forecast;
}
