/* Saves and loads what the driver gave out: regions, mappings, handles, reservations, pools, graphs, and
 * what a free that may still fail has removed. Spans are read in order and may not overlap; a mapping
 * belongs to the handle that names it; what stands in an index stands there by its own home. */
#include <errno.h>
#include <string.h>

#include "model/save_private.h"

static const struct field memory_fields[] = {
	FIELD(struct memory, bytes),
	FIELD(struct memory, born),
	STACK_OF(struct memory, stack),
	FIELD(struct memory, thread),
	FIELD_BELOW(struct memory, owner, ARCHIVE_WITHIN(BOUND_OWNERS)),
	FIELD(struct memory, slot),
	FIELD_BELOW(struct memory, role, ROLE_EXTERNAL + 1),
	FIELD_BELOW(struct memory, space, MEMTRACE_SPACE_COUNT),
	FIELD_BELOW(struct memory, label, LABEL_COUNT),
	FIELD_BOOL(struct memory, is_captured),
	FIELD(struct memory, block_count),
	FIELD(struct memory, stream),
	FIELD(struct memory, turned),
	FIELD_END,
};

static const struct field span_fields[] = {
	FIELD(struct span, start), FIELD(struct span, end),
	FIELD_BELOW(struct span, kind, SPAN_RESERVATION + 1), FIELD_END,
};

static const struct field region_fields[] = {
	FIELD(struct region, context), FIELD(struct region, references), FIELD(struct region, home), FIELD_END,
};

static const struct field mapping_fields[] = {
	FIELD_BOOL(struct mapping, is_counted),  FIELD_BOOL(struct mapping, was_counted),
	FIELD_BOOL(struct mapping, is_joined),	  FIELD(struct mapping, handle_address),
	FIELD(struct mapping, handle_born),	  FIELD(struct mapping, block_count), FIELD_END,
};

static const struct field handle_fields[] = {
	FIELD(struct handle, address), FIELD(struct handle, references),
	FIELD_BOOL(struct handle, is_held), FIELD_END,
};

static const struct field pool_fields[] = {
	FIELD(struct pool, address), FIELD(struct pool, device), FIELD_BOOL(struct pool, is_own),
	FIELD_BOOL(struct pool, is_destroyed), FIELD_END,
};

static const struct field node_fields[] = {
	FIELD(struct graph_node, address), FIELD(struct graph_node, bytes),
	STACK_OF(struct graph_node, stack), FIELD(struct graph_node, device),
	FIELD_BOOL(struct graph_node, is_free), FIELD_END,
};

static const struct field undo_fields[] = {
	FIELD_BOOL(struct undo, is_set),
	FIELD_BOOL(struct undo, was_unknown),
	FIELD_BOOL(struct undo, has_handle),
	FIELD_BOOL(struct undo, has_reference),
	FIELD_BELOW(struct undo, what, MEMTRACE_WHAT_COUNT),
	FIELD(struct undo, space),
	FIELD(struct undo, sequence),
	FIELD(struct undo, address),
	FIELD(struct undo, handle_born),
	FIELD(struct undo, pending_bytes),
	FIELD(struct undo, pending_cache_bytes),
	FIELD_END,
};

SAVED_SIZE(memory, 56);
SAVED_SIZE(span, 24);
SAVED_SIZE(region, 96);
SAVED_SIZE(mapping, 72);
SAVED_SIZE(handle, 168);
SAVED_SIZE(pool, 72);
SAVED_SIZE(graph_node, 24);
SAVED_SIZE(undo, 72);
SAVED_SIZE(regions, 712);
SAVED_SIZE(handles, 80);

/* ---------- memory ---------- */

/* Whether it may still turn out not to be what made the peak. */
static void save_revocable(struct model *m, struct archive *a, const struct memory *memory)
{
	struct device *d = memory->slot == SLOT_HOST ? NULL : m->devices[memory->slot];
	struct composition *compositions[] = {d ? &d->whole : NULL, d ? &d->allocated : NULL};
	for (unsigned i = 0; i < 2; i++) {
		struct composition *c = compositions[i];
		bool is_it = c && c->revocable == memory;
		archive_bool(a, &is_it);
		if (c && is_it)
			c->revocable = memory;
	}
	bool is_last = d && d->timeline.revocable == memory;
	archive_bool(a, &is_last);
	if (d && is_last)
		d->timeline.revocable = memory;
}

