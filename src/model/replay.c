/* Feeds a sequence to the allocator's model. Owns what of the recorded run is repeated (blocks, the
 * program's empty_cache, memory of others) and what is not (retries: they follow from the limits).
 * What comes after the first OOM is "as if it had fitted". */
#include "model/replay.h"

#include <errno.h>

#define NEED_UNIT_BYTES (2ull << 20)

struct replay {
	const struct sequence *sequence;
	const struct classes *classes;
	const struct defs *defs;
	const struct replay_choice *choice;
	struct replay_result *result;
	struct allocator *allocator;
	struct allocator_conf conf;
	struct piece **lives;
	bool is_refused; /* the driver refused: the release that follows is PyTorch's retry */
	bool is_over;
};

static void note_oom(struct replay *replay, const struct op *op)
{
	struct replay_result *result = replay->result;
	replay->is_over |= replay->choice->stops_at_oom;
	if (result->ooms++)
		return;
	result->oom_step = result->steps;
	result->oom_sequence = op->sequence;
	result->oom_bytes = op->bytes;
}

static uint64_t request_of(const struct op *op)
{
	return op->asked_bytes ? op->asked_bytes : op->bytes;
}

static void alloc_block(struct replay *replay, const struct op *op)
{
	uint64_t bytes = request_of(op);
	struct piece *piece = allocator_alloc(replay->allocator, op->class_index, bytes);
	replay->is_refused = false;
	if (!piece && !allocator_failed(replay->allocator)) {
		note_oom(replay, op);
		if (!replay->is_over)
			piece = allocator_alloc_unlimited(replay->allocator, op->class_index, bytes);
	}
	replay->lives[op->index] = piece;
}

static void free_block(struct replay *replay, const struct op *op)
{
	if (replay->lives[op->index])
		allocator_free(replay->allocator, replay->lives[op->index]);
	replay->lives[op->index] = NULL;
}

/* The recorded run gave up here. */
static void try_failed_request(struct replay *replay, const struct op *op)
{
	struct piece *piece = allocator_alloc(replay->allocator, op->class_index, op->bytes);
	replay->is_refused = false;
	if (piece)
		allocator_free(replay->allocator, piece);
	else if (!allocator_failed(replay->allocator))
		note_oom(replay, op);
}

/* A run of releases that no refusal explains is the program's empty_cache(), or the end of a pool: then the classes
 * that it touched give back what they have. */
static void release_as_recorded(struct replay *replay, size_t at)
{
	const struct sequence *sequence = replay->sequence;
	const struct op *ops = sequence->ops;
	bool classes[CLASSES_MAX] = {false};
	bool is_of_all = ops[at].kind == OP_UNMAP || ops[at].is_emptied;
	bool may_be_emptied = is_of_all || !sequence->defs;
	if (may_be_emptied && replay->choice->empties_each_step)
		return;
	for (; !is_of_all && at < sequence->op_count && ops[at].kind == OP_GIVE_BACK; at++)
		if (ops[at].class_index != UINT16_MAX)
			classes[ops[at].class_index] = true;
	allocator_release_cached(replay->allocator, is_of_all ? NULL : classes);
}

static bool continues_release(const struct sequence *sequence, size_t at)
{
	return at && (sequence->ops[at - 1].kind == OP_GIVE_BACK ||
		      sequence->ops[at - 1].kind == OP_UNMAP);
}

static void give_back(struct replay *replay, size_t at)
{
	const struct op *op = &replay->sequence->ops[at];
	uint8_t kind = replay->sequence->regions[op->region].kind;
	bool is_torch = sequence_is_torch(replay->sequence, op->region);
	if (kind != REGION_RANGE && !is_torch)
		allocator_give_outside(replay->allocator, op->bytes);
	else if ((kind == REGION_SEGMENT || op->kind == OP_UNMAP) && is_torch &&
		 !replay->is_refused && !continues_release(replay->sequence, at))
		release_as_recorded(replay, at);
}

static void obtain(struct replay *replay, const struct op *op)
{
	bool is_range = replay->sequence->regions[op->region].kind == REGION_RANGE;
	if (!is_range && !sequence_is_torch(replay->sequence, op->region))
		allocator_take_outside(replay->allocator, op->bytes);
}

static void end_step(struct replay *replay)
{
	replay->result->steps++;
	if (replay->choice->empties_each_step)
		allocator_release_cached(replay->allocator, NULL);
}

static void change_settings(struct replay *replay, const struct op *op)
{
	char buffer[64];
	struct text reason;
	if (!replay->choice->keeps_settings || !replay->defs)
		return;
	text_init_fixed(&reason, buffer, sizeof buffer);
	allocator_conf_parse(&replay->conf, defs_string(replay->defs, op->index), &reason);
	allocator_change_conf(replay->allocator, &replay->conf);
}

static void replay_op(struct replay *replay, size_t at)
{
	const struct op *op = &replay->sequence->ops[at];
	switch (op->kind) {
	case OP_ALLOC:
		alloc_block(replay, op);
		break;
	case OP_FREE:
		free_block(replay, op);
		break;
	case OP_OOM:
		try_failed_request(replay, op);
		break;
	case OP_OBTAIN:
		obtain(replay, op);
		break;
	case OP_GIVE_BACK:
	case OP_UNMAP:
		give_back(replay, at);
		break;
	case OP_REFUSED:
		replay->is_refused = true;
		break;
	case OP_STEP:
		end_step(replay);
		break;
	case OP_SETTINGS:
		change_settings(replay, op);
		break;
	default:
		break;
	}
}

int replay_run(const struct sequence *sequence, const struct classes *classes,
	       const struct defs *defs, const struct replay_choice *choice,
	       struct replay_result *result)
{
	struct arena *arena = arena_create();
	struct replay replay = {.sequence = sequence,
				.classes = classes,
				.defs = defs,
				.choice = choice,
				.result = result,
				.conf = choice->conf};
	*result = (struct replay_result){0};
	if (arena)
		replay.lives =
			arena_alloc(arena, ((size_t)sequence->life_count + 1) * sizeof *replay.lives);
	if (replay.lives)
		replay.allocator = allocator_create(&choice->conf, &choice->limits, classes->count,
						    classes->is_private);
	for (size_t i = 0; replay.allocator && i < sequence->op_count && !replay.is_over; i++)
		replay_op(&replay, i);
	bool failed = !replay.allocator || allocator_failed(replay.allocator);
	if (replay.allocator) {
		result->counters = *allocator_counters(replay.allocator);
		allocator_release(replay.allocator);
	}
	if (arena)
		arena_release(arena);
	return failed ? -ENOMEM : 0;
}

int replay_find_need(const struct sequence *sequence, const struct classes *classes,
		     const struct defs *defs, const struct replay_choice *choice,
		     const struct replay_result *unlimited, uint64_t *need_bytes)
{
	struct replay_choice trial = *choice;
	struct replay_result result;
	uint64_t low = unlimited->counters.peak_allocated_bytes / NEED_UNIT_BYTES;
	uint64_t high = unlimited->counters.peak_used_bytes / NEED_UNIT_BYTES + 1;
	trial.stops_at_oom = true;
	while (low < high) {
		uint64_t middle = (low + high) / 2;
		trial.limits.capacity_bytes = middle * NEED_UNIT_BYTES;
		if (replay_run(sequence, classes, defs, &trial, &result))
			return -ENOMEM;
		if (result.ooms)
			low = middle + 1;
		else
			high = middle;
	}
	*need_bytes = high * NEED_UNIT_BYTES;
	return 0;
}
