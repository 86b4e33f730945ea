/* The figures of a device. Owns struct device and what is told of it. Two sums run side by side
 * until the first block event: `whole` counts all driver memory, `allocated` leaves out what
 * PyTorch's allocator obtained; the first is shown as long as there are no blocks, and dropped
 * then. So a program without a caching allocator, and PyTorch with its cache switched off, are told
 * in full, and a segment that precedes its first block is never a peak. */
#include "base/bytes.h"
#include "model/model_private.h"

uint8_t device_slot(uint8_t ordinal)
{
	if (ordinal == MEMTRACE_DEVICE_HOST)
		return SLOT_HOST;
	return ordinal < MODEL_DEVICES_MAX ? ordinal : SLOT_UNKNOWN;
}

uint8_t slot_ordinal(unsigned slot)
{
	return slot == SLOT_UNKNOWN ? MEMTRACE_DEVICE_UNKNOWN : (uint8_t)slot;
}

struct device *device_of(struct model *m, uint8_t ordinal)
{
	uint8_t slot = device_slot(ordinal);
	if (slot == SLOT_HOST)
		return NULL;
	if (!m->devices[slot]) {
		struct device *d = model_new(m, sizeof *d);
		if (!d)
			return NULL;
		d->slot = slot;
		m->devices[slot] = d;
	}
	return m->devices[slot];
}

uint64_t device_capacity_bytes(const struct model *m, const struct device *d)
{
	const struct def_device *definition = defs_device(m->defs, d->slot);
	uint64_t told_bytes = d->total_bytes || !definition ? d->total_bytes : definition->total_bytes;
	return told_bytes ? told_bytes : d->untracked.device_bytes;
}

void device_has_blocks(struct device *d)
{
	d->has_blocks = true;
}

struct composition *device_composition(struct device *d)
{
	return d->has_blocks ? &d->allocated : &d->whole;
}

/* ---------- by owner ---------- */

static struct composition *composition_at(struct device *d, unsigned index)
{
	return index ? &d->allocated : &d->whole;
}

static void touch_owner(struct device *d, struct owner_bytes *owner)
{
	for (unsigned i = d->has_blocks; i < 2; i++) {
		struct composition *c = composition_at(d, i);
		if (owner->at_peak[i].epoch == c->epoch)
			continue;
		owner->at_peak[i] = (struct lazy){owner->live_bytes, c->epoch};
		c->revocable = NULL;
	}
}

static void raise_peak(struct owner_bytes *owner, uint64_t born)
{
	if (owner->raised_by != born)
		owner->before_bytes = owner->peak_bytes;
	owner->raised_by = born;
	owner->peak_bytes = owner->live_bytes;
}

void device_change_owner(struct model *m, struct device *d, const struct memory *memory, enum change change)
{
	uint32_t index = memory->owner;
	if (model_grow(m, &d->owners, &d->owner_capacity, index, sizeof *d->owners))
		return;
	struct owner_bytes *owner = &d->owners[index];
	touch_owner(d, owner);
	owner->live_bytes = bytes_change(owner->live_bytes, change, memory->bytes);
	if (change == CHANGE_WITHDRAWN && owner->raised_by == memory->born)
		owner->peak_bytes = owner->before_bytes; /* nothing since was higher than with this memory */
	else if (owner->live_bytes > owner->peak_bytes && change != CHANGE_GIVEN_BACK)
		raise_peak(owner, memory->born);
}

/* False if it never held anything here. */
bool device_peak_owner(const struct device *d, uint32_t index, uint64_t *at_peak_bytes)
{
	const struct owner_bytes *owner = &d->owners[index];
	const struct composition *c = d->has_blocks ? &d->allocated : &d->whole;
	const struct lazy *lazy = &owner->at_peak[d->has_blocks];
	*at_peak_bytes = lazy->epoch == c->epoch ? lazy->bytes : owner->live_bytes;
	return owner->peak_bytes;
}

/* ---------- the peak ---------- */

static void note_peak(struct device *d, struct composition *c, const struct event *e,
		      const void *memory)
{
	if (!composition_is_at_peak(c))
		return;
	struct model_peak peak = {
		.time_ns = e->time_ns,
		.sequence = e->sequence,
		.allocated_bytes = c->meter.peak_bytes,
		.reserved_bytes = d->now.reserved.live_bytes,
		.pytorch_reserved_bytes = d->now.pytorch_reserved.live_bytes,
		.pytorch_allocated_bytes = d->now.pytorch_allocated.live_bytes,
		.releasable_bytes = d->now.spread.releasable_bytes,
		.internal_bytes = d->now.spread.internal_bytes,
		.unasked_bytes = d->now.spread.unasked_bytes,
		.stack = e->stack,
		.thread = e->thread,
		.step = d->step,
		.phase = d->phase,
		.is_phase_known = d->has_phases,
	};
	composition_set_peak(c, &peak, memory);
}

