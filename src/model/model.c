/* The model's door: takes events in ticket order and hands each to the file that knows what it
 * means. Owns the arena and what an event may say: ids that are not defined become "unknown", sizes
 * that cannot be are counted and left out. Must never do I/O, exit, or keep a pointer into an
 * event. */
#include <errno.h>
#include <string.h>

#include "model/model_private.h"

void *model_new(struct model *m, size_t bytes)
{
	void *at = arena_alloc(m->arena, bytes);
	if (!at)
		m->failed = true;
	return at;
}

int model_grow(struct model *m, void *array, uint32_t *capacity, uint32_t wanted,
	       size_t entry_bytes)
{
	uint32_t fresh = *capacity * 2 > 16 ? *capacity * 2 : 16;
	void *old;
	if (wanted < *capacity)
		return 0;
	if (fresh <= wanted)
		fresh = wanted + 1;
	memcpy(&old, array, sizeof old);
	void *at = arena_resize(m->arena, old, *capacity * entry_bytes, fresh * entry_bytes);
	if (!at) {
		m->failed = true;
		return -ENOMEM;
	}
	memcpy(array, &at, sizeof at);
	*capacity = fresh;
	return 0;
}

struct model *model_create(const struct defs *defs)
{
	struct arena *arena = arena_create();
	struct model *m = arena ? arena_alloc(arena, sizeof *m) : NULL;
	if (!m) {
		if (arena)
			arena_release(arena);
		return NULL;
	}
	m->arena = arena;
	m->defs = defs;
	if (owners_init(m) || threads_reserve(m, 0) || attribution_init(m)) {
		arena_release(arena);
		return NULL;
	}
	return m;
}

static void release_maps(struct device *d)
{
	segment_map_release(d->frozen_map);
	if (d->stage_end.moment)
		segment_map_release(d->stage_end.moment->map);
}

void model_release(struct model *m)
{
	if (!m)
		return;
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++)
		if (m->devices[slot])
			release_maps(m->devices[slot]);
	for (uint32_t i = 0; i < m->oom_count; i++)
		segment_map_release(m->ooms[i]->map);
	for (uint32_t i = 0; i < m->thread_capacity; i++)
		if (m->threads[i].suspect)
			segment_map_release(m->threads[i].suspect->map);
	arena_release(m->arena); /* the model is in it */
}

/* ---------- what each kind means ---------- */

static void note_alloc(struct model *m, const struct event *e)
{
	if (!e->address || e->space == MEMTRACE_SPACE_NONE || e->space >= MEMTRACE_SPACE_BLOCK)
		return;
	bool is_external = e->space == MEMTRACE_SPACE_EXTERNAL;
	if ((is_external ? e->extra : e->space) == MEMTRACE_SPACE_VMM)
		handle_note_alloc(m, e);
	else
		region_note_alloc(m, e);
	if (!is_external)
		oom_note_success(m, e);
}

static void note_free(struct model *m, const struct event *e)
{
	if (!e->address)
		return;
	if (e->space == MEMTRACE_SPACE_VMM)
		handle_note_free(m, e);
	else
		region_note_free(m, e);
}

static void note_block_alloc(struct model *m, const struct event *e)
{
	m->totals.block_events++;
	block_note_alloc(m, e);
	oom_note_success(m, e);
}

static void note_block_free(struct model *m, const struct event *e)
{
	m->totals.block_events++;
	block_note_free(m, e);
}

static void note_meminfo(struct model *m, const struct event *e)
{
	reconcile_note_meminfo(m, e);
	trial_note_meminfo(m, e);
	oom_note_meminfo(m, e);
}

static void note_context_end(struct model *m, const struct event *e)
{
	reconcile_note_cause(m, e);
	regions_note_context_end(m, e);
}

static void note_graph_exec(struct model *m, const struct event *e)
{
	reconcile_note_cause(m, e);
	graph_note_exec(m, e);
}

static void note_graph_exec_end(struct model *m, const struct event *e)
{
	reconcile_note_cause(m, e);
	graph_note_end(m, e);
}

