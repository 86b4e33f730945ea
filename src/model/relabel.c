/* Changing what a block is, now and in everything that was recorded since it was born: the peak, the
 * OOMs, the moments of steps. Owns the tombstones of freed blocks whose label is still open. The one
 * place where bytes move between labels, so that every recorded sum stays what it was. */
#include "model/model_private.h"

static bool was_alive(uint64_t at, uint64_t born, uint64_t died)
{
	return born <= at && at < died;
}

struct move {
	uint64_t born, died; /* UINT64_MAX: alive */
	uint64_t bytes;
	uint32_t stack;
	uint8_t slot;
	enum label from, to;
};

static void move_recorded(struct model *m, const struct move *move)
{
	struct device *d = m->devices[move->slot];
	bool is_alive = move->died == UINT64_MAX;
	bool at_peak = was_alive(d->allocated.peak.sequence, move->born, move->died);
	if (is_alive || at_peak)
		composition_move(m, &d->allocated, move->stack, move->from, move->to, move->bytes, is_alive,
				 at_peak);
	for (struct snapshot *snapshot = m->snapshots; snapshot; snapshot = snapshot->next)
		if (snapshot->of == &d->allocated &&
		    was_alive(snapshot->sequence, move->born, move->died))
			snapshot_move(m, snapshot, move->stack, move->from, move->to, move->bytes);
	step_move(m, move->slot, move->born, move->died, move->bytes, move->from, move->to);
}

void relabel(struct model *m, struct block *block, enum label label)
{
	const struct move move = {
		.born = block->facts.born,
		.died = UINT64_MAX,
		.bytes = block->bytes,
		.stack = block->stack,
		.slot = block->slot,
		.from = block->facts.label,
		.to = label,
	};
	if (move.from == move.to)
		return;
	move_recorded(m, &move);
	block->facts.label = (uint8_t)label;
	struct model_observer *observer = m->attribution->observer;
	if (observer)
		observer->labelled(observer, block->facts.born, (uint8_t)label);
}

/* ---------- tombstones ---------- */

static bool is_of_interest(const struct model *m, const struct block *block, uint64_t died)
{
	const struct attribution *a = m->attribution;
	uint64_t born = block->facts.born;
	if (a->observer || was_alive(m->devices[block->slot]->allocated.peak.sequence, born, died) ||
	    step_reaches(m, block->slot, born, died))
		return true;
	for (struct snapshot *snapshot = m->snapshots; snapshot; snapshot = snapshot->next)
		if (was_alive(snapshot->sequence, born, died))
			return true;
	return false;
}

uint32_t tombstone_take_place(struct model *m)
{
	struct attribution *a = m->attribution;
	uint32_t place = a->tombstone_free;
	if (place) {
		a->tombstone_free = a->tombstones[place - 1].next;
		return place;
	}
	if (a->tombstone_count >= TOMBSTONES_MAX && !a->observer) {
		a->tombstones_lost++;
		return 0;
	}
	if (model_grow(m, &a->tombstones, &a->tombstone_capacity, a->tombstone_count, sizeof *a->tombstones))
		return 0;
	return ++a->tombstone_count;
}

void tombstone_add(struct model *m, uint32_t *chain, const struct block *block, uint64_t died)
{
	struct attribution *a = m->attribution;
	uint64_t units = block->bytes / 512;
	if (block->bytes % 512 || units > UINT32_MAX || !is_of_interest(m, block, died))
		return;
	uint32_t place = tombstone_take_place(m);
	if (!place)
		return;
	a->tombstones[place - 1] = (struct tombstone){
		.born = block->facts.born,
		.died = died,
		.units = (uint32_t)units,
		.stack = block->stack,
		.next = *chain,
		.slot = block->slot,
		.label = block->facts.label,
	};
	*chain = place;
}

static void settle_one(struct model *m, const struct tombstone *tombstone, enum label to)
{
	const struct move move = {
		.born = tombstone->born,
		.died = tombstone->died,
		.bytes = (uint64_t)tombstone->units * 512,
		.stack = tombstone->stack,
		.slot = tombstone->slot,
		.from = tombstone->label,
		.to = to,
	};
	struct model_observer *observer = m->attribution->observer;
	move_recorded(m, &move);
	if (observer)
		observer->labelled(observer, tombstone->born, (uint8_t)to);
}

void tombstones_settle(struct model *m, uint32_t *chain, enum label to)
{
	struct attribution *a = m->attribution;
	while (*chain) {
		uint32_t place = *chain;
		struct tombstone *tombstone = &a->tombstones[place - 1];
		*chain = tombstone->next;
		if (to != LABEL_COUNT)
			settle_one(m, tombstone, to);
		tombstone->next = a->tombstone_free;
		a->tombstone_free = place;
	}
}