static void save_one_memory(struct model *m, struct archive *a, struct memory *memory)
{
	archive_fields(a, memory, memory_fields);
	if (memory->slot >= SLOT_COUNT && memory->slot != SLOT_HOST) {
		archive_fail(a, -EINVAL);
		memory->slot = SLOT_HOST;
	}
	save_revocable(m, a, memory);
}

static struct region *save_region(struct model *m, struct archive *a, struct region *region)
{
	if (a->is_loading)
		region = save_new(m, a, sizeof *region);
	if (!region)
		return NULL;
	archive_fields(a, &region->span, span_fields);
	archive_fields(a, region, region_fields);
	save_one_memory(m, a, &region->memory);
	if (region->span.kind != SPAN_REGION || region->span.end < region->span.start)
		archive_fail(a, -EINVAL);
	return region;
}

static struct mapping *save_mapping(struct model *m, struct archive *a, struct mapping *mapping)
{
	if (a->is_loading)
		mapping = save_new(m, a, sizeof *mapping);
	if (!mapping)
		return NULL;
	archive_fields(a, &mapping->span, span_fields);
	archive_fields(a, mapping, mapping_fields);
	if (mapping->span.kind != SPAN_MAPPING || mapping->span.end < mapping->span.start)
		archive_fail(a, -EINVAL);
	return mapping;
}

static struct span *save_reservation(struct model *m, struct archive *a, struct span *span)
{
	if (a->is_loading)
		span = save_new(m, a, sizeof *span);
	if (!span)
		return NULL;
	archive_fields(a, span, span_fields);
	if (span->kind != SPAN_RESERVATION)
		archive_fail(a, -EINVAL);
	return span;
}

/* ---------- indexes ---------- */

static struct span *save_span(struct model *m, struct archive *a, struct ranges *index, struct span *span)
{
	uint64_t kind = span ? span->kind : 0;
	archive_number_below(a, &kind, SPAN_RESERVATION + 1);
	if (kind == SPAN_RESERVATION)
		return save_reservation(m, a, span);
	if (kind == SPAN_MAPPING)
		return (struct span *)save_mapping(m, a, (struct mapping *)span);
	struct region *region = save_region(m, a, (struct region *)span);
	if (region && region_index(m, (enum memtrace_space)region->home) != index)
		archive_fail(a, -EINVAL);
	return (struct span *)region;
}

static bool has_place(const struct model *m, const struct ranges *index, const struct span *span,
		      const struct span *previous)
{
	bool is_own = index == &m->handles.reservations;
	if (is_own != (span->kind == SPAN_RESERVATION) ||
	    (span->kind == SPAN_MAPPING && index != &m->regions.device))
		return false;
	/* Reservations are only ever looked up by where they begin. */
	return !previous ||
	       (span->start > previous->start && (is_own || span->start >= previous->end));
}

static struct span *next_span(const struct ranges *index, const struct span *span)
{
	struct span *first = span ? NULL : ranges_at(index, 0);
	return first ? first : ranges_after(index, span ? span->start : 0);
}

static void save_index(struct model *m, struct archive *a, struct ranges *index)
{
	struct span *span = NULL, *previous = NULL;
	for (;; previous = span) {
		span = a->is_loading ? NULL : next_span(index, previous);
		if (!save_has_item(a, span != NULL))
			return;
		span = save_span(m, a, index, span);
		if (!a->is_loading)
			continue;
		if (!a->error && !has_place(m, index, span, previous))
			archive_fail(a, -EINVAL);
		if (!a->error && ranges_insert(index, m->arena, span))
			archive_fail(a, -ENOMEM);
	}
}

/* ---------- handles ---------- */

static void attach(struct archive *a, struct handle *handle, struct mapping *last, struct span *span)
{
	struct mapping *mapping = (struct mapping *)span;
	if (!span || span->kind != SPAN_MAPPING || mapping->handle) {
		archive_fail(a, -EINVAL);
		return;
	}
	mapping->handle = handle;
	mapping->previous = last;
	if (last)
		last->next = mapping;
	else
		handle->mappings = mapping;
	handle->mapping_count++;
}

static void save_mappings_of(struct model *m, struct archive *a, struct handle *handle)
{
	struct mapping *mapping = a->is_loading ? NULL : handle->mappings, *last = NULL;
	while (save_has_item(a, mapping != NULL)) {
		uint64_t start = mapping ? mapping->span.start : 0;
		archive_number(a, &start);
		if (a->is_loading) {
			struct span *span = ranges_at(&m->regions.device, start);
			attach(a, handle, last, span);
			last = (struct mapping *)span;
		} else {
			mapping = mapping->next;
		}
	}
}

