/* Memory at an address: device, managed, stream-ordered, arrays, page-locked host memory, and what
 * other processes and APIs have lent. Owns the structs and the four indexes. The space of a free is
 * not trusted: cudaFree takes stream-ordered memory too. Must never keep two regions that overlap:
 * memory that is given out again was freed by something that we did not see. */
#include <string.h>

#include "model/model_private.h"

struct ranges *region_index(struct model *m, enum memtrace_space space)
{
	switch (space) {
	case MEMTRACE_SPACE_PINNED:
	case MEMTRACE_SPACE_REGISTERED:
		return &m->regions.host;
	case MEMTRACE_SPACE_ARRAY:
		return &m->regions.arrays;
	case MEMTRACE_SPACE_EXTERNAL:
		return &m->regions.imports;
	default:
		return &m->regions.device;
	}
}

static void remove_region(struct model *m, struct region *region, const struct event *e)
{
	ranges_remove(region_index(m, region->home), m->arena, &region->span);
	m->totals.live_regions -= memory_is_counted(&region->memory);
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
	struct ranges *index = region_index(m, region->home);
	clear_range(m, index, region->span.start, region->span.end, e);
	if (ranges_insert(index, m->arena, &region->span)) {
		m->failed = true;
		return;
	}
	m->totals.live_regions += memory_is_counted(&region->memory);
	memory_change(m, &region->memory, change, e);
}

static struct region *external_at(struct model *m, enum memtrace_space home, uint64_t address)
{
	struct region *region = (struct region *)ranges_at(region_index(m, home), address);
	bool is_region = region && region->span.kind == SPAN_REGION;
	return is_region && region->memory.role == ROLE_EXTERNAL ? region : NULL;
}

static uint8_t home_of(const struct event *e)
{
	return (uint8_t)(e->space == MEMTRACE_SPACE_EXTERNAL ? e->extra : e->space);
}

/* Opened once more: it has the address that it had. */
static bool is_opened_again(struct model *m, const struct event *e)
{
	struct region *open =
		e->space == MEMTRACE_SPACE_EXTERNAL ? external_at(m, home_of(e), e->address) : NULL;
	if (open)
		open->references++;
	return open;
}

/* What is a handle and no address covers nothing. */
static uint64_t covered_bytes(const struct event *e)
{
	uint8_t home = home_of(e);
	bool is_handle = home == MEMTRACE_SPACE_ARRAY || home == MEMTRACE_SPACE_EXTERNAL;
	return is_handle ? 0 : e->bytes;
}

void region_note_alloc(struct model *m, const struct event *e)
{
	struct region *region = is_opened_again(m, e) ? NULL : model_new(m, sizeof *region);
	if (!region)
		return;
	memory_init(m, &region->memory, e);
	region->home = home_of(e);
	region->references = 1;
	region->context = e->space == MEMTRACE_SPACE_STREAM ? 0 : e->stream;
	region->span.start = e->address;
	region->span.end = e->address + covered_bytes(e);
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
	struct span *span = ranges_at(region_index(m, e->space), e->address);
	if (!span || span->kind != SPAN_REGION) {
		note_unknown_free(m, e);
		return;
	}
	struct region *region = (struct region *)span;
	if (region->references > 1) {
		region->references--;
		undo->has_reference = true;
		return;
	}
	remove_region(m, region, e);
	trial_note_freed(m, &region->memory, region->memory.bytes, region->memory.bytes, e);
	undo->region = region;
}

void region_reopen(struct model *m, uint64_t address, enum memtrace_space space)
{
	struct ranges *index = region_index(m, space);
	struct span *span = ranges_at(index, address);
	if (span && span->kind == SPAN_REGION)
		((struct region *)span)->references++;
}

/* ---------- the end of a context ---------- */

static bool lives_in(const struct region *region, const struct event *end)
{
	const struct memory *memory = &region->memory;
	bool has_context = memory->space == MEMTRACE_SPACE_DEVICE ||
			   memory->space == MEMTRACE_SPACE_MANAGED ||
			   memory->space == MEMTRACE_SPACE_ARRAY;
	if (!has_context || end->extra == MEMTRACE_CONTEXT_GREEN)
		return false;
	if (end->extra == MEMTRACE_CONTEXT_OWN)
		return region->context == end->address;
	return !region->context && memory->slot == device_slot(end->device);
}

static void end_regions(struct model *m, struct ranges *index, const struct event *e)
{
	struct span *span = ranges_at(index, 0), *next;
	for (span = span ? span : ranges_after(index, 0); span; span = next) {
		struct region *region = (struct region *)span;
		next = ranges_after(index, span->start);
		if (span->kind != SPAN_REGION || !lives_in(region, e))
			continue;
		remove_region(m, region, e);
		region_drop(m, region);
	}
}

void regions_note_context_end(struct model *m, const struct event *e)
{
	end_regions(m, &m->regions.device, e);
	end_regions(m, &m->regions.arrays, e);
}

/* Where the one that holds the address was, if it was looked for since regions came or went last. */
static struct span **recent_at(struct regions *regions, uint64_t address)
{
	if (regions->recent_changes != regions->device.changes) {
		memset(regions->recent, 0, sizeof regions->recent);
		regions->recent_changes = regions->device.changes;
	}
	return &regions->recent[(address >> 20) % RECENT_SPANS];
}

struct span *regions_at(struct model *m, uint64_t address)
{
	struct span **recent = recent_at(&m->regions, address), *span = *recent;
	if (span && span->start <= address && address < span->end)
		return span;
	span = ranges_before(&m->regions.device, address);
	if (!span || span->end <= address)
		return NULL;
	return *recent = span;
}

void regions_note_landing(struct model *m, struct span *span)
{
	if (span->kind == SPAN_REGION) {
		memory_become_cache(m, &((struct region *)span)->memory);
	} else {
		struct mapping *mapping = (struct mapping *)span;
		if (mapping->handle)
			handle_become_cache(m, mapping->handle);
	}
}