void device_note_peak(struct device *d, const struct event *e, const void *memory)
{
	if (!d->has_blocks)
		note_peak(d, &d->whole, e, memory);
	note_peak(d, &d->allocated, e, memory);
}

/* ---------- the timeline ---------- */

void device_has_changed(const struct model *m, struct device *d, const void *memory)
{
	struct timeline_sums sums = {d->allocated.meter.live_bytes, d->now.reserved.live_bytes};
	timeline_note(&d->timeline, m->totals.last_time_ns, sums);
	d->timeline.revocable = memory;
}

/* ---------- what is told ---------- */

void device_freeze(struct model *m, struct device *d, uint64_t sequence)
{
	struct composition *c = device_composition(d);
	d->frozen = d->now;
	d->frozen_allocated = c->meter;
	composition_snapshot(m, c, sequence, &d->frozen_stacks);
	d->frozen_map = segment_map_create(m, d);
	d->frozen_trend = model_new(m, sizeof *d->frozen_trend);
	if (d->frozen_trend)
		*d->frozen_trend = d->trend;
	attribution_describe_work(m, d->slot, &d->frozen_work);
	for (uint32_t i = 0; i < d->owner_capacity; i++)
		d->owners[i].frozen_bytes = d->owners[i].live_bytes;
}

static void describe_counter(struct model_counter *shown, const struct meter *told,
			     const struct meter *now)
{
	*shown = (struct model_counter){
		.current_bytes = told->live_bytes,
		.peak_bytes = now->peak_bytes,
		.total_bytes = told->total_bytes,
		.allocations = told->allocations,
		.frees = told->frees,
		.at_exit_frees = now->frees > told->frees ? now->frees - told->frees : 0,
	};
}

/* What the program read from the pool is the driver's own figure: it goes before ours. */
static void describe_async(struct model_device *shown, const struct pool_reads *told,
			   const struct pool_reads *now)
{
	struct model_counter *allocated = &shown->pytorch_allocated,
			     *reserved = &shown->pytorch_reserved;
	if (told->has_used)
		allocated->current_bytes = told->used_bytes;
	if (now->has_used_high)
		allocated->peak_bytes = bytes_larger(now->used_high_bytes, told->used_bytes);
	else if (now->has_used)
		allocated->peak_bytes = bytes_larger(allocated->peak_bytes, now->used_high_bytes);
	if (told->has_reserved)
		reserved->current_bytes = told->reserved_bytes;
	if (now->has_reserved)
		reserved->peak_bytes = bytes_larger(now->reserved_high_bytes, now->reserved_bytes);
	/* More in use than the pool held when it was read: it has grown since, by what only the
	 * driver knows. */
	shown->pytorch_reserved_known =
		told->has_reserved && allocated->current_bytes <= told->reserved_bytes;
}

static void describe_counters(const struct model *m, struct device *d)
{
	const struct device_figures *now = &d->now, *told = m->is_frozen ? &d->frozen : now;
	const struct meter *allocated = &device_composition(d)->meter;
	struct model_device *shown = &d->shown;
	describe_counter(&shown->allocated, m->is_frozen ? &d->frozen_allocated : allocated,
			 allocated);
	describe_counter(&shown->reserved, &told->reserved, &now->reserved);
	describe_counter(&shown->pytorch_allocated, &told->pytorch_allocated,
			 &now->pytorch_allocated);
	describe_counter(&shown->pytorch_reserved, &told->pytorch_reserved, &now->pytorch_reserved);
	shown->pytorch_segments = told->segments;
	shown->pytorch_reserved_known = true;
	if (d->has_async)
		describe_async(shown, &told->reads, &now->reads);
}

void device_describe(const struct model *m, struct device *d)
{
	unsigned ordinal = slot_ordinal(d->slot);
	const struct def_device *definition = defs_device(m->defs, ordinal);
	struct model_device *shown = &d->shown;
	*shown = (struct model_device){
		.ordinal = ordinal,
		.has_blocks = d->has_blocks,
		.has_async = d->has_async,
		.retries = d->retries,
		.ooms = d->ooms,
		.total_bytes = d->total_bytes,
		.free_bytes_last = d->free_bytes,
		.free_known = d->free_known,
		.peak = device_composition(d)->peak,
		.fullest = d->fullest,
	};
	if (!shown->total_bytes && definition)
		shown->total_bytes = definition->total_bytes;
	describe_counters(m, d);
	reconcile_describe(d, shown);
}
