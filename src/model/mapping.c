/* Where physical memory shows, and reserved address space. Owns mappings, which lie in the index of
 * device addresses beside the regions, and reservations. A segment of PyTorch's expandable kind is
 * a run of mappings without a gap in one reservation: each mapping knows whether it goes on where
 * the one before it ends. */
#include "model/model_private.h"

static struct mapping *mapping_of(struct span *span)
{
	return span && span->kind == SPAN_MAPPING ? (struct mapping *)span : NULL;
}

static bool is_cache(const struct mapping *mapping)
{
	return mapping->handle && mapping->handle->memory.role == ROLE_CACHE;
}

/* ---------- segments ---------- */

static struct mapping *mapping_before(struct model *m, uint64_t address)
{
	return mapping_of(address ? ranges_before(&m->regions.device, address - 1) : NULL);
}

static struct mapping *mapping_at(struct model *m, uint64_t address)
{
	return mapping_of(ranges_at(&m->regions.device, address));
}

static bool can_join(struct model *m, const struct mapping *left, const struct mapping *right)
{
	return left && left->is_counted && right->is_counted &&
	       left->span.end == right->span.start &&
	       left->handle->memory.slot == right->handle->memory.slot &&
	       !ranges_at(&m->handles.reservations, right->span.start);
}

static void join_segment(struct model *m, struct device *d, struct mapping *mapping)
{
	struct mapping *after = mapping_at(m, mapping->span.end);
	mapping->is_counted = true;
	mapping->is_joined = can_join(m, mapping_before(m, mapping->span.start), mapping);
	d->now.segments += !mapping->is_joined;
	if (after && after != mapping && !after->is_joined && can_join(m, mapping, after)) {
		after->is_joined = true;
		d->now.segments--;
	}
}

static void part_segment(struct model *m, struct device *d, struct mapping *mapping)
{
	struct mapping *after = mapping_at(m, mapping->span.end);
	d->now.segments -= !mapping->is_joined;
	mapping->is_counted = mapping->is_joined = false;
	if (after && after != mapping && after->is_joined) {
		after->is_joined = false;
		d->now.segments++;
	}
}

void mapping_count_cache(struct model *m, struct mapping *mapping, enum change change)
{
	struct device *d = is_cache(mapping) ? device_of(m, mapping->handle->memory.slot) : NULL;
	if (!d)
		return;
	meter_change(&d->now.pytorch_reserved, change, mapping->span.end - mapping->span.start);
	if (!mapping->block_count)
		segment_change_releasable(d, change, mapping->span.end - mapping->span.start);
	if (change == CHANGE_GIVEN_BACK)
		part_segment(m, d, mapping);
	else
		join_segment(m, d, mapping);
}

/* ---------- mappings ---------- */

static void attach(struct model *m, struct mapping *mapping, struct handle *handle,
		   enum change change, const struct event *e)
{
	mapping->handle = handle;
	mapping->handle_born = handle->memory.born;
	mapping->previous = NULL;
	mapping->next = handle->mappings;
	if (handle->mappings)
		handle->mappings->previous = mapping;
	handle->mappings = mapping;
	handle->mapping_count++;
	mapping_count_cache(m, mapping, change); /* first: the next line may find a peak */
	handle_settle(m, handle, CHANGE_KEPT, e);
}

void mapping_detach(struct model *m, struct mapping *mapping, const struct event *e)
{
	struct handle *handle = mapping->handle;
	if (!handle)
		return;
	mapping->was_counted = mapping->is_counted;
	mapping_count_cache(m, mapping, CHANGE_GIVEN_BACK);
	if (mapping->previous)
		mapping->previous->next = mapping->next;
	else
		handle->mappings = mapping->next;
	if (mapping->next)
		mapping->next->previous = mapping->previous;
	mapping->handle = NULL;
	mapping->previous = mapping->next = NULL;
	handle->mapping_count--;
	trial_note_freed(m, &handle->memory, 0, mapping->span.end - mapping->span.start, e);
	handle_settle(m, handle, CHANGE_GIVEN_BACK, e);
}

