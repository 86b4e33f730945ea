/* How the least live memory of a device moves: the minimum of each stretch of the run, by steps and by block
 * events, in a bounded number of windows. When they are full, neighbours are put together and a window is
 * twice as long from then on. Owns the windows and what counts as growing. */
#include "model/model_private.h"

#define EVENTS_A_PERIOD 16
#define WINDOWS_LEAST	5
#define STAIRS_LEAST	4 /* three that are kept may be all that there will be */

/* ---------- recording ---------- */

static void open_window(struct trend_series *series, uint64_t sequence, uint64_t live_bytes)
{
	series->open = (struct trend_window){.begin = sequence, .least_bytes = live_bytes};
	series->periods = 0;
}

static void halve(struct trend_series *series)
{
	for (uint32_t i = 0; i < TREND_WINDOWS / 2; i++) {
		const struct trend_window *a = &series->windows[2 * i], *b = a + 1;
		series->windows[i] = (struct trend_window){
			.begin = a->begin,
			.least_bytes = a->least_bytes < b->least_bytes ? a->least_bytes : b->least_bytes,
			.allocations = a->allocations + b->allocations,
			.frees = a->frees + b->frees,
		};
	}
	series->count = TREND_WINDOWS / 2;
	series->stride *= 2;
}

static void end_period(struct trend_series *series, uint64_t sequence, uint64_t live_bytes)
{
	if (!series->stride)
		series->stride = 1;
	series->total_periods++;
	if (++series->periods < series->stride)
		return;
	series->windows[series->count++] = series->open;
	if (series->count == TREND_WINDOWS)
		halve(series);
	open_window(series, sequence, live_bytes);
}

static void note(struct trend_window *open, enum change change, uint64_t live_bytes)
{
	open->allocations += change == CHANGE_OBTAINED;
	open->frees += change == CHANGE_GIVEN_BACK;
	if (live_bytes < open->least_bytes)
		open->least_bytes = live_bytes;
}

void trend_note(struct trend *trend, enum change change, uint64_t live_bytes, uint64_t sequence)
{
	note(&trend->events.open, change, live_bytes);
	note(&trend->steps.open, change, live_bytes);
	if (++trend->event_count % EVENTS_A_PERIOD == 0)
		end_period(&trend->events, sequence, live_bytes);
}

void trend_end_step(struct trend *trend, uint64_t live_bytes, uint64_t sequence)
{
	end_period(&trend->steps, sequence, live_bytes);
}

/* ---------- stairs ---------- */

struct stairs {
	uint32_t rises, begin, since; /* when the first and the last one were */
	uint32_t shortest, longest; /* windows between two rises */
	uint64_t height_bytes, lowest_bytes, highest_bytes; /* the height that it has; of one rise */
	bool fell;
};

static void climb(struct stairs *stairs, uint32_t at, uint64_t bytes)
{
	uint64_t rise = bytes > stairs->height_bytes ? bytes - stairs->height_bytes : 0;
	uint64_t slack = stairs->lowest_bytes / 32;
	stairs->fell |= bytes + slack < stairs->height_bytes;
	if (rise <= slack)
		return;
	if (!stairs->rises || rise < stairs->lowest_bytes)
		stairs->lowest_bytes = rise;
	if (rise > stairs->highest_bytes)
		stairs->highest_bytes = rise;
	if (stairs->rises && (stairs->rises == 1 || at - stairs->since < stairs->shortest))
		stairs->shortest = at - stairs->since;
	if (stairs->rises && at - stairs->since > stairs->longest)
		stairs->longest = at - stairs->since;
	stairs->height_bytes = bytes;
	stairs->begin = stairs->rises ? stairs->begin : at;
	stairs->since = at;
	stairs->rises++;
}

/* What is kept once in so many steps: the same each time, as long after the one before. The window that is open has a
 * part in it, unless much was let go of since. `rises` is 0: there are none. */