static void (*const handlers[MEMTRACE_WHAT_COUNT])(struct model *, const struct event *) = {
	[MEMTRACE_ALLOC] = note_alloc,
	[MEMTRACE_FREE] = note_free,
	[MEMTRACE_FREE_FAILED] = undo_note_failed,
	[MEMTRACE_MAP] = mapping_note_map,
	[MEMTRACE_UNMAP] = mapping_note_unmap,
	[MEMTRACE_RETAIN] = handle_note_retain,
	[MEMTRACE_RESERVE] = reservation_note_reserve,
	[MEMTRACE_RELEASE] = reservation_note_release,
	[MEMTRACE_BLOCK_ALLOC] = note_block_alloc,
	[MEMTRACE_BLOCK_FREE] = note_block_free,
	[MEMTRACE_BLOCK_OOM] = oom_note_block,
	[MEMTRACE_OOM] = oom_note_failure,
	[MEMTRACE_POOL_CREATE] = pool_note,
	[MEMTRACE_POOL_DESTROY] = pool_note,
	[MEMTRACE_POOL_READ] = pool_note,
	[MEMTRACE_MEMINFO] = note_meminfo,
	[MEMTRACE_READING] = reconcile_note_reading,
	[MEMTRACE_CONTEXT] = reconcile_note_cause,
	[MEMTRACE_CONTEXT_END] = note_context_end,
	[MEMTRACE_MODULE] = reconcile_note_cause,
	[MEMTRACE_MODULE_END] = reconcile_note_cause,
	[MEMTRACE_CAPTURE] = graph_note_capture,
	[MEMTRACE_GRAPH_ALLOC] = graph_note_node,
	[MEMTRACE_GRAPH_FREE] = graph_note_node,
	[MEMTRACE_GRAPH_EXEC] = note_graph_exec,
	[MEMTRACE_GRAPH_LAUNCH] = graph_note_launch,
	[MEMTRACE_GRAPH_EXEC_END] = note_graph_exec_end,
	[MEMTRACE_GRAPH_END] = graph_note_end,
	[MEMTRACE_COPY] = block_note_copy,
	[MEMTRACE_PHASE] = attribution_note_phase,
};

/* ---------- an event ---------- */

static bool is_range(enum memtrace_what what)
{
	return what == MEMTRACE_ALLOC || what == MEMTRACE_BLOCK_ALLOC || what == MEMTRACE_MAP ||
	       what == MEMTRACE_UNMAP || what == MEMTRACE_RESERVE || what == MEMTRACE_GRAPH_ALLOC;
}

static bool is_impossible(const struct event *e)
{
	return is_range(e->what) && (e->bytes > BYTES_MAX || e->address + e->bytes < e->address);
}

static void freeze(struct model *m, uint64_t sequence)
{
	settle_at_exit(m);
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++)
		if (m->devices[slot])
			device_freeze(m, m->devices[slot], sequence);
	m->frozen_totals = m->totals;
	m->is_frozen = true;
}

static void apply(struct model *m, const struct event *e)
{
	struct thread *thread = thread_of(m, e->thread);
	if (e->flags & MEMTRACE_AT_EXIT && !m->is_frozen)
		freeze(m, e->sequence);
	m->totals.events++;
	if (e->time_ns > m->totals.last_time_ns)
		m->totals.last_time_ns = e->time_ns;
	thread->event_count++;
	oom_check_deadline(m, thread);
	witness_note(m, e);
	if (is_impossible(e))
		m->totals.impossible_sizes++;
	else if (e->what < MEMTRACE_WHAT_COUNT && handlers[e->what])
		handlers[e->what](m, e);
}

int model_apply(struct model *m, const struct event *event)
{
	struct event e = *event;
	if (e.stack > defs_stack_count(m->defs)) {
		m->has_gaps = true;
		e.stack = 0;
	}
	if (e.thread > defs_thread_count(m->defs))
		e.thread = 0;
	if (!m->failed && !threads_reserve(m, e.thread))
		apply(m, &e);
	return m->failed ? -ENOMEM : 0;
}

bool model_failed(const struct model *m)
{
	return m->failed;
}

void model_note_gaps(struct model *m)
{
	m->has_gaps = true;
}

void model_note_lost(struct model *m, uint64_t lost_count, uint64_t disagreement_count)
{
	m->lost_count = lost_count;
	m->disagreement_count = disagreement_count;
}

void model_finish(struct model *m)
{
	if (m->failed)
		return;
	oom_finish(m);
	settle_for_report(m);
}
