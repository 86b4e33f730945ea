/* How much there was in each stretch of the whole run, in memory that does not grow: a fixed number of
 * buckets of time, whose width doubles when the run outgrows them; then each two become one. Owns struct
 * timeline. What memory is, it must never ask: it is told the sums after they have changed. */
#include "model/model_private.h"

static uint64_t bucket_of(const struct timeline *timeline, uint64_t time_ns)
{
	return time_ns >> (TIMELINE_FIRST_SHIFT + timeline->doublings);
}

static void raise_to(struct timeline_sums *highest, const struct timeline_sums *sums)
{
	if (sums->allocated_bytes > highest->allocated_bytes)
		highest->allocated_bytes = sums->allocated_bytes;
	if (sums->reserved_bytes > highest->reserved_bytes)
		highest->reserved_bytes = sums->reserved_bytes;
}

static void double_width(struct timeline *timeline)
{
	uint32_t count = (timeline->count + 1) / 2;
	for (uint32_t i = 0; i < count; i++) {
		struct timeline_sums pair = timeline->highest[2 * i];
		if (2 * i + 1 < timeline->count)
			raise_to(&pair, &timeline->highest[2 * i + 1]);
		timeline->highest[i] = pair;
	}
	timeline->count = count;
	timeline->doublings++;
}

/* What there is now is what there was since the last change, to the end of its bucket and in all later ones. */
static void advance(struct timeline *timeline, uint64_t time_ns)
{
	if (timeline->count)
		raise_to(&timeline->highest[timeline->count - 1], &timeline->now);
	while (bucket_of(timeline, time_ns) >= TIMELINE_BUCKETS)
		double_width(timeline);
	while (timeline->count <= bucket_of(timeline, time_ns))
		timeline->highest[timeline->count++] = timeline->now;
}

void timeline_note(struct timeline *timeline, uint64_t time_ns, struct timeline_sums now)
{
	advance(timeline, time_ns);
	timeline->now = now;
	timeline->revocable = NULL;
}

void timeline_get(const struct timeline *timeline, uint64_t time_ns, struct model_timeline *shown)
{
	struct timeline whole = *timeline;
	advance(&whole, time_ns);
	shown->width_ns = (uint64_t)1 << (TIMELINE_FIRST_SHIFT + whole.doublings);
	shown->count = whole.count;
	for (uint32_t i = 0; i < whole.count; i++) {
		shown->allocated_bytes[i] = whole.highest[i].allocated_bytes;
		shown->reserved_bytes[i] = whole.highest[i].reserved_bytes;
	}
}
