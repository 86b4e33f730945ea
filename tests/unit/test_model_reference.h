/* The model's rules once more, without any cleverness: tables that are searched from end to end,
 * sums that are made anew after every event, and a full copy of everything at each new peak. For a
 * small world: two devices, a few stacks, small addresses. */
#ifndef TEST_MODEL_REFERENCE_H
#define TEST_MODEL_REFERENCE_H

#include "test_model_reference_sums.h"

/* ---------- memory ---------- */

static inline void ref_set_live(struct reference *r, struct ref_memory *m, bool live)
{
	if (m->live == live)
		return;
	ref_touch(r, m->device);
	m->live = live;
	if (live)
		ref_rise(r, m->device, m);
}

static inline uint64_t ref_mapping_count(struct reference *r, const struct ref_memory *handle)
{
	uint64_t count = 0;
	for (int i = 0; i < REF_MAPPINGS; i++)
		count += ref_mapped(r, &r->mappings[i]) == handle;
	return count;
}

static inline void ref_settle(struct reference *r, struct ref_memory *handle)
{
	ref_set_live(r, handle, handle->references || ref_mapping_count(r, handle));
}

static inline void ref_remove_mapping(struct reference *r, struct ref_mapping *mapping, uint64_t by)
{
	struct ref_memory *handle = ref_mapped(r, mapping);
	mapping->was_cache = handle && handle->cache;
	mapping->live = false;
	mapping->removed_by = by;
	if (handle)
		ref_settle(r, handle);
}

static inline bool ref_overlaps(uint64_t start, uint64_t bytes, uint64_t other,
				uint64_t other_bytes)
{
	return start == other || (start < other + other_bytes && other < start + bytes);
}

/* `index`: 0 device addresses, 1 arrays, 2 host. */
static inline int ref_index(enum memtrace_space space)
{
	if (space == MEMTRACE_SPACE_ARRAY)
		return 1;
	return space == MEMTRACE_SPACE_PINNED || space == MEMTRACE_SPACE_REGISTERED ? 2 : 0;
}

static inline void ref_clear(struct reference *r, int index, uint64_t start, uint64_t bytes)
{
	for (int i = 0; i < REF_MEMORY; i++) {
		struct ref_memory *m = &r->memory[i];
		if (m->used && m->live && !m->is_handle && ref_index(m->space) == index &&
		    ref_overlaps(start, bytes, m->address, ref_is_array(m) ? 0 : m->bytes)) {
			r->double_allocations++;
			ref_set_live(r, m, false);
		}
	}
	for (int i = 0; i < REF_MAPPINGS && index == 0; i++) {
		struct ref_mapping *m = &r->mappings[i];
		if (m->live && ref_overlaps(start, bytes, m->address, m->bytes)) {
			r->double_allocations++;
			ref_remove_mapping(r, m, 0);
		}
	}
}

static inline struct ref_memory *ref_new_memory(struct reference *r, const struct event *e)
{
	struct ref_memory *m = r->memory;
	while (m->used && (m->live || m->removed_by || m->is_handle))
		m++;
	assert_true(m < r->memory + REF_MEMORY);
	bool is_host = ref_index(e->space) == 2 || e->device == MEMTRACE_DEVICE_HOST;
	*m = (struct ref_memory){
		.used = true,
		.is_handle = e->space == MEMTRACE_SPACE_VMM,
		.space = e->space,
		.address = e->address,
		.bytes = e->bytes,
		.born = e->sequence,
		.context = e->stream,
		.stack = e->stack,
		.owner = ref_owner(e->stack),
		.device = is_host ? REF_HOST : e->device,
	};
	bool is_pytorch = m->owner == MODULE_TORCH && !is_host;
	m->tensor = is_pytorch && e->space == MEMTRACE_SPACE_STREAM;
	m->cache = is_pytorch && !m->tensor;
	return m;
}

static inline void ref_count_new(struct reference *r, const struct ref_memory *m)
{
	if (m->device >= REF_DEVICES)
		return;
	struct ref_device *d = &r->devices[m->device];
	d->reserved_allocations++;
	d->reserved_total += m->bytes;
	d->composition[0].allocations++;
	d->composition[0].total += m->bytes;
	if (!m->cache) {
		d->composition[1].allocations++;
		d->composition[1].total += m->bytes;
	}
	if (m->tensor) {
		d->block_allocations++;
		d->block_total += m->bytes;
	}
	if (m->tensor || (m->cache && !m->is_handle)) {
		d->cache_allocations++;
		d->cache_total += m->bytes;
	}
}

