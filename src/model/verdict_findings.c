/* What is wrong with a run that came to its end: the same questions, of that moment. Owns when something is worth a
 * word: a healthy run must have no findings. */
#include <string.h>

#include "model/verdict_private.h"

#define RETRIES_MANY 3

struct finder {
	struct situation at;
	const struct device *device;
	struct verdict *found;
	size_t count, capacity;
};

static struct verdict *begin(struct finder *finder, struct verdict *verdict)
{
	*verdict = (struct verdict){.cause = VERDICT_UNKNOWN};
	finder->at.verdict = verdict;
	evidence_of_end(&finder->at, finder->device);
	return verdict;
}

static void keep(struct finder *finder, const struct verdict *verdict)
{
	if (finder->count < finder->capacity)
		finder->found[finder->count++] = *verdict;
}

/* The program ended by an out of memory that has another cause: what had grown by then is a part of that. */
static bool is_told(const struct finder *finder)
{
	const struct model *m = finder->at.m;
	size_t last = m->oom_count;
	struct verdict verdict;
	while (last && m->ooms[last - 1]->oom.device != finder->device->slot)
		last--;
	return finder->device->is_unwinding && last && model_verdict(m, last - 1, &verdict) && verdict.cause != VERDICT_LEAK;
}

/* The blocks that were live when the device obtained its last one; their segments are of no interest. */
static bool join_let_go(const struct finder *finder, struct segment_map *map)
{
	const struct let_go *gone = &finder->device->let_go;
	size_t live_count = finder->at.map->block_count, count = live_count + gone->count;
	map->blocks = arena_alloc(finder->at.arena, count * sizeof *map->blocks);
	if (!map->blocks)
		return false;
	if (live_count)
		memcpy(map->blocks, finder->at.map->blocks, live_count * sizeof *map->blocks);
	memcpy(map->blocks + live_count, gone->blocks, gone->count * sizeof *map->blocks);
	map->block_count = count;
	return true;
}

/* By steps alone, which end before the program does: the last stretches of events are of the letting go. */
static void keep_steps(const struct trend *now, const struct trend_growth *growth, struct trend *then)
{
	*then = (struct trend){.steps = now->steps};
	then->events.count = 1;
	then->events.windows[0].begin = now->steps.windows[growth->first + growth->windows / 2].begin;
}

/* The moment at which the device obtained its last block: what a function of the program held until it returned, and
 * the program with it, was live. When memory has run out, and nothing was obtained since, that has been told. */
static bool begin_before_let_go(struct finder *finder, struct verdict *verdict, struct segment_map *map,
				struct situation *at)
{
	const struct device *d = finder->device;
	if (!finder->at.map || !d->let_go.count || d->is_unwinding || !join_let_go(finder, map))
		return false;
	begin(finder, verdict);
	evidence_before_let_go(&finder->at, d);
	*at = finder->at;
	at->map = map;
	at->end = d->let_go.since;
	return true;
}

static bool judge_let_go(struct finder *finder, struct verdict *verdict)
{
	struct segment_map map = {0};
	struct trend then;
	struct situation at;
	if (!finder->at.trend)
		return false;
	struct trend_growth growth = trend_growth_of(&finder->at.trend->steps);
	if (!growth.is_growing || trend_fell_before(&growth) || !begin_before_let_go(finder, verdict, &map, &at))
		return false;
	keep_steps(finder->at.trend, &growth, &then);
	at.trend = &then;
	return judge_leak(&at);
}

/* As much is live again, some steps later, as when it was let go. */
static bool stays_again(const struct finder *finder)
{
	const struct stage_end *kept = &finder->device->stage_end;
	const struct trend_series *steps = &finder->at.trend->steps;
	return steps->total_periods >= kept->periods + 4 && steps->count &&
	       steps->windows[steps->count - 1].least_bytes >= kept->low_bytes + kept->growth_bytes / 4 * 3;
}

/* What had grown until a part of the program ended. What each epoch collects and lets go of is no leak. */
static bool judge_stage_end(struct finder *finder, struct verdict *verdict)
{
	const struct stage_end *kept = &finder->device->stage_end;
	const struct suspect *moment = kept->moment;
	struct situation at = finder->at;
	struct trend then;
	if (!moment || !moment->map || !moment->trend || !at.trend || (!kept->has_ended && (kept->came_again || stays_again(finder))))
		return false;
	struct trend_growth growth = trend_growth_of(&moment->trend->steps);
	keep_steps(moment->trend, &growth, &then);
	*verdict = (struct verdict){.cause = VERDICT_UNKNOWN};
	at.map = moment->map;
	at.trend = &then;
	at.work = &moment->work;
	at.end = moment->oom.sequence;
	evidence_of_stage_end(&at, &moment->oom);
	if (!judge_leak(&at))
		return false;
	verdict->is_certain = false;
	verdict->evidence.periods_left = UINT64_MAX;
	return true;
}

static bool judge_leaks(struct finder *finder, struct verdict *verdict)
{
	return judge_leak(&finder->at) || judge_let_go(finder, verdict) || judge_stage_end(finder, verdict);
}

/* How long memory lasts is no question any more when it has run out. */
static void find_leak(struct finder *finder)
{
	struct verdict verdict;
	begin(finder, &verdict);
	if (!judge_leaks(finder, &verdict) || is_told(finder))
		return;
	if (finder->device->ooms)
		verdict.evidence.periods_left = UINT64_MAX;
	verdict.is_certain &= verdict.kind != VERDICT_KIND_LIST; /* it may have a bound that was not reached */
	keep(finder, &verdict);
}

static bool judge_copy(struct situation *at)
{
	return judge_duplicate(at) && at->verdict->is_certain && copy_is_read(at, at->verdict->evidence.stack);
}

