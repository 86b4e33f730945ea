/* Feeds a script to the allocator's model. Owns what an OOM means: what comes after the first is "as if
 * it had fitted"; and the search for the least memory. Must never change the script. */
#include "model/replay.h"

#include <errno.h>

#include "base/bytes.h"

#define NEED_UNIT_BYTES (2ull << 20)
#define NEED_PART	4 /* a trial that fails ends early and so is cheap: most trials are low */

struct replay {
	const struct script *script;
	const struct replay_choice *choice;
	struct replay_result *result;
	struct allocator *allocator;
	struct allocator_conf conf;
	struct piece **slots;
	bool is_over;
};

static void note_oom(struct replay *replay, const struct act *act)
{
	struct replay_result *result = replay->result;
	replay->is_over |= replay->choice->stops_at_oom;
	if (result->ooms++)
		return;
	result->oom_step = result->steps;
	result->oom_sequence = replay->script->sequences[act - replay->script->acts];
	result->oom_bytes = act->bytes;
}

static struct piece *alloc_too_much(struct replay *replay, const struct act *act)
{
	if (allocator_failed(replay->allocator))
		return NULL;
	note_oom(replay, act);
	return replay->is_over ? NULL
			       : allocator_alloc_unlimited(replay->allocator, act->class_index,
							   act->bytes);
}

static void alloc_block(struct replay *replay, const struct act *act)
{
	struct piece *piece = allocator_alloc(replay->allocator, act->class_index, act->bytes);
	replay->slots[act->slot] = piece ? piece : alloc_too_much(replay, act);
}

static void free_block(struct replay *replay, const struct act *act)
{
	if (replay->slots[act->slot])
		allocator_free(replay->allocator, replay->slots[act->slot]);
	replay->slots[act->slot] = NULL;
}

/* The recorded run gave up here. */
static void try_failed_request(struct replay *replay, const struct act *act)
{
	struct piece *piece = allocator_alloc(replay->allocator, act->class_index, act->bytes);
	if (piece)
		allocator_free(replay->allocator, piece);
	else if (!allocator_failed(replay->allocator))
		note_oom(replay, act);
}

static void end_step(struct replay *replay)
{
	replay->result->steps++;
	if (replay->choice->empties_each_step)
		allocator_release_cached(replay->allocator, NULL);
}

static void change_settings(struct replay *replay, const struct act *act)
{
	char buffer[64];
	struct text reason;
	const struct defs *changes = replay->choice->changes;
	if (!changes)
		return;
	text_init_fixed(&reason, buffer, sizeof buffer);
	allocator_conf_parse(&replay->conf, defs_string(changes, act->slot), &reason);
	allocator_change_conf(replay->allocator, &replay->conf);
}

/* How many acts it was. */
static size_t perform(struct replay *replay, const struct act *act)
{
	switch (act->kind) {
	case ACT_BRIEF:
		if (allocator_alloc_briefly(replay->allocator, act->class_index, act->bytes))
			return 2;
		alloc_block(replay, act);
		break;
	case ACT_ALLOC:
		alloc_block(replay, act);
		break;
	case ACT_FREE:
		free_block(replay, act);
		break;
	case ACT_TRY:
		try_failed_request(replay, act);
		break;
	case ACT_TAKE:
		allocator_take_outside(replay->allocator, act->bytes);
		break;
	case ACT_GIVE:
		allocator_give_outside(replay->allocator, act->bytes);
		break;
	case ACT_EMPTY:
		if (!replay->choice->empties_each_step)
			allocator_release_cached(replay->allocator, NULL);
		break;
	case ACT_RELEASE:
		allocator_release_cached(replay->allocator, replay->script->releases[act->slot]);
		break;
	case ACT_STEP:
		end_step(replay);
		break;
	case ACT_SETTINGS:
		change_settings(replay, act);
		break;
	default:
		break;
	}
	return 1;
}

int replay_run(const struct script *script, const struct replay_choice *choice,
	       struct replay_result *result)
{
	struct arena *arena = arena_create();
	struct replay replay = {
		.script = script, .choice = choice, .result = result, .conf = choice->conf};
	*result = (struct replay_result){0};
	if (arena)
		replay.slots =
			arena_alloc(arena, ((size_t)script->slot_count + 1) * sizeof *replay.slots);
	if (replay.slots)
		replay.allocator = allocator_create(&choice->conf, &choice->limits,
						    script->classes->count,
						    script->classes->is_private);
	for (size_t i = 0; replay.allocator && i < script->act_count && !replay.is_over;)
		i += perform(&replay, &script->acts[i]);
	bool failed = !replay.allocator || allocator_failed(replay.allocator);
	if (replay.allocator) {
		result->counters = *allocator_counters(replay.allocator);
		allocator_release(replay.allocator);
	}
	if (arena)
		arena_release(arena);
	return failed ? -ENOMEM : 0;
}

