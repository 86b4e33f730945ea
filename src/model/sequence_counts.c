/* What a sequence amounts to as it was recorded: the truth that an identity replay is held against;
 * and steps, where the program marked none. Must never look at a model of the allocator. */
#include <string.h>

#include "model/sequence_private.h"

/* ---------- figures ---------- */

struct recount {
	uint64_t reserved, allocated;
	uint64_t last_segment; /* address */
	uint64_t rises, falls;
	bool was_page;
};

static void note_obtained(struct sequence *sequence, const struct op *op, struct recount *now)
{
	struct sequence_counts *counts = &sequence->counts;
	const struct sequence_region *region = &sequence->regions[op->region];
	bool is_page = region->kind == REGION_PAGE;
	if (region->kind == REGION_RANGE || !sequence_is_torch(sequence, op->region))
		return;
	now->reserved += region->bytes;
	if (now->reserved > counts->peak_reserved_bytes)
		counts->peak_reserved_bytes = now->reserved;
	counts->device_allocs += !is_page || !now->was_page; /* pages of one call come in a row */
	counts->has_ranges |= is_page;
	now->was_page = is_page;
	if (is_page)
		return;
	now->rises += region->address > now->last_segment;
	now->falls += region->address < now->last_segment;
	now->last_segment = region->address;
}

static void note_given_back(const struct sequence *sequence, const struct op *op,
			    struct recount *now)
{
	const struct sequence_region *region = &sequence->regions[op->region];
	if (region->kind != REGION_RANGE && sequence_is_torch(sequence, op->region))
		now->reserved -= region->bytes;
}

/* A free has the bytes of its allocation, whatever the event said. */
static void note_block(struct sequence *sequence, struct op *op, struct recount *now,
		       uint64_t *bytes)
{
	if (op->kind == OP_ALLOC) {
		bytes[op->index] = op->bytes;
		now->allocated += op->bytes;
	} else {
		op->bytes = bytes[op->index];
		now->allocated -= op->bytes;
	}
	if (now->allocated > sequence->counts.peak_allocated_bytes)
		sequence->counts.peak_allocated_bytes = now->allocated;
}

void sequence_count_recorded(struct sequence *sequence)
{
	struct recount now = {0};
	size_t table_bytes = ((size_t)sequence->life_count + 1) * sizeof(uint64_t);
	uint64_t *bytes = arena_alloc(sequence->arena, table_bytes);
	sequence->failed |= !bytes;
	for (size_t i = 0; bytes && i < sequence->op_count; i++) {
		struct op *op = &sequence->ops[i];
		if (op->kind == OP_OBTAIN)
			note_obtained(sequence, op, &now);
		else if (op->kind != OP_MAP)
			now.was_page = false;
		if (op->kind == OP_GIVE_BACK)
			note_given_back(sequence, op, &now);
		if (op->kind == OP_ALLOC || op->kind == OP_FREE)
			note_block(sequence, op, &now, bytes);
	}
	arena_free(sequence->arena, bytes, table_bytes);
	sequence->counts.final_reserved_bytes = now.reserved;
	sequence->counts.addresses_descend = now.falls > now.rises;
}

/* ---------- steps ---------- */

/* The lowest allocated bytes of the second half: what a program keeps from step to step, once its optimizer has
 * its state. */
static uint64_t lasting_bytes(const struct sequence *sequence)
{
	uint64_t allocated = 0, least = UINT64_MAX;
	for (size_t i = 0; i < sequence->op_count; i++) {
		const struct op *op = &sequence->ops[i];
		if (op->kind == OP_ALLOC)
			allocated += op->bytes;
		else if (op->kind == OP_FREE)
			allocated -= op->bytes;
		if (i >= sequence->op_count / 2 && allocated < least)
			least = allocated;
	}
	return least;
}

/* Marks, in `is_low`, the lowest op of each valley between two hills. */
static size_t find_valleys(const struct sequence *sequence, bool *is_low)
{
	uint64_t floor = lasting_bytes(sequence), peak = sequence->counts.peak_allocated_bytes;
	uint64_t valley = floor + (peak - floor) / 10, hill = floor + (peak - floor) / 2;
	uint64_t allocated = 0, least = UINT64_MAX;
	size_t lowest = 0, count = 0;
	bool was_on_hill = false;
	for (size_t i = 0; i < sequence->op_count; i++) {
		const struct op *op = &sequence->ops[i];
		allocated += op->kind == OP_ALLOC ? op->bytes : 0;
		allocated -= op->kind == OP_FREE ? op->bytes : 0;
		if (allocated >= hill && least != UINT64_MAX) {
			is_low[lowest] = true;
			count++;
			least = UINT64_MAX;
		}
		was_on_hill |= allocated >= hill;
		if (was_on_hill && allocated <= valley && allocated < least) {
			least = allocated;
			lowest = i;
		}
	}
	if (least != UINT64_MAX) {
		is_low[lowest] = true;
		count++;
	}
	return count;
}

static void insert_steps(struct sequence *sequence, const bool *is_low, size_t count)
{
	size_t from = sequence->op_count, to = from + count;
	sequence->op_count = to;
	while (from--) {
		if (is_low[from])
			sequence->ops[--to] = (struct op){.kind = OP_STEP, .region = NO_REGION};
		sequence->ops[--to] = sequence->ops[from];
	}
}

void sequence_find_steps(struct sequence *sequence)
{
	size_t old_count = sequence->op_count;
	bool *is_low = arena_alloc(sequence->arena, old_count + 1);
	if (!is_low || !old_count) {
		sequence->failed |= !is_low;
		return;
	}
	size_t count = find_valleys(sequence, is_low), capacity = old_count + count;
	struct op *ops = sequence->ops;
	if (capacity > sequence->op_capacity)
		ops = arena_resize(sequence->arena, ops, sequence->op_capacity * sizeof *ops,
				   capacity * sizeof *ops);
	sequence->failed |= !ops;
	if (ops) {
		sequence->ops = ops;
		sequence->op_capacity = capacity > sequence->op_capacity ? capacity
									 : sequence->op_capacity;
		insert_steps(sequence, is_low, count);
		sequence->counts.steps = count;
	}
	arena_free(sequence->arena, is_low, old_count + 1);
}
