/* What CUPTI told beside the hooks, set against what the hooks told. Each address has a balance of
 * allocations and one of frees, and is forgotten when both are even: so it costs memory for what is
 * on its way and for what differs. Must never change a figure of the model. */
#include "model/model_private.h"

static struct seen *seen_at(struct model *m, uint64_t address)
{
	struct seen *seen;
	TABLE_FIND(m->witness.uneven, &address, seen);
	if (seen)
		return seen;
	seen = model_new(m, sizeof *seen);
	if (!seen)
		return NULL;
	seen->address = address;
	TABLE_ADD(m->witness.uneven, address, seen);
	return seen;
}

int witness_restore(struct model *m, const struct seen *saved)
{
	struct seen *seen = seen_at(m, saved->address);
	if (!seen)
		return -1;
	seen->bytes = saved->bytes;
	seen->allocations = saved->allocations;
	seen->frees = saved->frees;
	seen->space = saved->space;
	return 0;
}

static void forget_if_even(struct model *m, struct seen *seen)
{
	if (seen->allocations || seen->frees)
		return;
	HASH_DEL(m->witness.uneven, seen);
	arena_free(m->arena, seen, sizeof *seen);
}

/* Adds to a balance: 1 for the witness, -1 for the hooks. */
static void weigh(struct model *m, const struct event *e, int64_t allocations, int64_t frees)
{
	struct seen *seen = e->address ? seen_at(m, e->address) : NULL;
	if (!seen)
		return;
	if (e->what == MEMTRACE_WITNESS_ALLOC)
		seen->bytes = e->bytes;
	if (e->what == MEMTRACE_WITNESS_ALLOC || !seen->space)
		seen->space = (uint8_t)e->space;
	seen->allocations += allocations;
	seen->frees += frees;
	forget_if_even(m, seen);
}

/* Kinds of memory that CUPTI knows. */
static bool is_known_kind(enum memtrace_space space)
{
	return space == MEMTRACE_SPACE_DEVICE || space == MEMTRACE_SPACE_STREAM ||
	       space == MEMTRACE_SPACE_MANAGED || space == MEMTRACE_SPACE_ARRAY ||
	       space == MEMTRACE_SPACE_PINNED;
}

static bool is_there(struct model *m)
{
	struct witness *witness = &m->witness;
	if (!witness->is_looked_for)
		witness->told.is_there = defs_info(m->defs, MEMTRACE_INFO_CHECK, 0) != NULL;
	witness->is_looked_for = true;
	return witness->told.is_there && !witness->told.is_over;
}

/* Of a free that the balance knows: what failed may have been something else, the end of a pool. */
static void note_failed(struct model *m, const struct event *e)
{
	struct seen *seen;
	TABLE_FIND(m->witness.uneven, &e->address, seen);
	if (!seen || seen->frees >= 0)
		return;
	seen->frees++;
	forget_if_even(m, seen);
}

static void note_hooks(struct model *m, const struct event *e)
{
	if (e->what == MEMTRACE_ALLOC)
		weigh(m, e, -1, 0);
	else if (e->what == MEMTRACE_FREE)
		weigh(m, e, 0, -1);
	else if (e->what == MEMTRACE_FREE_FAILED)
		note_failed(m, e);
}

void witness_note(struct model *m, const struct event *e)
{
	struct model_witness *told = &m->witness.told;
	if (!is_there(m))
		return;
	if (e->what == MEMTRACE_WITNESS_END)
		told->is_over = true;
	else if (!is_known_kind(e->space))
		return;
	if (e->what == MEMTRACE_WITNESS_ALLOC) {
		told->allocations++;
		told->bytes += e->bytes;
		weigh(m, e, 1, 0);
	} else if (e->what == MEMTRACE_WITNESS_FREE) {
		told->frees++;
		weigh(m, e, 0, 1);
	} else {
		note_hooks(m, e);
	}
}

struct model_witness model_witness(const struct model *m)
{
	struct model_witness told = m->witness.told;
	for (const struct seen *seen = m->witness.uneven; seen; seen = seen->hh.next)
		told.unconfirmed += seen->allocations < 0 ? (uint64_t)-seen->allocations : 0;
	return told;
}

/* ---------- what was missed ---------- */

static void add_address(struct model_missed *row, uint64_t address)
{
	for (unsigned i = 0; i < MODEL_MISSED_ADDRESSES; i++) {
		uint64_t other = row->addresses[i];
		if (other && other < address)
			continue;
		row->addresses[i] = address;
		address = other;
		if (!address)
			break;
	}
}

static void add_missed(struct model_missed *sums, const struct seen *seen)
{
	struct model_missed *row = &sums[seen->space];
	uint64_t allocations = seen->allocations > 0 ? (uint64_t)seen->allocations : 0;
	uint64_t frees = seen->frees > 0 ? (uint64_t)seen->frees : 0;
	if (!allocations && !frees)
		return;
	row->allocations += allocations;
	row->frees += frees;
	row->bytes += allocations * seen->bytes;
	add_address(row, seen->address);
}

size_t model_missed(const struct model *m, struct model_missed *rows, size_t capacity)
{
	struct model_missed sums[MEMTRACE_SPACE_COUNT] = {0};
	size_t count = 0;
	for (const struct seen *seen = m->witness.uneven; seen; seen = seen->hh.next)
		add_missed(sums, seen);
	for (unsigned space = 0; space < MEMTRACE_SPACE_COUNT; space++) {
		sums[space].space = (enum memtrace_space)space;
		if (!sums[space].allocations && !sums[space].frees)
			continue;
		if (count < capacity)
			rows[count] = sums[space];
		count++;
	}
	return count;
}
