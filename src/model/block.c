/* What PyTorch's caching allocator handed out. Owns the table of live blocks. Every block event
 * ends what its thread was trying (trial.c): in PyTorch they are the last thing that an allocation
 * or a free does. */
#include "model/model_private.h"

struct block *block_find(const struct model *m, uint64_t address)
{
	return blocks_find(&m->blocks, address);
}

/* False: out of memory. */
static bool add_to_table(struct model *m, struct block *block)
{
	m->failed |= blocks_add(&m->blocks, m->arena, block->address, block) != 0;
	return !m->failed;
}

struct block *block_restore(struct model *m, uint64_t address)
{
	struct block *block = block_find(m, address) ? NULL : model_new(m, sizeof *block);
	if (!block)
		return NULL;
	block->address = address;
	return add_to_table(m, block) ? block : NULL;
}

static void count_block(struct model *m, struct device *d, struct span *span, const struct block *block,
			enum change change, uint64_t sequence)
{
	struct spread *spread = &d->now.spread;
	uint64_t internal = block->asked_bytes ? block->bytes - block->asked_bytes : 0;
	meter_change(&d->now.pytorch_allocated, change, block->bytes);
	spread->internal_bytes = bytes_change(spread->internal_bytes, change, internal);
	spread->unasked_bytes = bytes_change(spread->unasked_bytes, change, block->asked_bytes ? 0 : block->bytes);
	segment_note_block(m, span, block, change, sequence);
	composition_change(m, &d->allocated, change, block->stack, block->facts.label, block->bytes);
	device_has_changed(m, d, NULL);
}

static void note_let_go(struct model *m, struct device *d, const struct block *block)
{
	struct segment_block described = segment_block_of(block);
	if (!m->is_frozen)
		let_go_add(m, &d->let_go, &described);
}

static void remove_block(struct model *m, struct block *block, const struct event *e)
{
	struct device *d = device_of(m, block->slot);
	attribution_note_free(m, block, e);
	if (d) {
		count_block(m, d, regions_at(m, block->address), block, CHANGE_GIVEN_BACK, e->sequence);
		trend_note(&d->trend, CHANGE_GIVEN_BACK, d->now.pytorch_allocated.live_bytes, e->sequence);
		casts_note_free(m, d, block, e);
		bursts_note_free(m, d, block, e);
		note_let_go(m, d, block);
	}
	m->totals.live_blocks--;
	blocks_remove(&m->blocks, block->address);
	arena_free(m->arena, block, sizeof *block);
}

static void add_block(struct model *m, struct device *d, struct span *span, const struct event *e)
{
	stage_end_look(m, d);
	struct block *block = model_new(m, sizeof *block);
	if (!block)
		return;
	block->address = e->address;
	block->bytes = e->bytes;
	block->stream = e->stream;
	block->asked_bytes = e->extra <= e->bytes ? e->extra : 0;
	block->stack = e->stack;
	block->thread = e->thread <= UINT16_MAX ? (uint16_t)e->thread : 0;
	block->slot = d->slot;
	elements_note(m, e);
	if (!add_to_table(m, block))
		return;
	m->totals.live_blocks++;
	d->is_unwinding = false;
	attribution_note_alloc(m, block, e);
	count_block(m, d, span, block, CHANGE_OBTAINED, e->sequence);
	attribution_counted(m, block, d, e);
	device_note_peak(d, e, NULL);
	segment_note_fullest(d, e);
	if (!m->is_frozen)
		let_go_note_alloc(&d->let_go, e->sequence);
	trend_note(&d->trend, CHANGE_OBTAINED, d->now.pytorch_allocated.live_bytes, e->sequence);
}

void block_note_alloc(struct model *m, const struct event *e)
{
	struct device *d = device_of(m, e->device);
	struct thread *thread = thread_of(m, e->thread);
	if (!d)
		return;
	device_has_blocks(d);
	struct block *old = block_find(m, e->address);
	if (old) {
		m->totals.double_allocations++;
		remove_block(m, old, e);
	}
	struct span *span = regions_at(m, e->address);
	if (span)
		regions_note_landing(m, span);
	add_block(m, d, span, e);
	if (thread->trial.is_active && trial_was_retry(m, &thread->trial, d->slot, e->bytes)) {
		d->retries++;
		d->waits += trial_has_waited(m, &thread->trial, e);
	}
	trial_end(thread, e);
}

void block_note_free(struct model *m, const struct event *e)
{
	struct block *block = block_find(m, e->address);
	if (block) {
		remove_block(m, block, e);
	} else {
		attribution_note_free(m, NULL, e);
		m->totals.unknown_frees++;
	}
	trial_end(thread_of(m, e->thread), e);
}

/* From the host; to any other address it says nothing. */
void block_note_copy(struct model *m, const struct event *e)
{
	struct block *block = block_find(m, e->address);
	const struct span *source = e->extra ? ranges_before(&m->regions.device, e->extra) : NULL;
	bool is_from_device = source && e->extra < source->end;
	if (block && !is_from_device)
		classify_copy(m, block);
}

bool model_block_stream(const struct model *m, uint64_t address, uint64_t *stream)
{
	const struct block *block = block_find(m, address);
	if (block)
		*stream = block->stream;
	return block != NULL;
}
