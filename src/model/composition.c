/* A sum of live bytes, by stack, now and at the moment when the sum was highest. Nothing is copied
 * at a new peak: peaks are numbered (epoch), and a share keeps its value at the peak when it
 * changes for the first time after it. So an event costs O(1), however often the sum rises, and the
 * rows at the peak are exact. A share that has not changed since stands at its peak value. Must
 * never change a share without touch_share(). */
#include "model/model_private.h"

static struct share *share_create(struct model *m, struct composition *c, uint32_t stack)
{
	if (model_grow(m, &c->shares, &c->share_capacity, c->share_count, sizeof *c->shares))
		return NULL;
	struct share *share = &c->shares[c->share_count++];
	share->stack = stack;
	c->index_of_stack[stack] = c->share_count;
	return share;
}

static struct share *share_of(struct model *m, struct composition *c, uint32_t stack)
{
	if (stack >= c->stack_capacity &&
	    model_grow(m, &c->index_of_stack, &c->stack_capacity, stack, sizeof *c->index_of_stack))
		return NULL;
	uint32_t index = c->index_of_stack[stack];
	return index ? &c->shares[index - 1] : share_create(m, c, stack);
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

void composition_change(struct model *m, struct composition *c, enum change change, uint32_t stack,
			uint64_t bytes)
{
	struct share *share = share_of(m, c, stack);
	if (!share)
		return;
	touch_share(c, share);
	share->bytes = bytes_change(share->bytes, change, bytes);
	share->count = bytes_change(share->count, change, 1);
	meter_change(&c->meter, change, bytes);
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

void composition_snapshot(struct model *m, const struct composition *c, struct snapshot *snapshot)
{
	snapshot->count = 0;
	snapshot->rows = model_new(m, c->share_count * sizeof *snapshot->rows);
	if (!snapshot->rows)
		return;
	snapshot->count = c->share_count;
	for (uint32_t i = 0; i < c->share_count; i++) {
		const struct share *share = &c->shares[i];
		snapshot->rows[i] = (struct model_share){share->bytes, share->count, share->stack};
	}
}

void snapshot_release(struct model *m, struct snapshot *snapshot)
{
	arena_free(m->arena, snapshot->rows, snapshot->count * sizeof *snapshot->rows);
	*snapshot = (struct snapshot){0};
}
