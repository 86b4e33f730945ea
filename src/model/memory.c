/* What a change of driver memory means for every figure. The one place where reserved, owners,
 * allocated and PyTorch's own figures are changed by memory, so that they can never disagree. */
#include "model/model_private.h"

static uint8_t role_of(const struct memory *memory)
{
	if (memory->space == MEMTRACE_SPACE_EXTERNAL)
		return ROLE_EXTERNAL;
	if (memory->owner != OWNER_PYTORCH || memory->slot == SLOT_HOST)
		return ROLE_OUTSIDE;
	if (memory->space != MEMTRACE_SPACE_STREAM)
		return ROLE_CACHE;
	return memory->is_captured ? ROLE_OUTSIDE : ROLE_TENSOR; /* a graph's is not the pool's */
}

void memory_init(struct model *m, struct memory *memory, const struct event *e)
{
	*memory = (struct memory){
		.bytes = e->bytes,
		.born = e->sequence,
		.stack = e->stack,
		.thread = e->thread,
		.owner = stack_facts(m, e->stack)->owner,
		.slot = device_slot(e->device),
		.space = (uint8_t)e->space,
		.is_captured = e->flags & MEMTRACE_CAPTURING,
	};
	if (e->space == MEMTRACE_SPACE_STREAM)
		memory->slot = device_slot(pool_device(m, e));
	if (e->space == MEMTRACE_SPACE_PINNED || e->space == MEMTRACE_SPACE_REGISTERED)
		memory->slot = SLOT_HOST;
	memory->role = role_of(memory);
	memory->label = (uint8_t)attribution_of_owner(m->owner_names[memory->owner]);
}

bool memory_is_counted(const struct memory *memory)
{
	return memory->slot != SLOT_HOST && memory->role != ROLE_EXTERNAL;
}

static void change_total(uint64_t *current_bytes, uint64_t *peak_bytes, enum change change, uint64_t bytes)
{
	*current_bytes = bytes_change(*current_bytes, change, bytes);
	if (*current_bytes > *peak_bytes && change != CHANGE_GIVEN_BACK)
		*peak_bytes = *current_bytes;
}

static void change_managed(struct model *m, enum change change, const struct memory *memory)
{
	if (memory->space == MEMTRACE_SPACE_MANAGED)
		change_total(&m->totals.managed_current_bytes, &m->totals.managed_peak_bytes, change, memory->bytes);
}

static void change_host(struct model *m, enum change change, const struct memory *memory)
{
	change_total(&m->totals.pinned_current_bytes, &m->totals.pinned_peak_bytes, change, memory->bytes);
	composition_change(m, &m->pinned, change, memory->stack, memory->label, memory->bytes);
}

static void change_cache(struct device *d, const struct memory *memory, enum change change)
{
	meter_change(&d->now.pytorch_reserved, change, memory->bytes);
	if (!memory->block_count)
		segment_change_releasable(d, change, memory->bytes);
	d->now.segments = bytes_change(d->now.segments, change, 1);
}

static void change_pytorch(struct device *d, const struct memory *memory, enum change change)
{
	if (memory->role == ROLE_TENSOR) {
		d->has_async = true;
		meter_change(&d->now.pytorch_allocated, change, memory->bytes);
		meter_change(&d->now.pytorch_reserved, change, memory->bytes);
		pool_note_tensor(d, change, memory->bytes);
	} else if (memory->role == ROLE_CACHE && memory->space != MEMTRACE_SPACE_VMM) {
		change_cache(d, memory, change);
	}
}

void memory_change(struct model *m, struct memory *memory, enum change change,
		   const struct event *e)
{
	if (memory->role == ROLE_EXTERNAL)
		return;
	if (change == CHANGE_OBTAINED && memory->role != ROLE_CACHE && memory->slot != SLOT_HOST)
		attribution_observe(m, memory->born, memory->label);
	if (memory->slot == SLOT_HOST) {
		change_host(m, change, memory);
		return;
	}
	struct device *d = device_of(m, memory->slot);
	if (!d)
		return;
	change_managed(m, change, memory);
	meter_change(&d->now.reserved, change, memory->bytes);
	device_change_owner(m, d, memory, change);
	change_pytorch(d, memory, change);
	if (!d->has_blocks)
		composition_change(m, &d->whole, change, memory->stack, memory->label, memory->bytes);
	if (memory->role != ROLE_CACHE)
		composition_change(m, &d->allocated, change, memory->stack, memory->label, memory->bytes);
	if (change != CHANGE_GIVEN_BACK)
		device_note_peak(d, e, memory);
	device_has_changed(m, d, memory);
}

/* That it was counted as allocated until now is undone as far as that goes: if it made the peak, as
 * it does when the block follows at once, the peak is revoked; a peak that came later keeps it. */
void memory_become_cache(struct model *m, struct memory *memory)
{
	struct device *d = memory->slot == SLOT_HOST ? NULL : device_of(m, memory->slot);
	if (!d || memory->role != ROLE_OUTSIDE)
		return;
	memory->role = ROLE_CACHE;
	composition_revoke(&d->allocated, memory);
	if (d->timeline.revocable == memory)
		d->timeline.now.allocated_bytes -= memory->bytes;
	composition_change(m, &d->allocated, CHANGE_WITHDRAWN, memory->stack, memory->label, memory->bytes);
	device_change_owner(m, d, memory, CHANGE_WITHDRAWN);
	memory->owner = OWNER_PYTORCH;
	device_change_owner(m, d, memory, CHANGE_OBTAINED);
	if (memory->space != MEMTRACE_SPACE_VMM)
		change_cache(d, memory, CHANGE_OBTAINED);
}