/* Afterwards the handle may be looked up, not before: making room can forget zombies. */
static void insert(struct model *m, struct mapping *mapping, const struct event *e)
{
	regions_clear(m, mapping->span.start, mapping->span.end, e);
	if (ranges_insert(&m->regions.device, m->arena, &mapping->span))
		m->failed = true;
}

/* A part of a sparse array has no address of its own. */
static bool is_array_part(const struct event *e)
{
	return e->space == MEMTRACE_SPACE_ARRAY;
}

void mapping_note_map(struct model *m, const struct event *e)
{
	if (is_array_part(e))
		return;
	struct mapping *mapping = model_new(m, sizeof *mapping);
	if (!mapping)
		return;
	mapping->span = (struct span){e->address, e->address + e->bytes, SPAN_MAPPING};
	mapping->handle_address = e->extra;
	insert(m, mapping, e);
	struct handle *handle = handle_find(m, e->extra);
	if (m->failed || !handle)
		return;
	attach(m, mapping, handle, CHANGE_OBTAINED, e);
	trial_note_obtained(m, &handle->memory, e);
}

void mapping_remove(struct model *m, struct mapping *mapping, const struct event *e)
{
	mapping_detach(m, mapping, e);
	ranges_remove(&m->regions.device, m->arena, &mapping->span);
}

void mapping_drop(struct model *m, struct mapping *mapping)
{
	arena_free(m->arena, mapping, sizeof *mapping);
}

static struct mapping *first_mapping(struct model *m, uint64_t start, uint64_t end)
{
	struct span *span = ranges_at(&m->regions.device, start);
	if (!span)
		span = ranges_after(&m->regions.device, start);
	while (span && span->start < end && span->kind != SPAN_MAPPING)
		span = ranges_after(&m->regions.device, span->start);
	return span && span->start < end ? (struct mapping *)span : NULL;
}

/* CUDA unmaps whole mappings only: those that begin in the range. */
void mapping_note_unmap(struct model *m, const struct event *e)
{
	if (is_array_part(e))
		return;
	struct undo *undo = undo_begin(m, e);
	uint64_t end = e->address + e->bytes;
	struct mapping *mapping;
	if (!first_mapping(m, e->address, end))
		note_unknown_free(m, e);
	while ((mapping = first_mapping(m, e->address, end))) {
		mapping_remove(m, mapping, e);
		mapping->next = undo->mappings;
		undo->mappings = mapping;
	}
}

void mapping_keep(struct model *m, struct mapping *mapping, const struct event *e)
{
	insert(m, mapping, e);
	struct handle *handle = handle_find(m, mapping->handle_address);
	if (!m->failed && handle && handle->memory.born == mapping->handle_born)
		attach(m, mapping, handle, mapping->was_counted ? CHANGE_KEPT : CHANGE_OBTAINED, e);
}

/* ---------- reservations: address space only ---------- */

void reservation_note_reserve(struct model *m, const struct event *e)
{
	struct span *old = ranges_at(&m->handles.reservations, e->address);
	if (old) {
		m->totals.double_allocations++;
		old->end = e->address + e->bytes;
		return;
	}
	struct span *span = model_new(m, sizeof *span);
	if (!span)
		return;
	*span = (struct span){e->address, e->address + e->bytes, SPAN_RESERVATION};
	reservation_keep(m, span);
}

void reservation_keep(struct model *m, struct span *span)
{
	if (ranges_insert(&m->handles.reservations, m->arena, span))
		m->failed = true;
}

void reservation_note_release(struct model *m, const struct event *e)
{
	struct undo *undo = undo_begin(m, e);
	struct span *span = ranges_at(&m->handles.reservations, e->address);
	if (!span) {
		note_unknown_free(m, e);
		return;
	}
	ranges_remove(&m->handles.reservations, m->arena, span);
	undo->reservation = span;
}
