/* What a sequence amounts to as it was recorded: the truth that an identity replay is held against.
 * Must never look at a model of the allocator. */
#include <string.h>

#include "model/sequence_private.h"

/* ---------- figures ---------- */

struct recount {
	uint64_t reserved, allocated, used;
	uint64_t last_segment; /* address */
	uint64_t rises, falls;
	bool was_page;
};

static void note_obtained(struct sequence *sequence, const struct op *op, struct recount *now)
{
	struct sequence_counts *counts = &sequence->counts;
	const struct sequence_region *region = &sequence->regions[op->region];
	bool is_page = region->kind == REGION_PAGE;
	now->used += region->kind == REGION_RANGE ? 0 : region->bytes;
	if (now->used > counts->peak_used_bytes)
		counts->peak_used_bytes = now->used;
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
	now->used -= region->kind == REGION_RANGE ? 0 : region->bytes;
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
		sequence->counts.refusals += op->kind == OP_REFUSED;
		if (op->kind == OP_GIVE_BACK)
			note_given_back(sequence, op, &now);
		if (op->kind == OP_ALLOC || op->kind == OP_FREE)
			note_block(sequence, op, &now, bytes);
	}
	arena_free(sequence->arena, bytes, table_bytes);
	sequence->counts.final_reserved_bytes = now.reserved;
	sequence->counts.addresses_descend = now.falls > now.rises;
}
