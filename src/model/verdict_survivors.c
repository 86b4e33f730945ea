/* Is something kept that grows? Two witnesses must agree: the minimum of live memory rises over the last
 * stretch of the run, and of what is live, blocks of the same stacks were born all along that stretch. What
 * is bounded (a queue that is full, a model that is set up) fails one of the two. Owns that test. */
#include "model/survivors_private.h"

#define TINY_BYTES  4096
#define HOARD_COUNT 64 /* so many equal blocks of one line are a loop that appends, not a choice */
#define STAIRS_MANY  5 /* fewer may be all that is kept */
#define PASSES_USUAL 8 /* before a backward, at most */

static struct family *family_of(struct families *all, uint64_t place)
{
	uint32_t at = (uint32_t)(place * 0x9E3779B97F4A7C15u >> 32) & all->mask;
	while (all->rows[at].count && all->rows[at].place != place)
		at = (at + 1) & all->mask;
	return &all->rows[at];
}

static void add_cast(struct family *family, uint64_t bytes)
{
	family->cast_bytes += bytes;
	if (bytes > family->cast_each_bytes)
		family->cast_each_bytes = bytes;
}

static void add_block(const struct situation *at, struct families *all, const struct segment_block *block)
{
	uint32_t window = trend_window_of(&all->growth, block->born);
	if (window == UINT32_MAX)
		return;
	uint64_t place = verdict_place(at, block->stack);
	struct family *family = family_of(all, place);
	if (!family->count) {
		family->place = place;
		family->stack = block->stack;
		family->label = block->label;
		family->smallest_bytes = block->bytes;
	}
	family->threads += !family->count || family->last_thread != block->thread;
	family->last_thread = block->thread;
	family->count++;
	family->bytes += block->bytes;
	if (marks_at(at, block->stack).native & MARK_CAST)
		add_cast(family, block->bytes);
	family->windows |= 1ull << (window < 63 ? window : 63);
	if (block->bytes < family->smallest_bytes)
		family->smallest_bytes = block->bytes;
	uint64_t asked_bytes = size_asked(block->bytes, block->asked_bytes);
	if (asked_bytes > family->largest_bytes)
		family->largest_bytes = asked_bytes;
	if (window < all->growth.windows / 2 && asked_bytes > family->early_bytes)
		family->early_bytes = asked_bytes;
	if (block->born > family->newest_born) {
		family->newest_born = block->born;
		family->newest_bytes = block->bytes;
	}
}

/* What a call that goes on has made so far is no leak, however much it is. */
static bool is_of_call(const struct situation *at, const struct segment_block *block)
{
	return block->born >= at->work->call_begin;
}

static bool collect(const struct situation *at, struct families *all)
{
	uint32_t slots = 64;
	while (slots < 2 * at->map->block_count)
		slots *= 2;
	all->rows = arena_alloc(at->arena, slots * sizeof *all->rows);
	all->mask = slots - 1;
	for (size_t i = 0; all->rows && i < at->map->block_count; i++)
		if (!is_of_call(at, &at->map->blocks[i]))
			add_block(at, all, &at->map->blocks[i]);
	return all->rows != NULL;
}

/* What is kept once in several steps has births in all parts of the rise. */
static bool is_spread(uint64_t births, uint32_t windows)
{
	for (uint32_t part = 0; part < 4; part++) {
		uint32_t from = windows * part / 4, to = windows * (part + 1) / 4;
		uint64_t before = to < 64 ? (1ull << to) - 1 : UINT64_MAX;
		if (!((births & before) >> from))
			return false;
	}
	return true;
}

/* Born in most of the windows of the rise, the last third among them, or at least now and then all along, or with most of
 * its stairs. */
static bool recurs(const struct families *all, const struct family *family)
{
	uint32_t windows = all->growth.windows < 64 ? all->growth.windows : 64;
	uint32_t born = (uint32_t)__builtin_popcountll(family->windows);
	uint64_t late = family->windows >> (windows * 2 / 3);
	bool is_often = born * 2 >= windows || (born * 5 >= windows && is_spread(family->windows, windows));
	is_often |= all->growth.stairs && born * 4 >= all->growth.stairs * 3;
	return family->count >= 4 && born >= 4 && is_often && late;
}

static bool is_collected(const struct situation *at, const struct family *family)
{
	const struct device *d = find_device(at->m, at->verdict->device);
	return d && bursts_were_anywhere(d, marks_at(at, family->stack).site, at->end);
}

/* No more than the parameters that are there need, and none of these are new: a layer more is trained, or an expert was
 * not visited before. */
