/* What the model tells. Owns nothing: the answers lie in the model and are made anew at every look,
 * from the frozen figures once the program's own code had ended. */
#include "model/model_private.h"

const struct model_totals *model_totals(const struct model *m)
{
	struct model *mutable = (struct model *)m; /* only what is shown is written */
	struct model_totals *shown = &mutable->shown_totals;
	*shown = m->totals;
	if (m->is_frozen) {
		shown->pinned_current_bytes = m->frozen_totals.pinned_current_bytes;
		shown->live_blocks = m->frozen_totals.live_blocks;
		shown->live_regions = m->frozen_totals.live_regions;
	}
	return shown;
}

const struct model_device *model_device(const struct model *m, unsigned index)
{
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
		struct device *d = m->devices[slot];
		if (d && !index--) {
			device_describe(m, d);
			return &d->shown;
		}
	}
	return NULL;
}

struct device *find_device(const struct model *m, unsigned ordinal)
{
	if (ordinal == MEMTRACE_DEVICE_UNKNOWN)
		return m->devices[SLOT_UNKNOWN];
	return ordinal < MODEL_DEVICES_MAX ? m->devices[ordinal] : NULL;
}

uint64_t model_pytorch_live_bytes(const struct model *m, unsigned ordinal)
{
	const struct device *d = find_device(m, ordinal);
	return d ? d->now.pytorch_allocated.live_bytes : 0;
}

uint64_t model_reserved_live_bytes(const struct model *m, unsigned ordinal)
{
	const struct device *d = find_device(m, ordinal);
	return d ? d->now.reserved.live_bytes : 0;
}

/* ---------- owners ---------- */

/* The largest at the peak of those that come after `previous`; UINT32_MAX: of all. UINT32_MAX when
 * none is left. */
static uint32_t next_owner(const struct device *d, uint32_t previous)
{
	uint32_t best = UINT32_MAX;
	uint64_t bytes, best_bytes = 0, limit_bytes = UINT64_MAX;
	if (previous != UINT32_MAX)
		device_peak_owner(d, previous, &limit_bytes);
	for (uint32_t i = 0; i < d->owner_capacity; i++) {
		if (!device_peak_owner(d, i, &bytes) || bytes > limit_bytes)
			continue;
		if (previous != UINT32_MAX && bytes == limit_bytes && i <= previous)
			continue;
		if (best == UINT32_MAX || bytes > best_bytes) {
			best = i;
			best_bytes = bytes;
		}
	}
	return best;
}

const struct model_owner *model_owner(const struct model *m, unsigned ordinal, unsigned index)
{
	struct device *d = find_device(m, ordinal);
	uint32_t owner = d ? next_owner(d, UINT32_MAX) : UINT32_MAX;
	while (index-- && owner != UINT32_MAX)
		owner = next_owner(d, owner);
	if (owner == UINT32_MAX)
		return NULL;
	const struct owner_bytes *bytes = &d->owners[owner];
	struct model_owner *shown = &d->shown_owner;
	shown->name = m->owner_names[owner];
	shown->current_bytes = m->is_frozen ? bytes->frozen_bytes : bytes->live_bytes;
	shown->peak_bytes = bytes->peak_bytes;
	device_peak_owner(d, owner, &shown->at_peak_bytes);
	return shown;
}

bool model_timeline(const struct model *m, unsigned ordinal, struct model_timeline *shown)
{
	const struct device *d = find_device(m, ordinal);
	if (!d)
		return false;
	timeline_get(&d->timeline, m->totals.last_time_ns, shown);
	if (!d->has_blocks)
		memcpy(shown->allocated_bytes, shown->reserved_bytes, sizeof shown->allocated_bytes);
	return true;
}

size_t model_memory_bytes(const struct model *m)
{
	return arena_bytes(m->arena);
}

size_t model_oom_count(const struct model *m)
{
	return m->oom_count;
}

const struct model_oom *model_oom(const struct model *m, size_t index)
{
	return index < m->oom_count ? &m->ooms[index]->oom : NULL;
}