static inline void ref_alloc(struct reference *r, const struct event *e)
{
	struct ref_memory *old = e->space == MEMTRACE_SPACE_VMM ? ref_handle(r, e->address) : NULL;
	if (old && old->live) {
		r->double_allocations++;
		old->references = 0;
		for (int i = 0; i < REF_MAPPINGS; i++)
			if (ref_mapped(r, &r->mappings[i]) == old)
				r->mappings[i].attached = false;
		ref_settle(r, old);
	}
	if (old)
		old->used = false;
	if (e->space != MEMTRACE_SPACE_VMM)
		ref_clear(r, ref_index(e->space), e->address,
			  e->space == MEMTRACE_SPACE_ARRAY ? 0 : e->bytes);
	struct ref_memory *m = ref_new_memory(r, e);
	m->references = m->is_handle;
	ref_count_new(r, m);
	ref_set_live(r, m, true);
}

static inline void ref_free(struct reference *r, const struct event *e)
{
	if (e->space == MEMTRACE_SPACE_VMM) {
		struct ref_memory *h = ref_handle(r, e->address);
		if (!h || !h->references) {
			r->unknown_frees++;
			return;
		}
		struct ref_handle_free *f = r->handle_frees;
		while (f->sequence)
			f++;
		*f = (struct ref_handle_free){e->sequence, h->address, h->born};
		h->references--;
		ref_settle(r, h);
		return;
	}
	for (int i = 0; i < REF_MEMORY; i++) {
		struct ref_memory *m = &r->memory[i];
		if (m->used && m->live && !m->is_handle && m->address == e->address &&
		    ref_index(m->space) == ref_index(e->space)) {
			m->removed_by = e->sequence;
			ref_set_live(r, m, false);
			return;
		}
	}
	r->unknown_frees++;
}

static inline void ref_end_context(struct reference *r, const struct event *e)
{
	for (int i = 0; i < REF_MEMORY && e->extra != MEMTRACE_CONTEXT_GREEN; i++) {
		struct ref_memory *m = &r->memory[i];
		bool is_in_it = e->extra == MEMTRACE_CONTEXT_OWN
					? m->context == e->address
					: !m->context && m->device == e->device;
		bool can_be = m->space == MEMTRACE_SPACE_DEVICE ||
			      m->space == MEMTRACE_SPACE_MANAGED || ref_is_array(m);
		if (m->used && m->live && can_be && is_in_it)
			ref_set_live(r, m, false);
	}
}

static inline void ref_retain(struct reference *r, const struct event *e)
{
	struct ref_memory *h = ref_handle(r, e->address);
	if (h) {
		h->references++;
		ref_settle(r, h);
	}
}

/* ---------- mappings ---------- */

static inline void ref_attach(struct reference *r, struct ref_mapping *mapping, bool is_new)
{
	mapping->live = true;
	struct ref_memory *h = ref_mapped(r, mapping);
	if (!h)
		return;
	if (h->device < REF_DEVICES && h->cache && is_new) {
		r->devices[h->device].cache_allocations++;
		r->devices[h->device].cache_total += mapping->bytes;
	}
	ref_settle(r, h);
	if (h->cache)
		ref_rise(r, h->device, NULL);
}

static inline void ref_map(struct reference *r, const struct event *e)
{
	ref_clear(r, 0, e->address, e->bytes);
	struct ref_mapping *mapping = r->mappings;
	while (mapping->used && (mapping->live || mapping->removed_by))
		mapping++;
	assert_true(mapping < r->mappings + REF_MAPPINGS);
	struct ref_memory *h = ref_handle(r, e->extra);
	*mapping = (struct ref_mapping){.used = true,
					.address = e->address,
					.bytes = e->bytes,
					.handle = e->extra,
					.born = h ? h->born : 0,
					.attached = h};
	ref_attach(r, mapping, true);
}

static inline void ref_unmap(struct reference *r, const struct event *e)
{
	bool found = false;
	for (int i = 0; i < REF_MAPPINGS; i++) {
		struct ref_mapping *m = &r->mappings[i];
		if (m->live && m->address >= e->address && m->address < e->address + e->bytes) {
			ref_remove_mapping(r, m, e->sequence);
			found = true;
		}
	}
	r->unknown_frees += !found;
}

static inline uint64_t ref_segments(struct reference *r, unsigned device)
{
	uint64_t count = 0;
	for (int i = 0; i < REF_MEMORY; i++) {
		const struct ref_memory *m = &r->memory[i];
		count += m->used && m->live && !m->is_handle && m->cache && m->device == device;
	}
	for (int i = 0; i < REF_MAPPINGS; i++) {
		const struct ref_memory *m = ref_mapped(r, &r->mappings[i]);
		bool goes_on = false;
		if (!m || !m->cache || m->device != device)
			continue;
		for (int j = 0; j < REF_MAPPINGS; j++) {
			const struct ref_memory *left = ref_mapped(r, &r->mappings[j]);
			goes_on |= left && left->cache && left->device == device &&
				   r->mappings[j].address + r->mappings[j].bytes ==
					   r->mappings[i].address;
		}
		for (int j = 0; j < 4; j++)
			goes_on &= r->boundary[j] != r->mappings[i].address;
		count += !goes_on;
	}
	return count;
}

/* ---------- blocks ---------- */