static struct stairs find_stairs(const struct trend_series *series, uint32_t first)
{
	struct stairs stairs = {.height_bytes = series->windows[first].least_bytes};
	for (uint32_t i = first + 1; i < series->count; i++)
		climb(&stairs, i, series->windows[i].least_bytes);
	if (series->open.least_bytes > stairs.height_bytes)
		climb(&stairs, series->count, series->open.least_bytes);
	bool is_even = stairs.highest_bytes <= stairs.lowest_bytes + stairs.lowest_bytes / 4 &&
		       stairs.longest <= stairs.shortest + stairs.shortest / 4 + 1;
	bool goes_on = series->count - 1 < stairs.since + stairs.longest + 1;
	if (stairs.rises < STAIRS_LEAST || !is_even || !goes_on || stairs.fell)
		stairs.rises = 0;
	return stairs;
}

/* ---------- growing ---------- */

/* From `first` on nothing is below it, no dip takes back more than an eighth of the rise, and the last third and
 * the last sixth of the time have a fair part in it: what has come to rest does not grow. Stairs do, one at a time. */
static bool rises_from(const struct trend_series *series, uint32_t first)
{
	const struct trend_window *windows = series->windows;
	uint32_t last = series->count - 1, length = last - first;
	uint64_t low = windows[first].least_bytes, top = low;
	uint64_t end = windows[last].least_bytes, rise = end > low ? end - low : 0;
	for (uint32_t i = first; i <= last; i++) {
		uint64_t bytes = windows[i].least_bytes;
		if (bytes < low || (top > bytes && top - bytes > rise / 8))
			return false;
		top = bytes > top ? bytes : top;
	}
	bool rose_late = end >= windows[last - length / 3].least_bytes + rise / 8 &&
			 end >= windows[last - length / 6].least_bytes + rise / 32;
	return rise && (rose_late || find_stairs(series, first).rises);
}

/* The first window of the longest rise that ends in the last one; the last one: there is none. */
static uint32_t rise_begin(const struct trend_series *series)
{
	uint32_t first = 0;
	while (first + 1 < series->count && !rises_from(series, first))
		first++;
	return first;
}

static uint64_t steepest_rise(const struct trend_series *series, uint32_t from)
{
	uint64_t most = 0;
	for (uint32_t i = from + 1; i < series->count; i++) {
		uint64_t low = series->windows[i - 1].least_bytes, high = series->windows[i].least_bytes;
		most = high > low && high - low > most ? high - low : most;
	}
	return most;
}

static uint32_t count_rises(const struct trend_series *series, uint32_t from)
{
	uint32_t rises = 0;
	for (uint32_t i = from + 1; i < series->count; i++)
		rises += series->windows[i].least_bytes > series->windows[i - 1].least_bytes;
	return rises;
}

/* Flat windows before the rise are not a part of it. */
static uint32_t skip_flat(const struct trend_series *series, uint32_t from)
{
	while (from + 1 < series->count &&
	       series->windows[from + 1].least_bytes == series->windows[from].least_bytes)
		from++;
	return from;
}

static void insert(uint64_t *sorted, uint32_t count, uint64_t bytes)
{
	for (; count && sorted[count - 1] > bytes; count--)
		sorted[count] = sorted[count - 1];
	sorted[count] = bytes;
}

/* The median of what half the rise, begun at each of its windows, brought. An even number of windows: what is kept in
 * every second step counts half in each. */
static uint64_t usual_rise(const struct trend_series *series, uint32_t first)
{
	uint64_t rises[TREND_WINDOWS];
	uint32_t windows = series->count - first, span = windows / 4 * 2, count = 0;
	for (uint32_t i = first; span && i + span < series->count; i++) {
		uint64_t low = series->windows[i].least_bytes, high = series->windows[i + span].least_bytes;
		insert(rises, count++, high > low ? high - low : 0);
	}
	return count ? rises[count / 2] / ((uint64_t)span * series->stride) : 0;
}

bool trend_is_long(const struct trend_series *series)
{
	return series->count >= WINDOWS_LEAST;
}

