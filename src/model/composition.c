/* A sum of live bytes, by stack and label, now and at the moment when the sum was highest. Nothing is
 * copied at a new peak: peaks are numbered (epoch), and a share keeps its value at the peak when it
 * changes for the first time after it. So an event costs O(1), however often the sum rises, and the
 * rows at the peak are exact. A share that has not changed since stands at its peak value. Must
 * never change a share without touch_share(). */
#include <errno.h>

#include "model/model_private.h"

/* UINT32_MAX: out of memory. */
static uint32_t share_create(struct model *m, struct composition *c, uint32_t stack, uint8_t label)
{
	if (model_grow(m, &c->shares, &c->share_capacity, c->share_count, sizeof *c->shares))
		return UINT32_MAX;
	struct share *share = &c->shares[c->share_count++];
	share->stack = stack;
	share->label = label;
	share->next = c->index_of_stack[stack];
	c->index_of_stack[stack] = c->share_count;
	return c->share_count - 1;
}

int composition_restore(struct model *m, struct composition *c, const struct share *saved)
{
	if (saved->stack >= c->stack_capacity &&
	    model_grow(m, &c->index_of_stack, &c->stack_capacity, saved->stack, sizeof *c->index_of_stack))
		return -ENOMEM;
	uint32_t index = share_create(m, c, saved->stack, saved->label);
	if (index == UINT32_MAX)
		return -ENOMEM;
	uint32_t next = c->shares[index].next;
	c->shares[index] = *saved;
	c->shares[index].next = next;
	return 0;
}

static uint32_t share_of(struct model *m, struct composition *c, uint32_t stack, uint8_t label)
{
	if (stack >= c->stack_capacity &&
	    model_grow(m, &c->index_of_stack, &c->stack_capacity, stack, sizeof *c->index_of_stack))
		return UINT32_MAX;
	uint32_t index = c->index_of_stack[stack];
	while (index && c->shares[index - 1].label != label)
		index = c->shares[index - 1].next;
	return index ? index - 1 : share_create(m, c, stack, label);
}

/* Before every change: fixes what it was at the peak. A share starts with epoch 0, a composition
 * too: before there was a peak there is nothing to fix. */
static void touch_share(struct composition *c, struct share *share)
{
	if (share->epoch == c->epoch)
		return;
	share->peak_bytes = share->bytes;
	share->peak_count = share->count;
	share->epoch = c->epoch;
	c->revocable = NULL;
}

static void note_largest(struct share *share, uint64_t bytes)
{
	if (bytes > share->largest_bytes)
		share->largest_bytes = bytes;
}

void composition_change(struct model *m, struct composition *c, enum change change, uint32_t stack,
			uint8_t label, uint64_t bytes)
{
	uint32_t index = share_of(m, c, stack, label);
	if (index == UINT32_MAX)
		return;
	struct share *share = &c->shares[index];
	touch_share(c, share);
	note_largest(share, bytes);
	share->bytes = bytes_change(share->bytes, change, bytes);
	share->count = bytes_change(share->count, change, 1);
	c->label_bytes[label] = bytes_change(c->label_bytes[label], change, bytes);
	meter_change(&c->meter, change, bytes);
}

void composition_move(struct model *m, struct composition *c, uint32_t stack, uint8_t from, uint8_t to,
		      uint64_t bytes, bool now, bool at_peak)
{
	uint32_t to_index = share_of(m, c, stack, to), from_index = share_of(m, c, stack, from);
	if (to_index == UINT32_MAX || from_index == UINT32_MAX)
		return;
	struct share *source = &c->shares[from_index], *target = &c->shares[to_index];
	touch_share(c, source);
	touch_share(c, target);
	note_largest(target, bytes);
	if (now) {
		source->bytes -= bytes;
		source->count--;
		target->bytes += bytes;
		target->count++;
		c->label_bytes[from] -= bytes;
		c->label_bytes[to] += bytes;
	}
	if (at_peak) {
		source->peak_bytes -= bytes;
		source->peak_count--;
		target->peak_bytes += bytes;
		target->peak_count++;
	}
}

