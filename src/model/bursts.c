/* Blocks of one place that go all at once: as when a list is cleared, always at the same line, or when Python's
 * collector of cycles runs, at whatever line has just made an object; and blocks that one thread has made and another
 * frees. Owns which places of birth saw that. Must never look at more than the block that is being freed; of very many places the first are watched. */
#include "model/model_private.h"

#define BURST_LEAST 3 /* blocks */

/* No event but such frees was between, and the same line is running. */
static bool goes_on(const struct bursts *bursts, const struct trend *trend, uint32_t site)
{
	return bursts->number && bursts->site == site && trend->event_count == bursts->event_count + 1;
}

static struct burst_place *place_of(struct bursts *bursts, uint32_t birth)
{
	for (uint32_t i = 0; i < bursts->count; i++)
		if (bursts->places[i].birth == birth)
			return &bursts->places[i];
	if (bursts->count == BURST_PLACES)
		return NULL;
	bursts->places[bursts->count] = (struct burst_place){.birth = birth};
	return &bursts->places[bursts->count++];
}

static void note_burst(struct burst_place *place, uint32_t site, uint64_t sequence)
{
	if (!place->first_site)
		place->first_site = site;
	if (place->first_site != site && !place->anywhere)
		place->anywhere = sequence;
}

/* What is born and freed by the same line has no owner that could be late. */
void bursts_note_free(struct model *m, struct device *d, const struct block *block, const struct event *e)
{
	struct bursts *bursts = &d->bursts;
	uint32_t site = attribution_marks(m, e->stack)->site, birth = attribution_marks(m, block->stack)->site;
	if (!site || !birth || site == birth)
		return;
	bursts->number += !goes_on(bursts, &d->trend, site);
	bursts->site = site;
	bursts->event_count = d->trend.event_count;
	struct burst_place *place = place_of(bursts, birth);
	if (!place)
		return;
	if (!place->handed && block->thread && block->thread != e->thread)
		place->handed = e->sequence;
	place->blocks = place->burst == bursts->number ? place->blocks + 1 : 1;
	place->burst = bursts->number;
	if (place->blocks == BURST_LEAST)
		note_burst(place, site, e->sequence);
}

static const struct burst_place *find_place(const struct device *d, uint32_t birth)
{
	for (uint32_t i = 0; i < d->bursts.count; i++)
		if (d->bursts.places[i].birth == birth)
			return &d->bursts.places[i];
	return NULL;
}

bool bursts_were_anywhere(const struct device *d, uint32_t birth, uint64_t before)
{
	const struct burst_place *place = find_place(d, birth);
	return place && place->anywhere && place->anywhere < before;
}

bool bursts_were_handed(const struct device *d, uint32_t birth, uint64_t before)
{
	const struct burst_place *place = find_place(d, birth);
	return place && place->handed && place->handed < before;
}