static void save_handle(struct model *m, struct archive *a, struct handle *handle)
{
	if (a->is_loading)
		handle = save_new(m, a, sizeof *handle);
	if (!handle)
		return;
	archive_fields(a, handle, handle_fields);
	save_one_memory(m, a, &handle->memory);
	if (a->is_loading && !a->error && handle_restore(m, handle))
		archive_fail(a, m->failed ? -ENOMEM : -EINVAL);
	save_mappings_of(m, a, handle);
}

/* Those that are held, and then the zombies in the order in which they became that. */
static void save_handles(struct model *m, struct archive *a)
{
	struct handle *handle = a->is_loading ? NULL : m->handles.table;
	struct handle *zombie = a->is_loading ? NULL : m->handles.zombie_first;
	for (;;) {
		while (handle && !handle->is_held)
			handle = handle->hh.next;
		struct handle *item = handle ? handle : zombie;
		if (!save_has_item(a, item != NULL))
			return;
		save_handle(m, a, item);
		if (handle)
			handle = handle->hh.next;
		else if (zombie)
			zombie = zombie->zombie_next;
	}
}

/* A mapping of no handle that is known counts for nothing. */
static void uncount_strays(struct ranges *index)
{
	for (struct span *span = next_span(index, NULL); span; span = next_span(index, span)) {
		struct mapping *mapping = (struct mapping *)span;
		if (span->kind == SPAN_MAPPING && !mapping->handle)
			mapping->is_counted = mapping->is_joined = false;
	}
}

/* ---------- pools and graphs ---------- */

static void save_pools(struct model *m, struct archive *a)
{
	struct pool *pool = a->is_loading ? NULL : m->pools;
	while (save_has_item(a, pool != NULL)) {
		struct pool read = {0};
		archive_fields(a, pool ? pool : &read, pool_fields);
		if (a->is_loading && !a->error && pool_restore(m, &read))
			archive_fail(a, -ENOMEM);
		pool = pool ? pool->hh.next : NULL;
	}
}

static void save_graph(struct model *m, struct archive *a, struct graph **table, struct graph *graph)
{
	uint64_t address = graph ? graph->address : 0;
	archive_number(a, &address);
	if (a->is_loading)
		graph = a->error ? NULL : graph_restore(m, table, address);
	if (!graph)
		archive_fail(a, -EINVAL);
	for (uint32_t i = 0; save_has_item(a, graph && i < graph->count); i++) {
		struct graph_node *node = a->is_loading ? graph_add_node(m, graph) : &graph->nodes[i];
		if (node)
			archive_fields(a, node, node_fields);
		else
			archive_fail(a, -ENOMEM);
	}
}

static void save_graphs(struct model *m, struct archive *a, struct graph **table)
{
	struct graph *graph = a->is_loading ? NULL : *table;
	while (save_has_item(a, graph != NULL)) {
		save_graph(m, a, table, graph);
		graph = graph ? graph->hh.next : NULL;
	}
}

/* ---------- all of it ---------- */

void save_memory(struct model *m, struct archive *a)
{
	save_index(m, a, &m->regions.device);
	save_index(m, a, &m->regions.arrays);
	save_index(m, a, &m->regions.host);
	save_index(m, a, &m->regions.imports);
	save_index(m, a, &m->handles.reservations);
	save_handles(m, a);
	if (a->is_loading)
		uncount_strays(&m->regions.device);
	save_pools(m, a);
	save_graphs(m, a, &m->graphs);
	save_graphs(m, a, &m->execs);
}

void save_undo(struct model *m, struct archive *a, struct undo *undo)
{
	archive_fields(a, undo, undo_fields);
	if (save_has_item(a, undo->region != NULL))
		undo->region = save_region(m, a, undo->region);
	if (save_has_item(a, undo->reservation != NULL))
		undo->reservation = save_reservation(m, a, undo->reservation);
	struct mapping **place = &undo->mappings;
	while (save_has_item(a, *place != NULL)) {
		*place = save_mapping(m, a, *place);
		if (!*place)
			return;
		(*place)->is_counted = (*place)->is_joined = false; /* as of every one without a handle */
		place = &(*place)->next;
	}
}
