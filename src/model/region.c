/* Memory at an address: device, managed, stream-ordered, arrays, page-locked host memory. Owns the
 * structs and the three indexes. The space of a free is not trusted: cudaFree takes stream-ordered
 * memory too. Must never keep two regions that overlap: memory that is given out again was freed by
 * something that we did not see. */
#include "model/model_private.h"

static struct ranges *index_of(struct model *m, enum memtrace_space space)
{
	switch (space) {
	case MEMTRACE_SPACE_PINNED:
	case MEMTRACE_SPACE_REGISTERED:
		return &m->regions.host;
	case MEMTRACE_SPACE_ARRAY:
		return &m->regions.arrays;
	default:
		return &m->regions.device;
	}
}

static void remove_region(struct model *m, struct region *region, const struct event *e)
{
	ranges_remove(index_of(m, region->memory.space), m->arena, &region->span);
	m->totals.live_regions -= region->memory.slot != SLOT_HOST;
	memory_change(m, &region->memory, CHANGE_GIVEN_BACK, e);
}

void region_drop(struct model *m, struct region *region)
{
	arena_free(m->arena, region, sizeof *region);
}

static void clear_span(struct model *m, struct span *span, const struct event *e)
{
	m->totals.double_allocations++;
	if (span->kind == SPAN_MAPPING) {
		struct mapping *mapping = (struct mapping *)span;
		mapping_remove(m, mapping, e);
		mapping_drop(m, mapping);
	} else {
		struct region *region = (struct region *)span;
		remove_region(m, region, e);
		region_drop(m, region);
	}
}

static void clear_range(struct model *m, struct ranges *index, uint64_t start, uint64_t end,
			const struct event *e)
{
	struct span *span = ranges_before(index, start);
	if (span && (span->start == start || span->end > start))
		clear_span(m, span, e);
	while ((span = ranges_after(index, start)) && span->start < end)
		clear_span(m, span, e);
}

void regions_clear(struct model *m, uint64_t start, uint64_t end, const struct event *e)
{
	clear_range(m, &m->regions.device, start, end, e);
}

static void add_region(struct model *m, struct region *region, enum change change,
		       const struct event *e)
{
	struct ranges *index = index_of(m, region->memory.space);
	clear_range(m, index, region->span.start, region->span.end, e);
	if (ranges_insert(index, m->arena, &region->span)) {
		m->failed = true;
		return;
	}
	m->totals.live_regions += region->memory.slot != SLOT_HOST;
	memory_change(m, &region->memory, change, e);
}

/* An array's address is a handle: it covers nothing. */
void region_note_alloc(struct model *m, const struct event *e)
{
	struct region *region = model_new(m, sizeof *region);
	if (!region)
		return;
	memory_init(m, &region->memory, e);
	region->span.start = e->address;
	region->span.end = e->space == MEMTRACE_SPACE_ARRAY ? e->address : e->address + e->bytes;
	region->span.kind = SPAN_REGION;
	add_region(m, region, CHANGE_OBTAINED, e);
	trial_note_obtained(m, &region->memory, e);
}

void region_keep(struct model *m, struct region *region, const struct event *e)
{
	add_region(m, region, CHANGE_KEPT, e);
}

void region_note_free(struct model *m, const struct event *e)
{
	struct undo *undo = undo_begin(m, e);
	struct span *span = ranges_at(index_of(m, e->space), e->address);
	if (!span || span->kind != SPAN_REGION) {
		note_unknown_free(m, e);
		return;
	}
	struct region *region = (struct region *)span;
	remove_region(m, region, e);
	trial_note_freed(m, &region->memory, region->memory.bytes, region->memory.bytes, e);
	undo->region = region;
}

void regions_note_landing(struct model *m, const struct event *e)
{
	struct span *span = ranges_before(&m->regions.device, e->address);
	if (!span || span->end <= e->address)
		return;
	if (span->kind == SPAN_REGION) {
		memory_become_cache(m, &((struct region *)span)->memory);
	} else {
		struct mapping *mapping = (struct mapping *)span;
		if (mapping->handle)
			handle_become_cache(m, mapping->handle);
	}
}
