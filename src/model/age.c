/* How many steps a training loop had completed at an event. Owns nothing: the records of steps do. Of very many steps
 * the records between the first and the last ones are not kept: the count is then that of the last before them. */
#include "model/model_private.h"

uint64_t model_steps_before(const struct model *m, unsigned ordinal, uint64_t sequence)
{
	const struct step_record *last = last_step_before(m, ordinal, sequence);
	return last ? last->step : 0;
}

size_t model_lows_at_oom(const struct model *m, size_t index, uint64_t *lows, size_t capacity, uint64_t *steps_each)
{
	const struct trend *trend = index < m->oom_count ? m->ooms[index]->trend : NULL;
	size_t count = trend ? trend->steps.count : 0, shown = count < capacity ? count : capacity;
	*steps_each = trend ? trend->steps.stride : 0;
	for (size_t i = 0; i < shown; i++)
		lows[i] = trend->steps.windows[count - shown + i].least_bytes;
	return shown;
}