static inline struct ref_block *ref_find_block(struct reference *r, uint64_t address)
{
	for (int i = 0; i < REF_BLOCKS; i++)
		if (r->blocks[i].live && r->blocks[i].address == address)
			return &r->blocks[i];
	return NULL;
}

static inline void ref_remove_block(struct reference *r, struct ref_block *block)
{
	ref_touch(r, block->device);
	block->live = false;
}

static inline void ref_become_cache(struct reference *r, struct ref_memory *m)
{
	if (m->cache || m->tensor || m->device >= REF_DEVICES)
		return;
	struct ref_device *d = &r->devices[m->device];
	struct ref_composition *c = &d->composition[1];
	if (c->revocable == m)
		c->peak = c->previous;
	ref_touch(r, m->device);
	m->cache = true;
	if (d->owner_raised_by[m->owner] == m->born)
		d->owner_peak[m->owner] = d->owner_before[m->owner];
	m->owner = MODULE_TORCH;
	c->allocations--;
	c->total -= m->bytes;
	if (!m->is_handle) {
		d->cache_allocations++;
		d->cache_total += m->bytes;
	}
	for (int i = 0; i < REF_MAPPINGS; i++)
		if (ref_mapped(r, &r->mappings[i]) == m) {
			d->cache_allocations++;
			d->cache_total += r->mappings[i].bytes;
		}
	ref_rise(r, m->device, NULL);
}

static inline void ref_land(struct reference *r, uint64_t address)
{
	for (int i = 0; i < REF_MEMORY; i++) {
		struct ref_memory *m = &r->memory[i];
		if (m->used && m->live && !m->is_handle && ref_index(m->space) == 0 &&
		    address >= m->address && address < m->address + m->bytes)
			ref_become_cache(r, m);
	}
	for (int i = 0; i < REF_MAPPINGS; i++) {
		struct ref_memory *m = ref_mapped(r, &r->mappings[i]);
		if (m && address >= r->mappings[i].address &&
		    address < r->mappings[i].address + r->mappings[i].bytes)
			ref_become_cache(r, m);
	}
}

static inline void ref_block_alloc(struct reference *r, const struct event *e)
{
	struct ref_block *block = ref_find_block(r, e->address);
	struct ref_device *d = &r->devices[e->device];
	d->has_blocks = true;
	if (block) {
		r->double_allocations++;
		ref_remove_block(r, block);
	}
	ref_land(r, e->address);
	for (block = r->blocks; block->live;)
		block++;
	assert_true(block < r->blocks + REF_BLOCKS);
	*block = (struct ref_block){true, e->address, e->bytes, e->stack, e->device};
	d->block_allocations++;
	d->block_total += e->bytes;
	d->composition[1].allocations++;
	d->composition[1].total += e->bytes;
	ref_touch(r, e->device);
	ref_rise(r, e->device, NULL);
}

static inline void ref_block_free(struct reference *r, const struct event *e)
{
	struct ref_block *block = ref_find_block(r, e->address);
	if (block)
		ref_remove_block(r, block);
	else
		r->unknown_frees++;
}

/* ---------- undoing, and forgetting what can no longer be undone ---------- */

static inline void ref_forget(struct reference *r, uint64_t sequence)
{
	for (int i = 0; i < REF_MEMORY; i++)
		if (r->memory[i].removed_by == sequence)
			r->memory[i].removed_by = 0;
	for (int i = 0; i < REF_MAPPINGS; i++)
		if (r->mappings[i].removed_by == sequence)
			r->mappings[i].removed_by = 0;
	for (int i = 0; i < 8; i++)
		if (r->handle_frees[i].sequence == sequence)
			r->handle_frees[i].sequence = 0;
}

static inline void ref_undo_handle(struct reference *r, uint64_t sequence)
{
	for (int i = 0; i < 8; i++) {
		const struct ref_handle_free *f = &r->handle_frees[i];
		struct ref_memory *h = f->sequence == sequence ? ref_handle(r, f->address) : NULL;
		if (h && h->born == f->born) {
			h->references++;
			ref_settle(r, h);
		}
	}
}

/* `was_unknown`: it had freed nothing. */
static inline void ref_undo(struct reference *r, uint64_t sequence, bool was_unknown)
{
	r->unknown_frees -= was_unknown;
	for (int i = 0; i < REF_MEMORY; i++) {
		struct ref_memory *m = &r->memory[i];
		if (m->used && m->removed_by == sequence) {
			ref_clear(r, ref_index(m->space), m->address,
				  ref_is_array(m) ? 0 : m->bytes);
			ref_set_live(r, m, true);
		}
	}
	ref_undo_handle(r, sequence);
	for (int i = 0; i < REF_MAPPINGS; i++) {
		struct ref_mapping *m = &r->mappings[i];
		if (m->removed_by == sequence) {
			ref_clear(r, 0, m->address, m->bytes);
			ref_attach(r, m, !m->was_cache);
		}
	}
	ref_forget(r, sequence);
}

#endif
