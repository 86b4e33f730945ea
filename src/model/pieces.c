/* Pieces of segments. Owns their links. Must never decide which piece is taken. */
#include "model/pieces.h"

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
