/* What leaving an autocast region gives back at once: the copies of weights in a lower precision that it kept, and
 * the weights that nothing but their copies kept. Owns the largest of these bursts. Must never look at more than the
 * block that is being freed. */
#include "model/model_private.h"

/* The device's last event was of the same burst. */
static bool goes_on(const struct casts *casts, const struct trend *trend)
{
	return casts->bytes && trend->event_count == casts->event_count + 1;
}

static void keep_largest(struct casts *casts, uint64_t live_bytes)
{
	if (casts->bytes <= casts->most.bytes)
		return;
	casts->most = (struct casts_burst){
		.bytes = casts->bytes,
		.count = casts->count,
		.left_bytes = live_bytes,
		.stack = casts->stack,
	};
}

void casts_note_free(struct model *m, struct device *d, const struct block *block, const struct event *e)
{
	struct casts *casts = &d->casts;
	if (!(attribution_marks(m, e->stack)->flags & MARK_AUTOCAST_END))
		return;
	if (!goes_on(casts, &d->trend))
		casts->bytes = casts->count = casts->copy_bytes = 0;
	if (attribution_marks(m, block->stack)->native & MARK_CAST && block->bytes > casts->copy_bytes) {
		casts->copy_bytes = block->bytes;
		casts->stack = block->stack;
	}
	casts->bytes += block->bytes;
	casts->count++;
	casts->event_count = d->trend.event_count;
	casts->last_end = e->sequence;
	keep_largest(casts, d->now.pytorch_allocated.live_bytes);
}
