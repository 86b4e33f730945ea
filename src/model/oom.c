/* Running out of memory. Owns the OOMs that are described, and the failures that may become one.
 * PyTorch says so itself; with its cudaMallocAsync backend a failure after which it asks the device
 * what is free is one; of anybody else a failing call is only suspected: programs probe, and back
 * off. It becomes an OOM when its thread obtains no device memory within its next PATIENCE events,
 * or until the end. Failures in a row are one, told as the first. */
#include "model/model_private.h"

#define PATIENCE 10000

void suspect_release(struct model *m, struct suspect *suspect)
{
	if (!suspect)
		return;
	snapshot_release(m, &suspect->stacks);
	segment_map_release(suspect->map);
	arena_free(m->arena, suspect->trend, sizeof *suspect->trend);
	arena_free(m->arena, suspect, sizeof *suspect);
}

static void learn_untracked(struct model_oom *oom, uint64_t bytes)
{
	if (oom->untracked_known)
		return;
	oom->untracked_known = true;
	oom->untracked_bytes = bytes;
}

void oom_note_untracked(struct model *m, const struct device *d)
{
	for (uint32_t i = 0; i < m->oom_count; i++)
		if (m->ooms[i]->oom.device == d->slot)
			learn_untracked(&m->ooms[i]->oom, d->untracked.bytes);
}

static void confirm(struct model *m, struct suspect *suspect)
{
	struct device *d = device_of(m, (uint8_t)suspect->oom.device);
	if (d)
		d->ooms++;
	if (d && !suspect->oom.total_bytes) /* a reading after it may have told */
		suspect->oom.total_bytes = device_capacity_bytes(m, d);
	if (d && d->untracked.is_own)
		learn_untracked(&suspect->oom, d->untracked.bytes);
	if (m->oom_count < MODEL_OOMS_MAX) {
		if (d && !suspect->outside.bytes)
			suspect->outside = outside_of(m, d->slot, suspect->oom.sequence); /* no sooner: programs probe */
		m->ooms[m->oom_count++] = suspect;
		settle_for_report(m);
	} else {
		suspect_release(m, suspect);
	}
}

/* The composition is only copied while there is room to describe another. */
static void keep_composition(struct model *m, const struct composition *c, struct suspect *suspect)
{
	if (m->oom_count < MODEL_OOMS_MAX)
		composition_snapshot(m, c, suspect->oom.sequence, &suspect->stacks);
}

/* The state as it is at `e`. */
static struct suspect *suspect_create(struct model *m, struct device *d, const struct event *e)
{
	struct suspect *suspect = model_new(m, sizeof *suspect);
	if (!suspect)
		return NULL;
	struct composition *c = device_composition(d);
	suspect->oom = (struct model_oom){
		.device = e->device,
		.time_ns = e->time_ns,
		.sequence = e->sequence,
		.requested_bytes = e->bytes,
		.free_bytes = UINT64_MAX,
		.total_bytes = device_capacity_bytes(m, d),
		.allocated_bytes = c->meter.live_bytes,
		.pytorch_allocated_bytes = d->now.pytorch_allocated.live_bytes,
		.reserved_bytes = d->now.reserved.live_bytes,
		.pytorch_reserved_bytes = d->now.pytorch_reserved.live_bytes,
		.untracked_known = d->untracked.is_own,
		.untracked_bytes = d->untracked.bytes,
		.releasable_bytes = d->now.spread.releasable_bytes,
		.retries = d->retries,
		.stack = e->stack,
		.thread = e->thread,
	};
	keep_composition(m, c, suspect);
	attribution_describe_work(m, d->slot, &suspect->work);
	suspect->work.casts_end = d->casts.last_end;
	return suspect;
}

/* Of page-locked host memory: what the host has is not known. */
static struct suspect *host_suspect_create(struct model *m, const struct event *e)
{
	struct suspect *suspect = model_new(m, sizeof *suspect);
	if (!suspect)
		return NULL;
	suspect->oom = (struct model_oom){
		.device = MEMTRACE_DEVICE_HOST,
		.time_ns = e->time_ns,
		.sequence = e->sequence,
		.requested_bytes = e->bytes,
		.free_bytes = UINT64_MAX,
		.allocated_bytes = m->pinned.meter.live_bytes,
		.reserved_bytes = m->pinned.meter.live_bytes,
		.stack = e->stack,
		.thread = e->thread,
	};
	keep_composition(m, &m->pinned, suspect);
	return suspect;
}

static void set_device_info(struct suspect *suspect, uint64_t free_bytes, uint64_t total)
{
	suspect->oom.free_bytes = free_bytes;
	suspect->oom.total_bytes = total;
}

/* ---------- the events ---------- */

static bool is_device_space(enum memtrace_space space)
{
	return space == MEMTRACE_SPACE_DEVICE || space == MEMTRACE_SPACE_STREAM ||
	       space == MEMTRACE_SPACE_VMM || space == MEMTRACE_SPACE_MANAGED ||
	       space == MEMTRACE_SPACE_ARRAY;
}

static bool is_host_space(enum memtrace_space space)
{
	return space == MEMTRACE_SPACE_PINNED || space == MEMTRACE_SPACE_REGISTERED;
}

static bool is_host(const struct suspect *suspect)
{
	return suspect->oom.device == MEMTRACE_DEVICE_HOST;
}

static void confirm_thread(struct model *m, struct thread *thread)
{
	struct suspect *suspect = thread->suspect;
	thread->suspect = NULL;
	confirm(m, suspect);
}