static bool is_state_of_living(const struct situation *at, const struct families *all, const struct family *family)
{
	uint64_t living = 0, born = 0;
	for (size_t i = 0; i < at->map->block_count; i++)
		living += model_label_category(at->m, at->map->blocks[i].label) == MODEL_PARAMETERS;
	for (uint32_t i = 0; i <= all->mask; i++)
		if (model_label_category(at->m, all->rows[i].label) == MODEL_PARAMETERS && recurs(all, &all->rows[i]))
			born += all->rows[i].count;
	return model_parameters_of_size(at->m, family->largest_bytes) && family->count <= 2 * living && born * 4 < living;
}

/* Parameters that are made while training goes on, or by each thread, belong to models that are made again, and so does
 * the state of optimizers that is made in many steps; more gradients than there are parameters, to a graph of gradients. */
static bool may_leak(const struct situation *at, const struct families *all, const struct family *family)
{
	enum model_category category = model_label_category(at->m, family->label);
	if (category == MODEL_PARAMETERS)
		return at->work->backwards >= 4 || is_collected(at, family) || family_is_of_threads(at, all, family);
	if (category == MODEL_WORKSPACE) /* of a library has its bound, unless threads are without */
		return family_is_of_threads(at, all, family);
	if (category == MODEL_GRADIENTS && family->count > model_parameters_of_size(at->m, family->largest_bytes))
		return true;
	if (category == MODEL_OPTIMIZER_STATE)
		return all->growth.series == &at->trend->steps && !is_state_of_living(at, all, family);
	return category != MODEL_GRADIENTS;
}

/* Each block is larger than those before it. What autograd keeps of one line may be of many sizes in every pass. */
static bool is_growing(const struct situation *at, const struct family *family)
{
	bool is_varied = family->largest_bytes > family->smallest_bytes * 2 &&
			 family->newest_bytes * 4 > family->largest_bytes * 3;
	return is_varied && (!family_is_in_graph(at, family) || family->early_bytes * 5 <= family->largest_bytes * 4);
}

/* What is made from nothing is no output of a layer. */
static bool is_of_layer(const struct situation *at, const struct family *family)
{
	return family_is_in_module(at, family) && !(marks_at(at, family->stack).native & MARK_FACTORY);
}

static void sum_family(const struct situation *at, struct families *all, const struct family *family)
{
	all->explained_bytes += family->bytes;
	all->count += family->count;
	all->stacks++;
	if (!all->largest || family->bytes > all->largest->bytes)
		all->largest = family;
	if (is_collected(at, family))
		all->collected_bytes += family->bytes;
	if (family_is_in_graph(at, family) || is_of_layer(at, family)) {
		all->graph_bytes += family->bytes;
		all->unrecorded_bytes += verdict_is_unrecorded(at, family->stack) ? family->bytes : 0;
		all->graph_stacks++;
		if (family->count > all->graph_count)
			all->graph_count = family->count;
	} else if (family->count > all->other_count) {
		all->other_count = family->count;
	}
	if (!family_is_in_graph(at, family) && !family_is_in_module(at, family) && family->count > all->beside_count)
		all->beside_count = family->count;
	if (family_is_copy_of_weights(at, family))
		all->copied_bytes += family->bytes;
	all->cast_bytes += family->cast_bytes;
	if (family->cast_each_bytes > all->cast_each_bytes)
		all->cast_each_bytes = family->cast_each_bytes;
	if (model_label_category(at->m, family->label) == MODEL_PARAMETERS)
		all->parameter_bytes += family->bytes;
	if (family->threads >= THREADS_LEAST)
		all->thread_bytes += family->bytes;
	if (is_growing(at, family))
		all->growing_bytes += family->bytes;
}

/* What the copies of autocast were made of is twice as large. */
static void sum_sources(struct families *all)
{
	for (uint32_t i = 0; all->cast_bytes && i <= all->mask; i++)
		if (all->rows[i].count && recurs(all, &all->rows[i]) &&
		    all->rows[i].largest_bytes == 2 * all->cast_each_bytes)
			all->source_bytes += all->rows[i].bytes;
}

static bool is_join(const struct situation *at, uint32_t stack)
{
	return marks_at(at, stack).native & MARK_JOIN;
}

/* A cache that is reordered after it was joined has that size in both places. */
static bool is_join_of_size(const struct situation *at, const struct family *family, uint32_t stack, uint64_t bytes)
{
	return is_join(at, stack) && bytes * 17 / 16 >= family->largest_bytes && bytes <= family->largest_bytes * 17 / 16;
}