struct snapshot_row share_at_peak(const struct composition *c, const struct share *share)
{
	if (share->epoch == c->epoch)
		return (struct snapshot_row){share->peak_bytes, share->peak_count};
	return (struct snapshot_row){share->bytes, share->count};
}

bool composition_is_at_peak(const struct composition *c)
{
	return c->meter.peak_bytes > c->peak.allocated_bytes;
}

void composition_set_peak(struct composition *c, const struct model_peak *peak, const void *memory)
{
	c->previous_peak = c->peak;
	c->peak = *peak;
	c->epoch++;
	c->revocable = memory;
}

/* The shares changed by the event of the peak were fixed in the epoch before it; no other has been
 * touched since, so that epoch can go on as if the peak had not been. */
void composition_revoke(struct composition *c, const void *memory)
{
	if (!memory || c->revocable != memory)
		return;
	c->peak = c->previous_peak;
	c->meter.peak_bytes = c->peak.allocated_bytes;
	c->epoch--;
	c->revocable = NULL;
}

/* ---------- snapshots ---------- */

static void snapshot_link(struct model *m, struct snapshot *snapshot)
{
	snapshot->next = m->snapshots;
	if (m->snapshots)
		m->snapshots->before = snapshot;
	m->snapshots = snapshot;
}

void composition_snapshot(struct model *m, const struct composition *c, uint64_t sequence,
			  struct snapshot *snapshot)
{
	*snapshot = (struct snapshot){.of = c, .sequence = sequence};
	snapshot->rows = model_new(m, c->share_count * sizeof *snapshot->rows);
	if (!snapshot->rows)
		return;
	snapshot->count = c->share_count;
	for (uint32_t i = 0; i < c->share_count; i++)
		snapshot->rows[i] = (struct snapshot_row){c->shares[i].bytes, c->shares[i].count};
	snapshot_link(m, snapshot);
}

void snapshot_restore(struct model *m, struct snapshot *snapshot, const struct snapshot *saved)
{
	*snapshot = (struct snapshot){.of = saved->of, .sequence = saved->sequence};
	snapshot->rows = model_new(m, 0);
	if (snapshot->rows)
		snapshot_link(m, snapshot);
}

struct snapshot_row *snapshot_row(struct model *m, struct snapshot *snapshot, uint32_t index)
{
	if (index >= snapshot->count) {
		uint32_t count = index + 1 > snapshot->count * 2 ? index + 1 : snapshot->count * 2;
		struct snapshot_row *rows = arena_resize(m->arena, snapshot->rows,
							 snapshot->count * sizeof *rows,
							 count * sizeof *rows);
		if (!rows) {
			m->failed = true;
			return NULL;
		}
		snapshot->rows = rows;
		snapshot->count = count;
	}
	return &snapshot->rows[index];
}

void snapshot_move(struct model *m, struct snapshot *snapshot, uint32_t stack, uint8_t from, uint8_t to,
		   uint64_t bytes)
{
	struct composition *c = (struct composition *)snapshot->of; /* may get a share */
	uint32_t to_index = share_of(m, c, stack, to), from_index = share_of(m, c, stack, from);
	if (to_index == UINT32_MAX || from_index >= snapshot->count)
		return;
	struct snapshot_row *target = snapshot_row(m, snapshot, to_index);
	if (!target)
		return;
	target->bytes += bytes;
	target->count++;
	snapshot->rows[from_index].bytes -= bytes;
	snapshot->rows[from_index].count--;
}

void snapshot_release(struct model *m, struct snapshot *snapshot)
{
	if (!snapshot->rows)
		return;
	if (snapshot->before)
		snapshot->before->next = snapshot->next;
	else
		m->snapshots = snapshot->next;
	if (snapshot->next)
		snapshot->next->before = snapshot->before;
	arena_free(m->arena, snapshot->rows, snapshot->count * sizeof *snapshot->rows);
	*snapshot = (struct snapshot){0};
}
