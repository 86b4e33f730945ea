/* The model's invariants, as a function that tests call after every event: sums of parts equal what
 * is told, now and at the peak, and a recount of the tables gives the running sums. Changes
 * nothing. */
#include "base/bytes.h"
#include "model/model_private.h"

struct recount { /* of one device, from the tables */
	uint64_t reserved_bytes, allocated_bytes, cache_bytes, tensor_bytes, block_bytes, segments;
	uint64_t releasable_bytes;
};

static bool is_composition_consistent(const struct composition *c)
{
	uint64_t live_bytes = 0, peak_bytes = 0;
	for (uint32_t i = 0; i < c->share_count; i++) {
		const struct share *share = &c->shares[i];
		live_bytes += share->bytes;
		peak_bytes += share->epoch == c->epoch ? share->peak_bytes : share->bytes;
	}
	return live_bytes == c->meter.live_bytes && peak_bytes == c->peak.allocated_bytes &&
	       peak_bytes == c->meter.peak_bytes && live_bytes <= peak_bytes;
}

static bool are_owners_consistent(const struct device *d, const struct composition *c)
{
	uint64_t live_bytes = 0, peak_bytes = 0, at_peak_bytes;
	for (uint32_t i = 0; i < d->owner_capacity; i++) {
		live_bytes += d->owners[i].live_bytes;
		device_peak_owner(d, i, &at_peak_bytes);
		peak_bytes += at_peak_bytes;
	}
	return live_bytes == d->now.reserved.live_bytes && peak_bytes == c->peak.reserved_bytes;
}

static void recount_memory(struct recount *sums, const struct memory *memory)
{
	struct recount *sum = &sums[memory->slot];
	if (!memory_is_counted(memory))
		return;
	sum->reserved_bytes += memory->bytes;
	sum->allocated_bytes += memory->role == ROLE_CACHE ? 0 : memory->bytes;
	sum->tensor_bytes += memory->role == ROLE_TENSOR ? memory->bytes : 0;
	if (memory->role == ROLE_CACHE && memory->space != MEMTRACE_SPACE_VMM) {
		sum->cache_bytes += memory->bytes;
		sum->segments++;
		sum->releasable_bytes += memory->block_count ? 0 : memory->bytes;
	}
}

static void recount_spans(struct recount *sums, const struct ranges *index)
{
	struct span *span = ranges_at(index, 0);
	for (span = span ? span : ranges_after(index, 0); span;
	     span = ranges_after(index, span->start)) {
		const struct mapping *mapping = (const struct mapping *)span;
		if (span->kind == SPAN_REGION) {
			recount_memory(sums, &((const struct region *)span)->memory);
		} else if (mapping->handle && mapping->handle->memory.role == ROLE_CACHE) {
			sums[mapping->handle->memory.slot].cache_bytes += span->end - span->start;
			sums[mapping->handle->memory.slot].segments += !mapping->is_joined;
			if (!mapping->block_count)
				sums[mapping->handle->memory.slot].releasable_bytes += span->end - span->start;
		}
	}
}

static void recount(const struct model *m, struct recount *sums)
{
	recount_spans(sums, &m->regions.device);
	recount_spans(sums, &m->regions.arrays);
	for (const struct handle *h = m->handles.table; h; h = h->hh.next)
		if (h->is_held)
			recount_memory(sums, &h->memory);
	const struct block *block;
	for (size_t place = 0; (block = blocks_next(&m->blocks, &place));) {
		sums[block->slot].block_bytes += block->bytes;
		sums[block->slot].allocated_bytes += block->bytes;
	}
}

static bool is_timeline_consistent(const struct model *m, const struct device *d)
{
	static struct model_timeline shown; /* too large for a stack; tests have one thread */
	uint64_t allocated_bytes = 0, reserved_bytes = 0;
	timeline_get(&d->timeline, m->totals.last_time_ns, &shown);
	for (uint32_t i = 0; i < shown.count; i++) {
		allocated_bytes = bytes_larger(allocated_bytes, shown.allocated_bytes[i]);
		reserved_bytes = bytes_larger(reserved_bytes, shown.reserved_bytes[i]);
	}
	return allocated_bytes == d->allocated.meter.peak_bytes && reserved_bytes == d->now.reserved.peak_bytes;
}

static bool is_device_consistent(struct device *d, const struct recount *sum)
{
	const struct device_figures *now = &d->now;
	if (!is_composition_consistent(&d->allocated) ||
	    !are_owners_consistent(d, device_composition(d)))
		return false;
	if (!d->has_blocks && (!is_composition_consistent(&d->whole) ||
			       d->whole.meter.live_bytes != sum->reserved_bytes))
		return false;
	return sum->reserved_bytes == now->reserved.live_bytes &&
	       sum->allocated_bytes == d->allocated.meter.live_bytes &&
	       sum->block_bytes + sum->tensor_bytes == now->pytorch_allocated.live_bytes &&
	       sum->cache_bytes + sum->tensor_bytes == now->pytorch_reserved.live_bytes &&
	       sum->segments == now->segments &&
	       sum->releasable_bytes == now->spread.releasable_bytes;
}

bool model_is_consistent(const struct model *m)
{
	struct recount sums[SLOT_HOST + 1] = {0};
	recount(m, sums);
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++)
		if (m->devices[slot] && (!is_device_consistent(m->devices[slot], &sums[slot]) ||
					 !is_timeline_consistent(m, m->devices[slot])))
			return false;
	return true;
}