static uint64_t units_of(uint64_t bytes)
{
	return bytes / NEED_UNIT_BYTES + (bytes % NEED_UNIT_BYTES != 0);
}

/* With less memory cached blocks are given back that with more would have been handed out whole: what was allocated in
 * a run without a limit is no bound. And it may fit in less where in more it does not: what is found fits, and does not
 * in one unit less. A trial tells of more than its own capacity: it would have gone the same way in all the memory from what it
 * used up to what would have granted the least of what was refused. */
static int find_need(const struct script *script, const struct replay_choice *choice,
		     const struct replay_result *unlimited, uint64_t *need_bytes)
{
	struct replay_choice trial = *choice;
	struct replay_result result;
	uint64_t low = units_of(script->least_bytes);
	uint64_t high = units_of(unlimited->counters.peak_used_bytes);
	while (low < high) {
		uint64_t middle = low + (high - low) / NEED_PART;
		trial.limits.capacity_bytes = middle * NEED_UNIT_BYTES;
		if (replay_run(script, &trial, &result))
			return -ENOMEM;
		uint64_t next = units_of(result.counters.least_refused_bytes);
		if (!result.ooms)
			high = units_of(result.counters.peak_used_bytes);
		else
			low = next > high ? high : next > middle ? next : middle + 1;
	}
	*need_bytes = high * NEED_UNIT_BYTES;
	return 0;
}

/* What is there of a device, beside others, of which `part` holds `bytes`. */
static uint64_t units_for_part(uint64_t bytes, double part, uint64_t other_bytes)
{
	double total = (double)bytes / part;
	uint64_t total_bytes = total < (double)(UINT64_MAX / 4) ? (uint64_t)total : UINT64_MAX / 4;
	return units_of(total_bytes > other_bytes ? total_bytes - other_bytes : 0);
}

/* A fraction grows with the device, and so does what is kept before garbage is collected: a trial tells of its own
 * device alone. It surely fits where nothing is collected. */
static int find_need_of_fraction(const struct script *script, const struct replay_choice *choice,
				 uint64_t other_bytes, uint64_t *need_bytes)
{
	struct replay_choice trial = *choice;
	struct replay_result result;
	double fraction = choice->conf.memory_fraction;
	double threshold = choice->conf.gc_threshold > 0 ? choice->conf.gc_threshold : 1;
	trial.limits.total_bytes = 0; /* no fraction is known of it */
	trial.stops_at_oom = false;
	if (replay_run(script, &trial, &result))
		return -ENOMEM;
	const struct allocator_counters *free_run = &result.counters;
	uint64_t low = bytes_larger(units_of(script->least_bytes),
				    units_for_part(script->least_bytes, fraction, other_bytes));
	uint64_t high = bytes_larger(units_of(free_run->peak_used_bytes),
			       units_for_part(free_run->peak_reserved_bytes, fraction * threshold,
					      other_bytes) + 1);
	trial.stops_at_oom = true;
	while (low < high) {
		uint64_t middle = low + (high - low) / NEED_PART;
		trial.limits.capacity_bytes = middle * NEED_UNIT_BYTES;
		trial.limits.total_bytes = trial.limits.capacity_bytes + other_bytes;
		if (replay_run(script, &trial, &result))
			return -ENOMEM;
		if (result.ooms)
			low = middle + 1;
		else
			high = middle;
	}
	*need_bytes = high * NEED_UNIT_BYTES;
	return 0;
}

int replay_find_need(const struct script *script, const struct replay_choice *choice,
		     uint64_t other_bytes, const struct replay_result *unlimited,
		     uint64_t *need_bytes)
{
	struct replay_choice trial = *choice;
	trial.stops_at_oom = true;
	if (allocator_conf_has_fraction(&choice->conf))
		return find_need_of_fraction(script, &trial, other_bytes, need_bytes);
	return find_need(script, &trial, unlimited, need_bytes);
}