/* It has been at its height for much longer than it ever was at one before: a queue that is full, a bank that has all. */
static bool has_come_to_rest(const struct trend_series *series, uint32_t first)
{
	const struct trend_window *windows = series->windows;
	uint64_t height = windows[first].least_bytes, end = windows[series->count - 1].least_bytes;
	uint64_t rise = end > height ? end - height : 0;
	uint32_t since = first, longest = 0;
	for (uint32_t i = first + 1; i < series->count; i++) {
		if (windows[i].least_bytes <= height + rise / 256)
			continue;
		longest = i - since > longest ? i - since : longest;
		height = windows[i].least_bytes;
		since = i;
	}
	return rise && series->count - 1 - since > 2 * longest;
}

static struct trend_growth growth_from(const struct trend_series *series, uint32_t first)
{
	struct trend_growth growth = {.series = series};
	uint32_t windows = series->count - first;
	uint32_t last_third = series->count - (windows + 2) / 3;
	growth.first = first;
	growth.windows = windows;
	growth.begin = series->windows[first].begin;
	growth.bytes = series->windows[series->count - 1].least_bytes - series->windows[first].least_bytes;
	growth.periods = (uint64_t)(windows - 1) * series->stride;
	growth.each_bytes = usual_rise(series, first);
	growth.steepest_bytes = steepest_rise(series, first);
	for (uint32_t i = first; i < series->count; i++) {
		growth.allocations += series->windows[i].allocations;
		growth.frees += series->windows[i].frees;
	}
	struct stairs stairs = find_stairs(series, first);
	growth.stairs = stairs.rises;
	if (stairs.rises && stairs.shortest > 2)
		growth.each_bytes =
			stairs.lowest_bytes * (stairs.rises - 1) / ((stairs.since - stairs.begin) * series->stride);
	growth.is_at_rest = has_come_to_rest(series, windows < WINDOWS_LEAST ? 0 : first);
	growth.is_growing = windows >= WINDOWS_LEAST && count_rises(series, first) >= 3 &&
			    count_rises(series, last_third ? last_third - 1 : 0) && !growth.is_at_rest;
	return growth;
}

struct trend_growth trend_growth_of(const struct trend_series *series)
{
	if (!trend_is_long(series))
		return (struct trend_growth){.series = series};
	return growth_from(series, skip_flat(series, rise_begin(series)));
}

bool trend_fell_before(const struct trend_growth *growth)
{
	const struct trend_window *windows = growth->series->windows;
	for (uint32_t i = 0; i < growth->first; i++)
		if (windows[i].least_bytes >= windows[growth->first].least_bytes + growth->bytes / 2)
			return true;
	return false;
}

/* Steps see what came to rest sooner than events do, whose windows are fewer. */
struct trend_growth trend_growth_of_events(const struct trend *trend)
{
	struct trend_growth growth = trend_growth_of(&trend->events), steps = trend_growth_of(&trend->steps);
	uint64_t now = growth.is_growing ? trend->events.windows[trend->events.count - 1].least_bytes : 0;
	if (steps.is_at_rest && now <= trend->steps.windows[trend->steps.count - 1].least_bytes + growth.bytes / 32)
		growth.is_growing = false;
	return growth;
}

struct trend_growth trend_growth_since(const struct trend_series *series, uint64_t sequence)
{
	if (!trend_is_long(series))
		return (struct trend_growth){.series = series};
	uint32_t first = rise_begin(series);
	while (first + 1 < series->count && series->windows[first + 1].begin <= sequence)
		first++;
	return growth_from(series, skip_flat(series, first));
}

/* The window of an event; UINT32_MAX: before the growth. After the last full one: that of the open one. */
uint32_t trend_window_of(const struct trend_growth *growth, uint64_t sequence)
{
	const struct trend_series *series = growth->series;
	if (sequence < growth->begin)
		return UINT32_MAX;
	uint32_t i = growth->first;
	while (i + 1 < series->count && series->windows[i + 1].begin <= sequence)
		i++;
	if (i + 1 == series->count && sequence >= series->open.begin)
		i++;
	return i - growth->first;
}
