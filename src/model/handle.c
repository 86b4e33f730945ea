/* Physical memory of the virtual memory API, by handle. Owns the handles: each is counted once,
 * from its creation until neither a reference nor a mapping is left. Such a handle stays as a
 * zombie until its value is given out again: a retain that was on its way may still revive it.
 * Zombies are few: the oldest go first. */
#include <string.h>

#include "model/model_private.h"

#define ZOMBIES_MAX 4096

struct handle *handle_find(struct model *m, uint64_t address)
{
	struct handle *handle;
	TABLE_FIND(m->handles.table, &address, handle);
	return handle;
}

static void unlink_zombie(struct handles *all, struct handle *handle)
{
	if (handle->zombie_previous)
		handle->zombie_previous->zombie_next = handle->zombie_next;
	else
		all->zombie_first = handle->zombie_next;
	if (handle->zombie_next)
		handle->zombie_next->zombie_previous = handle->zombie_previous;
	else
		all->zombie_last = handle->zombie_previous;
	handle->zombie_previous = handle->zombie_next = NULL;
	all->zombie_count--;
}

static void link_zombie(struct handles *all, struct handle *handle)
{
	handle->zombie_previous = all->zombie_last;
	if (all->zombie_last)
		all->zombie_last->zombie_next = handle;
	else
		all->zombie_first = handle;
	all->zombie_last = handle;
	all->zombie_count++;
}

int handle_restore(struct model *m, struct handle *handle)
{
	if (handle_find(m, handle->address))
		return -1;
	TABLE_ADD(m->handles.table, address, handle);
	if (!handle->is_held)
		link_zombie(&m->handles, handle);
	return m->failed ? -1 : 0;
}

static void drop_zombie(struct model *m, struct handle *handle)
{
	unlink_zombie(&m->handles, handle);
	HASH_DEL(m->handles.table, handle);
	arena_free(m->arena, handle, sizeof *handle);
}

void handle_forget_zombie(struct model *m, uint64_t address)
{
	struct handle *handle = handle_find(m, address);
	if (handle && !handle->is_held)
		drop_zombie(m, handle);
}

static void become_zombie(struct model *m, struct handle *handle)
{
	link_zombie(&m->handles, handle);
	if (m->handles.zombie_count > ZOMBIES_MAX)
		drop_zombie(m, m->handles.zombie_first);
}

void handle_settle(struct model *m, struct handle *handle, enum change change,
		   const struct event *e)
{
	bool is_held = handle->references || handle->mapping_count;
	if (is_held == handle->is_held)
		return;
	handle->is_held = is_held;
	if (memory_is_counted(&handle->memory))
		m->totals.live_regions += is_held ? 1 : UINT64_MAX;
	memory_change(m, &handle->memory, is_held ? change : CHANGE_GIVEN_BACK, e);
	if (is_held) {
		unlink_zombie(&m->handles, handle);
		return;
	}
	trial_note_freed(m, &handle->memory, handle->memory.bytes, 0, e);
	become_zombie(m, handle);
}

/* Its value is given out again although something still held it. */
static void release_all(struct model *m, struct handle *handle, const struct event *e)
{
	m->totals.double_allocations++;
	handle->references = 0;
	while (handle->mappings)
		mapping_detach(m, handle->mappings, e);
	handle_settle(m, handle, CHANGE_GIVEN_BACK, e);
}

/* An import that gives a handle which is there already is one more reference to it. */
static bool is_known_import(const struct handle *handle, const struct event *e)
{
	return e->space == MEMTRACE_SPACE_EXTERNAL && handle && handle->is_held;
}

void handle_note_alloc(struct model *m, const struct event *e)
{
	struct handle *old = handle_find(m, e->address);
	if (is_known_import(old, e)) {
		old->references++;
		return;
	}
	if (old && old->is_held)
		release_all(m, old, e);
	handle_forget_zombie(m, e->address);
	struct handle *handle = model_new(m, sizeof *handle);
	if (!handle)
		return;
	handle->address = e->address;
	memory_init(m, &handle->memory, e);
	TABLE_ADD(m->handles.table, address, handle);
	if (m->failed)
		return;
	link_zombie(&m->handles, handle);
	handle->references = 1;
	handle_settle(m, handle, CHANGE_OBTAINED, e);
	trial_note_obtained(m, &handle->memory, e);
}

void handle_note_retain(struct model *m, const struct event *e)
{
	struct handle *handle = handle_find(m, e->address);
	if (!handle)
		return; /* of another process, or from before the trace */
	handle->references++;
	handle_settle(m, handle, CHANGE_KEPT, e);
}

void handle_note_free(struct model *m, const struct event *e)
{
	struct undo *undo = undo_begin(m, e);
	struct handle *handle = handle_find(m, e->address);
	if (!handle || !handle->references) {
		note_unknown_free(m, e);
		return;
	}
	undo->has_handle = true;
	undo->handle_born = handle->memory.born;
	handle->references--;
	handle_settle(m, handle, CHANGE_GIVEN_BACK, e);
}

void handle_keep(struct model *m, uint64_t address, uint64_t born, const struct event *e)
{
	struct handle *handle = handle_find(m, address);
	if (!handle || handle->memory.born != born)
		return;
	handle->references++;
	handle_settle(m, handle, CHANGE_KEPT, e);
}

void handle_become_cache(struct model *m, struct handle *handle)
{
	if (handle->memory.role != ROLE_OUTSIDE || handle->memory.slot == SLOT_HOST)
		return;
	memory_become_cache(m, &handle->memory);
	for (struct mapping *mapping = handle->mappings; mapping; mapping = mapping->next)
		mapping_count_cache(m, mapping, CHANGE_OBTAINED);
}
