/* Owns the choice of where a repaired bounded trace begins. It looks at the headers of chunks alone, which somebody
 * else has found to be sound, and must never keep a state of which a piece is missing. */
#include "trace/repair_bounded.h"

#include <stdlib.h>

static int rank_of(const struct memtrace_chunk *head)
{
	return head->kind == MEMTRACE_CHUNK_DEFINITIONS ? 0 : head->kind == MEMTRACE_CHUNK_CHECKPOINT ? 1 : 2;
}

/* Definitions, then states by sequence and piece, then events by sequence. */
static int compare(const void *a, const void *b)
{
	const struct memtrace_chunk *x = &((const struct chunk_ref *)a)->head, *y = &((const struct chunk_ref *)b)->head;
	if (rank_of(x) != rank_of(y))
		return rank_of(x) - rank_of(y);
	if (x->first_sequence != y->first_sequence)
		return x->first_sequence < y->first_sequence ? -1 : 1;
	return (x->count > y->count) - (x->count < y->count);
}

/* How many chunks from `first` on are the pieces of one whole state; 0: none is. */
static size_t count_pieces(const struct chunk_list *kept, size_t first)
{
	for (size_t i = first; i < kept->count; i++) {
		const struct memtrace_chunk *head = &kept->list[i].head;
		if (head->kind != MEMTRACE_CHUNK_CHECKPOINT || head->count != i - first ||
		    head->first_sequence != kept->list[first].head.first_sequence)
			return 0;
		if (head->rows_bytes)
			return i - first + 1;
	}
	return 0;
}

/* Does some chunk of events span each sequence in [start, end)? */
static bool is_all_there(const struct chunk_list *kept, uint64_t start, uint64_t end)
{
	uint64_t next = start;
	for (size_t i = 0; i < kept->count; i++) {
		const struct memtrace_chunk *head = &kept->list[i].head;
		if (head->kind != MEMTRACE_CHUNK_EVENTS || head->last_sequence < next)
			continue;
		if (head->first_sequence > next)
			return false;
		next = head->last_sequence + 1;
	}
	return next >= end;
}

/* The sequence of the oldest state after which nothing is missing. 0: none is needed, or there is none. */
static uint64_t choose_start(const struct chunk_list *kept, uint64_t end)
{
	if (is_all_there(kept, 0, end))
		return 0;
	for (size_t i = 0, pieces; i < kept->count; i += pieces ? pieces : 1) {
		uint64_t sequence = kept->list[i].head.first_sequence;
		pieces = count_pieces(kept, i);
		if (pieces && is_all_there(kept, sequence, end))
			return sequence;
	}
	return 0;
}

static bool is_of_use(const struct chunk_list *kept, size_t index, uint64_t start, size_t *piece_end)
{
	const struct memtrace_chunk *head = &kept->list[index].head;
	if (head->kind == MEMTRACE_CHUNK_EVENTS)
		return head->last_sequence >= start;
	if (head->kind != MEMTRACE_CHUNK_CHECKPOINT)
		return true;
	if (index >= *piece_end && count_pieces(kept, index))
		*piece_end = index + count_pieces(kept, index);
	return index < *piece_end && head->first_sequence >= start;
}

void bounded_choose(struct chunk_list *kept, uint64_t end)
{
	size_t count = 0, piece_end = 0;
	if (kept->count > 1)
		qsort(kept->list, kept->count, sizeof *kept->list, compare);
	uint64_t start = choose_start(kept, end);
	struct chunk_ref *chosen = calloc(kept->count ? kept->count : 1, sizeof *chosen);
	if (!chosen)
		return; /* some of no use stay */
	for (size_t i = 0; i < kept->count; i++)
		if (is_of_use(kept, i, start, &piece_end))
			chosen[count++] = kept->list[i];
	free(kept->list);
	*kept = (struct chunk_list){ .list = chosen, .count = count, .capacity = count };
}
