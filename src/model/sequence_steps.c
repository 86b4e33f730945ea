/* Where the steps of a recorded program ended, if it marked none: as its optimizer shows, or where
 * allocated memory is at a low. Owns the place of a step among the ops. Must never move another op. */
#include <string.h>

#include "model/sequence_private.h"

static size_t mark(bool *is_end, size_t at)
{
	bool is_new = !is_end[at];
	is_end[at] = true;
	return is_new;
}

static void insert_steps(struct sequence *sequence, const bool *is_end, size_t count)
{
	size_t from = sequence->op_count, to = from + count;
	sequence->op_count = to;
	while (from--) {
		if (is_end[from])
			sequence->ops[--to] = (struct op){.kind = OP_STEP, .region = NO_REGION};
		sequence->ops[--to] = sequence->ops[from];
	}
}

static bool reserve(struct sequence *sequence, size_t capacity)
{
	struct op *ops = sequence->ops;
	if (capacity <= sequence->op_capacity)
		return true;
	ops = arena_resize(sequence->arena, ops, sequence->op_capacity * sizeof *ops,
			   capacity * sizeof *ops);
	if (!ops)
		return false;
	sequence->ops = ops;
	sequence->op_capacity = capacity;
	return true;
}

/* `is_end`, by op, and how many are set. */
static void put(struct sequence *sequence, const bool *is_end, size_t count)
{
	bool has_room = reserve(sequence, sequence->op_count + count);
	sequence->failed |= !has_room;
	if (!has_room)
		return;
	insert_steps(sequence, is_end, count);
	sequence->counts.steps = count;
}

/* ---------- as the optimizer shows ---------- */

void sequence_put_steps(struct sequence *sequence, const uint64_t *step_ends, size_t count)
{
	size_t at = 0, op_count = sequence->op_count, found = 0;
	bool *is_end = count ? arena_alloc(sequence->arena, op_count + 1) : NULL;
	if (!is_end || !op_count) {
		sequence->failed |= count && !is_end;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		while (at < op_count && sequence->ops[at].sequence < step_ends[i])
			at++;
		while (at < op_count && sequence->ops[at].kind == OP_FREE)
			at++;
		if (at)
			found += mark(is_end, at - 1);
	}
	put(sequence, is_end, found);
	sequence->counts.steps_are_trained = true;
	arena_free(sequence->arena, is_end, op_count + 1);
}

/* ---------- lows ---------- */

struct lows {
	uint64_t valley, hill; /* bytes */
	uint64_t allocated, least;
	size_t lowest, count;
	bool was_on_hill;
};

static void change(uint64_t *allocated, const struct op *op)
{
	if (op->kind == OP_ALLOC)
		*allocated += op->bytes;
	else if (op->kind == OP_FREE)
		*allocated -= op->bytes;
}

/* The last allocation: what comes behind is the end of the program, which frees all. */
static size_t last_alloc(const struct sequence *sequence)
{
	size_t at = sequence->op_count;
	while (at && sequence->ops[at - 1].kind != OP_ALLOC)
		at--;
	return at;
}

/* The lowest allocated bytes of the second half: what a program keeps from step to step, once its optimizer has
 * its state. */
static uint64_t lasting_bytes(const struct sequence *sequence, size_t op_count)
{
	uint64_t allocated = 0, least = UINT64_MAX;
	for (size_t i = 0; i < op_count; i++) {
		change(&allocated, &sequence->ops[i]);
		if (i >= op_count / 2 && allocated < least)
			least = allocated;
	}
	return least;
}

static void end_valley(struct lows *lows, bool *is_end)
{
	if (lows->least != UINT64_MAX)
		lows->count += mark(is_end, lows->lowest);
	lows->least = UINT64_MAX;
}

/* Marks the lowest op of each valley between two hills. */
static size_t find_valleys(const struct sequence *sequence, bool *is_end)
{
	uint64_t floor = lasting_bytes(sequence, last_alloc(sequence));
	uint64_t height = sequence->counts.peak_allocated_bytes - floor;
	struct lows lows = {
		.valley = floor + height / 10, .hill = floor + height / 2, .least = UINT64_MAX};
	for (size_t i = 0; i < sequence->op_count; i++) {
		change(&lows.allocated, &sequence->ops[i]);
		if (lows.allocated >= lows.hill)
			end_valley(&lows, is_end);
		lows.was_on_hill |= lows.allocated >= lows.hill;
		if (lows.was_on_hill && lows.allocated <= lows.valley &&
		    lows.allocated < lows.least) {
			lows.least = lows.allocated;
			lows.lowest = i;
		}
	}
	end_valley(&lows, is_end);
	return lows.count;
}

void sequence_find_steps(struct sequence *sequence)
{
	size_t op_count = sequence->op_count;
	bool *is_end = arena_alloc(sequence->arena, op_count + 1);
	sequence->failed |= !is_end;
	if (is_end && last_alloc(sequence))
		put(sequence, is_end, find_valleys(sequence, is_end));
	arena_free(sequence->arena, is_end, op_count + 1);
}
