/* Retries: what happens between two block events of a thread, read as the inside of PyTorch's
 * malloc (its order: look in the cache; obtain; on failure give the whole cache back and obtain
 * again; on failure report OOM). What the thread gave back in between is *pending*: live + pending
 * is the state before the flush.
 *
 * num_alloc_retries counts the attempts after a full flush. Seen from outside, one that succeeded
 * is memory obtained after a failed call or, under a memory fraction, where the first attempt makes
 * no call, after a flush. The latter looks like empty_cache() or garbage collection followed by an
 * ordinary allocation; told apart by the Python stack: a flush has that of the allocation itself,
 * and no frame named empty_cache. Where the configuration has a garbage collection threshold, it is
 * counted only if something was given back that this does not take. */
#include <string.h>

#include "model/model_private.h"

#define SMALL_BLOCK_BYTES   (1u << 20) /* larger ones are of the large pool */
#define SMALL_SEGMENT_BYTES (2u << 20) /* of the small pool; the large pool's are larger */

static struct trial *trial_of(struct model *m, const struct event *e, uint8_t slot)
{
	struct trial *trial = &thread_of(m, e->thread)->trial;
	if (!trial->is_active || trial->slot != slot)
		*trial = (struct trial){.is_active = true, .slot = slot};
	return trial;
}

void trial_end(struct thread *thread, const struct event *e)
{
	thread->last_block = e->sequence;
	if (thread->trial.is_active)
		thread->trial = (struct trial){0};
}

/* Of a failing attempt, or of a program that calls empty_cache(): was not there when the trial
 * began, or was gone. */
static bool is_before_flush(struct model *m, const struct memory *memory, const struct event *e)
{
	bool is_own =
		memory->thread == e->thread && memory->born > thread_of(m, e->thread)->last_block;
	return !is_own && !stack_facts(m, e->stack)->has_empty_cache;
}

/* Garbage collection takes whole segments of the large pool, and none that can expand. */
static bool is_collectable(const struct memory *memory)
{
	return memory->space != MEMTRACE_SPACE_VMM && memory->bytes > SMALL_SEGMENT_BYTES;
}

/* PyTorch would have taken it, had it been free: the block that was in it waits for an event. */
static void note_fitting(struct trial *trial, const struct memory *memory)
{
	bool is_whole = memory->space != MEMTRACE_SPACE_VMM && memory->bytes > SMALL_SEGMENT_BYTES && !memory->is_captured;
	if (!trial->failed_calls || !is_whole || memory->block_count || memory->bytes < trial->driver_bytes)
		return;
	trial->has_fitting = true;
	trial->fitting_stream = memory->stream;
}

void trial_note_freed(struct model *m, const struct memory *memory, uint64_t bytes,
		      uint64_t cache_bytes, const struct event *e)
{
	bool is_free = e->what == MEMTRACE_FREE || e->what == MEMTRACE_UNMAP;
	if (!is_free || memory->role != ROLE_CACHE || !is_before_flush(m, memory, e))
		return;
	struct trial *trial = trial_of(m, e, memory->slot);
	struct undo *undo = &thread_of(m, e->thread)->undo;
	if (!trial->pending_cache_bytes || memory->bytes < trial->smallest_bytes)
		trial->smallest_bytes = memory->bytes;
	trial->is_beyond_collection |= !is_collectable(memory);
	trial->last_bytes = cache_bytes ? cache_bytes : trial->last_bytes;
	trial->pending_bytes += bytes;
	trial->pending_cache_bytes += cache_bytes;
	undo->pending_bytes += bytes;
	undo->pending_cache_bytes += cache_bytes;
	note_fitting(trial, memory);
	trial->flush_stack = e->stack;
	trial->has_obtained = false;
}

void trial_note_obtained(struct model *m, const struct memory *memory, const struct event *e)
{
	struct trial *trial = &thread_of(m, e->thread)->trial;
	if (!trial->is_active || trial->slot != memory->slot || memory->role != ROLE_CACHE)
		return;
	trial->has_obtained = true;
	trial->obtained_stack = e->stack;
}

void trial_note_failure(struct model *m, const struct event *e)
{
	struct trial *trial = trial_of(m, e, device_slot(e->device));
	trial->failed_calls++;
	trial->driver_bytes = e->bytes;
	trial->has_obtained = false;
}

void trial_note_meminfo(struct model *m, const struct event *e)
{
	struct trial *trial = trial_of(m, e, device_slot(e->device));
	trial->free_known = true;
	trial->free_bytes = e->bytes > trial->pending_bytes ? e->bytes - trial->pending_bytes : 0;
	trial->total_bytes = e->extra;
}

/* ---------- was it a retry? ---------- */

static const char *configuration(const struct model *m, const char *key)
{
	const char *text, *found = NULL;
	for (unsigned i = 0; !found && (text = defs_info(m->defs, MEMTRACE_INFO_ALLOC_CONF, i));
	     i++)
		found = strstr(text, key);
	return found ? found + strlen(key) : NULL;
}

static uint64_t max_split_bytes(const struct model *m)
{
	const char *value = configuration(m, "max_split_size_mb:");
	uint64_t mib = 0;
	for (; value && *value >= '0' && *value <= '9' && mib < 1u << 20; value++)
		mib = mib * 10 + (uint64_t)(*value - '0');
	return mib << 20;
}

/* With max_split_size there is an attempt in between, not counted, after giving back just enough of
 * the blocks that are too large to split: one, or several until they add up to the request. Had
 * those been enough and the attempt failed, all others would have followed. */
static bool was_partial_flush(const struct model *m, const struct trial *trial,
			      uint64_t block_bytes)
{
	uint64_t split_bytes = max_split_bytes(m);
	uint64_t wanted_bytes = block_bytes > split_bytes ? block_bytes : split_bytes;
	return split_bytes && trial->failed_calls <= 1 && trial->smallest_bytes >= split_bytes &&
	       trial->pending_cache_bytes >= wanted_bytes &&
	       trial->pending_cache_bytes - trial->last_bytes < wanted_bytes;
}

static bool was_flush(const struct model *m, const struct trial *trial)
{
	bool may_collect = configuration(m, "garbage_collection_threshold") != NULL;
	return trial->pending_cache_bytes && (!may_collect || trial->is_beyond_collection) &&
	       stacks_have_same_python(m, trial->flush_stack, trial->obtained_stack);
}

/* Inside a pool of the program's own (use_mem_pool), and in a capture, PyTorch does not give its cache back and try
 * again. After a flush the one failed call is the second attempt: a memory fraction made the first one fail. */
bool trial_was_single(const struct trial *trial)
{
	return trial->failed_calls == 1 && !trial->pending_cache_bytes;
}

bool trial_was_retry(const struct model *m, const struct trial *trial, uint8_t slot,
		     uint64_t block_bytes)
{
	if (!trial->has_obtained || trial->slot != slot)
		return false;
	if (!trial->failed_calls && !was_flush(m, trial))
		return false;
	return !was_partial_flush(m, trial, block_bytes);
}

bool trial_has_waited(const struct model *m, const struct trial *trial, const struct event *e)
{
	bool is_large = e->bytes > SMALL_BLOCK_BYTES && !max_split_bytes(m);
	return is_large && trial->has_fitting && trial->fitting_stream == e->stream;
}