static bool judge_copy_let_go(struct finder *finder, struct verdict *verdict)
{
	struct segment_map map = {0};
	struct situation at;
	return begin_before_let_go(finder, verdict, &map, &at) && judge_copy(&at);
}

/* A checkpoint that stays after the model has taken it is worth a word when it is as large as the model. What the program
 * copies itself (averages, targets, the best so far) it wants. */
static void find_duplicate(struct finder *finder)
{
	struct verdict verdict;
	begin(finder, &verdict);
	if (finder->at.work->has_trained && (judge_copy(&finder->at) || judge_copy_let_go(finder, &verdict)))
		keep(finder, &verdict);
}

/* PyTorch has all but one part in twenty of what it can have. */
static bool is_full(const struct verdict_evidence *evidence)
{
	uint64_t usable = verdict_usable_bytes(evidence);
	uint64_t reserved = evidence->live_bytes + evidence->idle_bytes;
	return evidence->untracked_bytes != UINT64_MAX && usable && reserved + usable / 20 >= usable;
}

/* What was ever live fits well: the cache is what fills the card, with pieces of sizes that do not come again. */
static void advise_against_retries(const struct finder *finder, struct verdict *verdict)
{
	const struct device_figures *told = finder->at.m->is_frozen ? &finder->device->frozen : &finder->device->now;
	uint64_t usable = verdict_usable_bytes(&verdict->evidence);
	bool fits = told->pytorch_allocated.peak_bytes <= usable / 5 * 4;
	if (fits)
		verdict_add_action(verdict, ADVICE_WHATIF, false, 0);
	verdict_add_action(verdict, fits ? ADVICE_LARGEST_FIRST : ADVICE_SMALLER_BATCH, false, 0);
	if (!fits)
		verdict_add_action(verdict, ADVICE_WHATIF, false, 0);
}

/* Since it last ran out, if it did: those before have been told with that. */
static uint64_t count_retries(const struct finder *finder)
{
	const struct model *m = finder->at.m;
	uint64_t told = 0, ooms = finder->device->ooms;
	for (size_t i = 0; i < m->oom_count; i++) {
		const struct model_oom *oom = &m->ooms[i]->oom;
		if (oom->device != finder->device->slot)
			continue;
		told = oom->by_pytorch ? oom->retries : told;
		ooms--;
	}
	return finder->device->retries > told + ooms ? finder->device->retries - told - ooms : 0;
}

/* Every retry empties the whole cache: one gets a program over a single moment, unless the card is full again. */
static void find_retries(struct finder *finder)
{
	struct verdict verdict;
	begin(finder, &verdict);
	uint64_t retries = count_retries(finder);
	if (retries < RETRIES_MANY && !(retries && is_full(&verdict.evidence)))
		return;
	verdict.cause = VERDICT_NEAR_LIMIT;
	verdict.is_certain = retries >= RETRIES_MANY;
	verdict.evidence.retries = retries;
	if (verdict.evidence.waits * 2 >= retries) {
		verdict.kind = VERDICT_KIND_PENDING_FREE;
		verdict_add_action(&verdict, ADVICE_WAIT_STREAM, false, 0);
	} else {
		advise_against_retries(finder, &verdict);
	}
	keep(finder, &verdict);
}

static void find_casts(struct finder *finder)
{
	struct verdict verdict;
	begin(finder, &verdict);
	if (judge_casts_that_were_kept(&finder->at, finder->device))
		keep(finder, &verdict);
}

static void find_idle_cache(struct finder *finder)
{
	struct verdict verdict;
	begin(finder, &verdict);
	if (judge_idle_cache(&finder->at, finder->device))
		keep(finder, &verdict);
}

/* What graphs grow by has been told. */
static void find_unused_graph(struct finder *finder, bool has_leak)
{
	struct verdict verdict;
	bool is_told = has_leak && finder->found[finder->count - 1].kind == VERDICT_KIND_GRAPH;
	begin(finder, &verdict);
	if (!is_told && judge_unused_graph(&finder->at, finder->device))
		keep(finder, &verdict);
}

/* What grows is there after each step too. */
static void find_kept_graph(struct finder *finder, bool has_leak)
{
	struct verdict verdict;
	begin(finder, &verdict);
	if (!has_leak && judge_kept_graph(&finder->at, finder->device))
		keep(finder, &verdict);
}

static void find_in_device(struct finder *finder)
{
	size_t before = finder->count;
	find_leak(finder);
	bool has_leak = finder->count > before;
	find_unused_graph(finder, has_leak);
	find_kept_graph(finder, has_leak);
	find_duplicate(finder);
	find_retries(finder);
	find_casts(finder);
	find_idle_cache(finder);
}

size_t model_findings(const struct model *m, struct verdict *found, size_t capacity)
{
	struct finder finder = {.at = {.m = m, .end = UINT64_MAX, .arena = arena_create()}, .found = found, .capacity = capacity};
	finder.at.is_recording_told = verdict_is_recording_told(m);
	struct work work;
	for (unsigned slot = 0; finder.at.arena && slot < SLOT_COUNT; slot++) {
		const struct device *d = m->devices[slot];
		if (!d || !d->has_blocks)
			continue;
		attribution_describe_work(m, (uint8_t)slot, &work);
		finder.device = d;
		finder.at.map = model_segments_now(m, slot_ordinal(slot));
		finder.at.trend = m->is_frozen ? d->frozen_trend : &d->trend;
		finder.at.work = m->is_frozen ? &d->frozen_work : &work;
		find_in_device(&finder);
	}
	for (size_t i = 0; i < finder.count; i++)
		verdict_doubt(m, &found[i]);
	if (finder.at.arena)
		arena_release(finder.at.arena);
	return finder.count;
}