static bool is_joined_elsewhere(const struct situation *at, const struct families *all, const struct family *family)
{
	for (uint32_t i = 0; i <= all->mask; i++)
		if (all->rows[i].count && is_join_of_size(at, family, all->rows[i].stack, all->rows[i].largest_bytes))
			return true;
	return at->oom && is_join_of_size(at, family, at->oom->stack, at->oom->requested_bytes);
}

/* What is there already and what is new are put together. Otherwise the next is larger because the data are. */
static bool is_joined(const struct situation *at, const struct families *all, const struct family *family)
{
	return !has_native_frames(at, family->stack) || is_join(at, family->stack) ||
	       is_joined_elsewhere(at, all, family);
}

/* Equal ones that were made at several times were kept beside each other; what is made anew is as old as its size. */
static bool are_beside(const struct family *family)
{
	bool are_equal = family->smallest_bytes * 4 >= family->largest_bytes * 3;
	return are_equal && __builtin_popcountll(family->windows) >= 3;
}

/* In a module it may be what its layers join for a larger batch; not where the call that made it is over, and nothing
 * goes backwards, or a cache has made it. */
static bool is_of_a_layer_alone(const struct situation *at, const struct family *family)
{
	if (!family_is_in_module(at, family))
		return false;
	return !is_join(at, family->stack) || (at->work->has_trained && !family_is_of_cache(at, family));
}

static bool has_grown(const struct situation *at, const struct families *all, const struct family *family)
{
	const struct trend_series *events = &at->trend->events;
	if (!family->count || family->count > 64 || family->newest_born < events->windows[events->count / 2].begin)
		return false;
	bool is_as_large = family->bytes * 8 >= all->growth.bytes && family->bytes <= all->growth.bytes * 8;
	return is_as_large && is_joined(at, all, family) && may_leak(at, all, family) && !is_of_a_layer_alone(at, family);
}

/* A stack of which one block is live that is nearly as large as what grew: made anew, ever larger. What came at once
 * did not grow. */
static void sum_grown(const struct situation *at, struct families *all)
{
	bool is_gradual = all->growth.steepest_bytes * 2 < all->growth.bytes;
	for (uint32_t i = 0; is_gradual && i <= all->mask; i++) {
		const struct family *family = &all->rows[i];
		if (!has_grown(at, all, family))
			continue;
		all->growing_bytes += are_beside(family) ? 0 : family->bytes;
		all->explained_bytes += family->bytes;
		all->count += family->count;
		if (!all->largest || family->bytes > all->largest->bytes)
			all->largest = family;
	}
}

/* A few copies of the weights that a program keeps, and that it had room for, it may want: the last five for an average. */
static bool are_few_copies(const struct situation *at, const struct families *all)
{
	bool are_few = all->growth.stairs && all->growth.stairs < STAIRS_MANY;
	return !at->oom && are_few && all->copied_bytes * 4 >= all->explained_bytes * 3;
}

static void set_verdict(struct situation *at, const struct families *all, bool by_step)
{
	static const enum verdict_advice advice[VERDICT_KIND_COUNT] = {
		[VERDICT_KIND_GRAPH] = ADVICE_DETACH,	     [VERDICT_KIND_LIST] = ADVICE_CLEAR_LIST,
		[VERDICT_KIND_CACHE] = ADVICE_BOUND_CACHE,   [VERDICT_KIND_CYCLE] = ADVICE_BREAK_CYCLE,
		[VERDICT_KIND_PER_THREAD] = ADVICE_FIXED_THREADS,
	};
	struct verdict *verdict = at->verdict;
	struct verdict_evidence *evidence = &verdict->evidence;
	verdict->cause = VERDICT_LEAK;
	verdict->kind = survivors_kind(at, all);
	bool is_long = all->growth.windows >= 8 && (!all->growth.stairs || all->growth.stairs >= STAIRS_MANY);
	verdict->is_certain = is_long && all->explained_bytes * 4 >= all->growth.bytes * 3;
	evidence->growth_bytes = all->growth.bytes;
	evidence->growth_periods = all->growth.periods;
	evidence->growth_each_bytes = all->growth.each_bytes;
	evidence->growth_is_by_step = by_step;
	evidence->count = all->count;
	evidence->bytes = all->explained_bytes;
	evidence->stack = all->largest->stack;
	if (evidence->growth_each_bytes && evidence->free_bytes != UINT64_MAX)
		evidence->periods_left = (evidence->free_bytes + evidence->idle_bytes) / evidence->growth_each_bytes;
	verdict_add_action(verdict, advice[verdict->kind], true, all->explained_bytes);
	survivors_advise(at, all, by_step);
	verdict_add_not(verdict, NOT_SMALLER_BATCH);
	verdict_add_not(verdict, NOT_SETTINGS);
}

