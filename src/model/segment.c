/* Which segments and pages of PyTorch's caching allocator hold no block, kept while events are applied:
 * O(log n) for a block, and for one in expandable memory each of its pages. Owns the counts of blocks in
 * regions and mappings. Must never let a count wrap: a page may have been given back under its block. */
#include "model/model_private.h"

void segment_change_releasable(struct device *d, enum change change, uint64_t bytes)
{
	d->now.spread.releasable_bytes = bytes_change(d->now.spread.releasable_bytes, change, bytes);
}

/* False: it was empty before and is not counted, or holds others too. */
static bool has_turned(uint32_t *count, enum change change)
{
	if (change == CHANGE_OBTAINED)
		return !(*count)++;
	return *count && !--*count;
}

/* The memory may be another device's than the block says, in a trace that is not whole. */
static void turn(struct model *m, const struct memory *memory, uint64_t bytes, enum change change)
{
	struct device *d = memory->slot == SLOT_HOST ? NULL : device_of(m, memory->slot);
	if (d)
		segment_change_releasable(d, change == CHANGE_OBTAINED ? CHANGE_GIVEN_BACK : CHANGE_OBTAINED, bytes);
}

static void fill_region(struct model *m, struct region *region, const struct block *block, enum change change,
			uint64_t sequence)
{
	struct memory *memory = &region->memory;
	if (memory->role != ROLE_CACHE)
		return;
	memory->stream = block->stream;
	if (!has_turned(&memory->block_count, change))
		return;
	memory->turned = sequence;
	turn(m, memory, memory->bytes, change);
}

static void fill_page(struct model *m, struct mapping *mapping, const struct block *block, enum change change,
		      uint64_t sequence)
{
	bool has_changed = has_turned(&mapping->block_count, change);
	if (mapping->handle)
		mapping->handle->memory.stream = block->stream;
	if (mapping->handle && has_changed)
		mapping->handle->memory.turned = sequence;
	if (has_changed && mapping->is_counted)
		turn(m, &mapping->handle->memory, mapping->span.end - mapping->span.start, change);
}

void segment_note_block(struct model *m, struct span *span, const struct block *block, enum change change,
			uint64_t sequence)
{
	if (!span)
		return;
	if (span->kind == SPAN_REGION) {
		fill_region(m, (struct region *)span, block, change, sequence);
		return;
	}
	uint64_t end = block->address + block->bytes;
	for (; span && span->start < end && span->kind == SPAN_MAPPING;
	     span = ranges_after(&m->regions.device, span->start))
		fill_page(m, (struct mapping *)span, block, change, sequence);
}

void segment_note_fullest(struct device *d, const struct event *e)
{
	if (d->now.pytorch_reserved.live_bytes <= d->fullest.reserved_bytes)
		return;
	d->fullest = (struct model_fullest){
		.time_ns = e->time_ns,
		.sequence = e->sequence,
		.reserved_bytes = d->now.pytorch_reserved.live_bytes,
		.allocated_bytes = d->now.pytorch_allocated.live_bytes,
		.releasable_bytes = d->now.spread.releasable_bytes,
	};
}
