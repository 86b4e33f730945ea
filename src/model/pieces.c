/* Pieces of segments and sorted lists of the free ones. Owns their links and their order. A list
 * has tens to hundreds of entries: a binary search and a memmove beat a tree. Must never decide
 * which piece is taken. */
#include "model/pieces.h"

#include <string.h>

#define AGE_SHIFT 42 /* an offset in a segment is below this */
#define FIRST_CAPACITY 64

uint64_t free_list_rank(const struct free_list *list, const struct piece *piece)
{
	if (!list->breaks_ties_by_age)
		return piece->address;
	return piece->segment->age << AGE_SHIFT | (piece->address - piece->segment->address);
}

size_t free_list_find(const struct free_list *list, uint64_t bytes, uint64_t rank)
{
	size_t low = 0, high = list->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct free_entry *entry = &list->entries[middle];
		if (entry->bytes < bytes || (entry->bytes == bytes && entry->rank < rank))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool reserve(struct free_list *list, struct arena *arena)
{
	size_t wanted = list->capacity ? list->capacity * 2 : FIRST_CAPACITY;
	if (list->count < list->capacity)
		return true;
	struct free_entry *entries =
		arena_resize(arena, list->entries, list->capacity * sizeof *entries,
			     wanted * sizeof *entries);
	if (!entries)
		return false;
	list->entries = entries;
	list->capacity = wanted;
	return true;
}

bool free_list_add(struct free_list *list, struct arena *arena, struct piece *piece)
{
	uint64_t rank = free_list_rank(list, piece);
	size_t at = free_list_find(list, piece->bytes, rank);
	if (!reserve(list, arena))
		return false;
	struct free_entry *place = &list->entries[at];
	memmove(place + 1, place, (list->count++ - at) * sizeof *place);
	*place = (struct free_entry){piece->bytes, rank, piece};
	return true;
}

void free_list_remove(struct free_list *list, struct piece *piece)
{
	size_t at = free_list_find(list, piece->bytes, free_list_rank(list, piece));
	struct free_entry *place = &list->entries[at];
	if (at == list->count || place->piece != piece)
		return; /* it was never added: there was no memory for it */
	memmove(place, place + 1, (--list->count - at) * sizeof *place);
}

struct piece *piece_create(struct arena *arena, struct segment *segment, uint64_t address,
			   uint64_t bytes)
{
	struct piece *piece = arena_alloc(arena, sizeof *piece);
	if (piece)
		*piece = (struct piece){.address = address,
					.bytes = bytes,
					.segment = segment,
					.is_mapped = true};
	return piece;
}

struct piece *piece_split(struct arena *arena, struct piece *piece, uint64_t bytes)
{
	struct piece *rest = piece_create(arena, piece->segment, piece->address + bytes,
					  piece->bytes - bytes);
	if (!rest)
		return NULL;
	rest->is_mapped = piece->is_mapped;
	rest->freed_at = piece->freed_at;
	rest->previous = piece;
	rest->next = piece->next;
	if (rest->next)
		rest->next->previous = rest;
	piece->next = rest;
	piece->bytes = bytes;
	return rest;
}

static void unlink_piece(struct piece *piece)
{
	if (piece->previous)
		piece->previous->next = piece->next;
	else
		piece->segment->first = piece->next;
	if (piece->next)
		piece->next->previous = piece->previous;
}

void piece_swallow(struct arena *arena, struct piece *piece, struct piece *other)
{
	if (other->address < piece->address)
		piece->address = other->address;
	piece->bytes += other->bytes;
	unlink_piece(other);
	piece_drop(arena, other);
}

void piece_drop(struct arena *arena, struct piece *piece)
{
	arena_free(arena, piece, sizeof *piece);
}
