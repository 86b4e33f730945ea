/* What a thread did lately, and the undoing of a free that failed. A free is noted before the call
 * that frees, so that another thread which is given the same address cannot be noted first; when
 * the call fails, everything is put back as it was. A peak that other threads would have reached
 * between the two is found at the second. Owns struct thread and, until the thread's next free,
 * what its last one removed. */
#include "model/model_private.h"

int threads_reserve(struct model *m, uint32_t id)
{
	return model_grow(m, &m->threads, &m->thread_capacity, id, sizeof *m->threads);
}

struct thread *thread_of(struct model *m, uint32_t id)
{
	return &m->threads[id];
}

static struct mapping *take_mapping(struct undo *undo)
{
	struct mapping *mapping = undo->mappings;
	if (mapping) {
		undo->mappings = mapping->next;
		mapping->next = NULL;
	}
	return mapping;
}

/* What the free before this one removed is gone for good. */
static void clear_undo(struct model *m, struct undo *undo)
{
	struct mapping *mapping;
	if (undo->region)
		region_drop(m, undo->region);
	arena_free(m->arena, undo->reservation, sizeof *undo->reservation);
	while ((mapping = take_mapping(undo)))
		mapping_drop(m, mapping);
	*undo = (struct undo){0};
}

struct undo *undo_begin(struct model *m, const struct event *e)
{
	struct undo *undo = &thread_of(m, e->thread)->undo;
	clear_undo(m, undo);
	undo->is_set = true;
	undo->what = (uint8_t)e->what;
	undo->sequence = e->sequence;
	undo->space = (uint8_t)e->space;
	undo->address = e->address;
	return undo;
}

void note_unknown_free(struct model *m, const struct event *e)
{
	m->totals.unknown_frees++;
	thread_of(m, e->thread)->undo.was_unknown = true;
}

static void keep_memory(struct model *m, struct undo *undo, const struct event *e)
{
	struct mapping *mapping;
	if (undo->region)
		region_keep(m, undo->region, e);
	if (undo->reservation)
		reservation_keep(m, undo->reservation);
	if (undo->has_reference)
		region_reopen(m, undo->address, undo->space);
	if (undo->has_handle)
		handle_keep(m, undo->address, undo->handle_born, e);
	while ((mapping = take_mapping(undo)))
		mapping_keep(m, mapping, e);
	if (undo->what == MEMTRACE_POOL_DESTROY && !undo->was_unknown)
		pool_keep(m, undo->address);
}

/* A name that is not that of the thread's last free: it was lost, and so there is nothing to undo.
 */
void undo_note_failed(struct model *m, const struct event *e)
{
	struct thread *thread = thread_of(m, e->thread);
	struct undo undo = thread->undo;
	if (!undo.is_set || undo.sequence != e->extra)
		return;
	thread->undo = (struct undo){0};
	m->totals.unknown_frees -= undo.was_unknown;
	if (thread->trial.is_active) {
		thread->trial.pending_bytes -= undo.pending_bytes;
		thread->trial.pending_cache_bytes -= undo.pending_cache_bytes;
	}
	keep_memory(m, &undo, e);
}