static void suspect_begin(struct thread *thread, struct suspect *suspect, uint64_t driver_bytes)
{
	thread->suspect = suspect;
	if (!suspect)
		return;
	suspect->oom.driver_bytes = driver_bytes;
	suspect->deadline = thread->event_count + PATIENCE;
}

static void note_host_failure(struct model *m, const struct event *e)
{
	struct thread *thread = thread_of(m, e->thread);
	if (!thread->suspect)
		suspect_begin(thread, host_suspect_create(m, e), e->bytes);
}

void oom_note_failure(struct model *m, const struct event *e)
{
	if (is_host_space(e->space)) {
		note_host_failure(m, e);
		return;
	}
	struct device *d = is_device_space(e->space) ? device_of(m, e->device) : NULL;
	struct thread *thread = thread_of(m, e->thread);
	bool by_pytorch = stack_facts(m, e->stack)->owner == OWNER_PYTORCH;
	if (!d)
		return;
	if (by_pytorch && e->space != MEMTRACE_SPACE_STREAM)
		trial_note_failure(m, e);
	if (thread->suspect && is_host(thread->suspect))
		confirm_thread(m, thread);
	if (thread->suspect)
		return;
	suspect_begin(thread, suspect_create(m, d, e), e->bytes);
	if (thread->suspect)
		thread->suspect->is_async = by_pytorch && e->space == MEMTRACE_SPACE_STREAM;
}

static bool is_obtained(const struct suspect *suspect, const struct event *e)
{
	if (is_host(suspect))
		return is_host_space(e->space);
	return (e->what == MEMTRACE_BLOCK_ALLOC || is_device_space(e->space)) && device_slot(e->device) != SLOT_HOST;
}

void oom_note_success(struct model *m, const struct event *e)
{
	struct thread *thread = thread_of(m, e->thread);
	if (!thread->suspect || !is_obtained(thread->suspect, e))
		return;
	suspect_release(m, thread->suspect);
	thread->suspect = NULL;
}

void oom_note_meminfo(struct model *m, const struct event *e)
{
	struct thread *thread = thread_of(m, e->thread);
	struct suspect *suspect = thread->suspect;
	if (!suspect || suspect->oom.device != e->device)
		return;
	if (suspect->oom.free_bytes == UINT64_MAX)
		set_device_info(suspect, e->bytes, e->extra);
	if (suspect->is_async) {
		suspect->oom.by_pytorch = true;
		confirm_thread(m, thread);
	}
}

void oom_check_deadline(struct model *m, struct thread *thread)
{
	if (thread->suspect && thread->event_count > thread->suspect->deadline)
		confirm_thread(m, thread);
}

static void describe_flush(struct suspect *suspect, const struct trial *trial)
{
	struct model_oom *oom = &suspect->oom;
	oom->by_pytorch = true;
	oom->driver_bytes = trial->driver_bytes;
	oom->reserved_bytes += trial->pending_bytes;
	oom->pytorch_reserved_bytes += trial->pending_cache_bytes;
	oom->flushed_bytes = trial->pending_cache_bytes;
	if (trial->free_known)
		set_device_info(suspect, trial->free_bytes, trial->total_bytes);
}

/* What lies where; what follows may free it. */
static void keep_map(struct model *m, const struct device *d, struct suspect *suspect)
{
	suspect->outside = outside_of(m, d->slot, suspect->oom.sequence);
	suspect->map = segment_map_create(m, d);
	suspect->trend = model_new(m, sizeof *suspect->trend);
	if (suspect->trend)
		*suspect->trend = d->trend;
}

void oom_note_block(struct model *m, const struct event *e)
{
	struct device *d = device_of(m, e->device);
	struct thread *thread = thread_of(m, e->thread);
	if (!d)
		return;
	device_has_blocks(d);
	static const struct trial nothing;
	bool is_here = thread->trial.is_active && thread->trial.slot == d->slot;
	const struct trial *trial = is_here ? &thread->trial : &nothing;
	d->retries += !(e->flags & MEMTRACE_CAPTURING) && !trial_was_single(trial);
	if (thread->suspect && is_host(thread->suspect))
		confirm_thread(m, thread);
	suspect_release(m, thread->suspect);
	thread->suspect = NULL;
	struct suspect *suspect = suspect_create(m, d, e);
	if (!suspect)
		return;
	describe_flush(suspect, trial);
	if (m->oom_count < MODEL_OOMS_MAX)
		keep_map(m, d, suspect);
	confirm(m, suspect);
	d->is_unwinding = true;
	trial_end(thread, e);
}

static struct thread *earliest_suspect(struct model *m)
{
	struct thread *earliest = NULL;
	for (uint32_t i = 0; i < m->thread_capacity; i++) {
		struct thread *thread = &m->threads[i];
		if (thread->suspect &&
		    (!earliest || thread->suspect->oom.sequence < earliest->suspect->oom.sequence))
			earliest = thread;
	}
	return earliest;
}

/* While there is room the earliest first; the rest are only counted. */
void oom_finish(struct model *m)
{
	struct thread *thread;
	while (m->oom_count < MODEL_OOMS_MAX && (thread = earliest_suspect(m)))
		confirm_thread(m, thread);
	for (uint32_t i = 0; i < m->thread_capacity; i++)
		if (m->threads[i].suspect)
			confirm_thread(m, &m->threads[i]);
}
