/* The states of the model in a bounded trace. Owns: which are whole, and with which one reading begins. What they hold
 * is the model's; here they are chunks. Must never begin after a state whose pieces are not all there. */
#include <errno.h>
#include <stdlib.h>

#include "trace/reader_private.h"

#define STATES_FREE_BYTES ((uint64_t)64 << 20)
#define STATES_RATIO      64 /* beyond that, unpacked to stored */

/* How many pieces from `first` on are one whole state; 0: none is. */
static size_t count_pieces(const struct chunk_list *pieces, size_t first)
{
	uint64_t sequence = pieces->list[first].head.first_sequence;
	for (size_t i = first; i < pieces->count; i++) {
		const struct memtrace_chunk *head = &pieces->list[i].head;
		if (head->first_sequence != sequence || head->count != i - first)
			return 0;
		if (head->rows_bytes)
			return i - first + 1;
	}
	return 0;
}

/* The lowest sequence that is in the file. */
static uint64_t first_sequence(const struct trace *trace)
{
	const struct chunk_list *events = &trace->chunks.events;
	if (events->count)
		return events->list[0].head.first_sequence;
	return trace->window.head.count ? trace->window.head.first_sequence : trace->ring.first;
}

int states_find(struct trace *trace)
{
	const struct chunk_list *pieces = &trace->chunks.pieces;
	struct states *states = &trace->states;
	if (!pieces->count || !first_sequence(trace))
		return 0;
	states->list = calloc(pieces->count, sizeof *states->list);
	if (!states->list)
		return -ENOMEM;
	for (size_t i = 0; i < pieces->count; i++) {
		size_t count = count_pieces(pieces, i);
		if (!count || pieces->list[i].head.first_sequence >= SEQUENCE_MAX)
			continue;
		states->list[states->count].first = i;
		states->list[states->count++].count = count;
		i += count - 1;
	}
	if (states->count)
		trace_state_begin(trace, 0);
	return 0;
}

size_t trace_state_count(const struct trace *trace)
{
	return trace->states.count;
}

void trace_state_begin(struct trace *trace, size_t index)
{
	struct states *states = &trace->states;
	states->piece_next = states->list[index].first;
	states->piece_end = states->piece_next + states->list[index].count;
	states->left_bytes = STATES_FREE_BYTES + STATES_RATIO * trace->facts.file_bytes;
	trace->next = trace->chunks.pieces.list[states->piece_next].head.first_sequence;
	trace->facts.given_up = trace->next;
}

const unsigned char *trace_state_piece(struct trace *trace, size_t *bytes)
{
	struct states *states = &trace->states;
	if (states->piece_next == states->piece_end)
		return NULL;
	const struct chunk_ref *piece = &trace->chunks.pieces.list[states->piece_next++];
	*bytes = piece->head.raw_bytes;
	if (*bytes > states->left_bytes)
		return NULL;
	states->left_bytes -= *bytes;
	return chunk_load(trace, piece);
}