/* Nothing was taken back since the rise began: a program that only collects, or sets itself up. */
static bool is_setting_up(const struct situation *at, const struct trend_growth *growth, bool by_step)
{
	return !by_step && !at->work->has_trained && growth->frees * 4 < growth->allocations;
}

/* Work space of libraries is as large in a small program as in a large one. */
static bool is_large(const struct situation *at, const struct trend_growth *growth)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t space = evidence->categories.bytes[MODEL_WORKSPACE];
	uint64_t live = evidence->live_bytes > space ? evidence->live_bytes - space : 0;
	if (at->oom) /* and without it, it would have fitted */
		return growth->bytes * 5 >= live && growth->bytes >= evidence->missing_bytes;
	return growth->bytes * 20 >= live || growth->bytes >= TINY_BYTES * growth->periods;
}

static void blame_casts(struct situation *at)
{
	at->verdict->cause = VERDICT_AUTOCAST_COPIES;
	at->verdict->kind = VERDICT_KIND_NONE;
	at->verdict->is_certain = false;
	at->verdict->actions[0].advice = ADVICE_CLEAR_AUTOCAST;
}

/* A cache of keys and values grows in each generation that goes on as the program ends, and that is how it should be. */
static bool may_be_wanted(const struct situation *at, const struct families *all)
{
	return !at->oom && all->growth.bytes * 4 < at->verdict->evidence.live_bytes;
}

static bool judge_rise(struct situation *at, struct trend_growth growth, bool by_step)
{
	struct families all = {.growth = growth};
	bool is_grown = false;
	if (!all.growth.is_growing || !is_large(at, &all.growth) || is_setting_up(at, &all.growth, by_step))
		return false;
	if (!collect(at, &all))
		return false;
	for (uint32_t i = 0; i <= all.mask; i++)
		if (all.rows[i].count && recurs(&all, &all.rows[i]) && may_leak(at, &all, &all.rows[i]))
			sum_family(at, &all, &all.rows[i]);
	if (all.explained_bytes * 2 < all.growth.bytes) {
		all.explained_bytes = 0;
		is_grown = true;
		sum_grown(at, &all);
	}
	bool is_wanted = are_few_copies(at, &all) || (is_grown && may_be_wanted(at, &all));
	if (all.explained_bytes * 2 < all.growth.bytes || !all.largest || is_wanted)
		return false;
	set_verdict(at, &all, by_step);
	at->verdict->is_certain &= !is_grown || at->oom;
	sum_sources(&all);
	if (are_casts_kept(at, &all.growth, all.cast_bytes, all.source_bytes, all.explained_bytes))
		blame_casts(at);
	return true;
}

/* Of a program that has trained: forward passes pile up, many times as many as it makes before a backward. One that
 * makes many then runs a cell over a sequence, which may be longer this time. */
static bool is_piling(const struct work *work)
{
	return work->passes_least && work->passes_least <= PASSES_USUAL && work->passes >= 8 &&
	       work->passes / 4 >= work->passes_least;
}

bool judge_leak(struct situation *at)
{
	if (!at->map || !at->trend)
		return false;
	if (judge_rise(at, trend_growth_of(&at->trend->steps), true) ||
	    judge_rise(at, trend_growth_of_events(at->trend), false))
		return true;
	return at->oom && is_piling(at->work) && judge_rise(at, trend_growth_since(&at->trend->events, at->work->backward_end), false);
}

/* Equal data of one line, and nearly nothing else: all that is live is looked at, since a few blocks are no trend. */
static bool is_hoard(const struct situation *at, const struct family *family)
{
	return model_label_category(at->m, family->label) == MODEL_INPUT && family->count >= HOARD_COUNT &&
	       family->smallest_bytes == family->largest_bytes &&
	       family->bytes >= at->verdict->evidence.live_bytes / 10 * 9;
}

bool judge_hoard(struct situation *at)
{
	static const struct trend_series nothing;
	struct families all = {.growth = {.series = &nothing}};
	if (!at->map || !at->oom || at->work->has_trained || !collect(at, &all))
		return false;
	const struct family *family = family_of(&all, verdict_place(at, at->oom->stack));
	if (!family->count || !is_hoard(at, family))
		return false;
	all.growth.bytes = family->bytes;
	sum_family(at, &all, family);
	set_verdict(at, &all, false);
	return true;
}
