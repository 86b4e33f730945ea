/* What releases say about the classes of a recorded layout: a flush, empty_cache() and the end of a pool
 * take all that is free in the classes that they concern. Owns who survived one. Must not be asked where
 * settings release less than all. */
#include "model/layout_private.h"

/* Is there, in this free piece, what a release would have given back? */
static bool survived(const struct segment *segment, const struct piece *piece)
{
	uint64_t page = segment->is_small ? SMALL_SEGMENT_BYTES : LARGE_PAGE_BYTES;
	uint64_t start = piece->address - segment->address, end = start + piece->bytes;
	if (piece->is_live || !piece->is_mapped)
		return false;
	if (!segment->page_bytes)
		return !piece_is_split(piece);
	return end / page > (start + page - 1) / page;
}

static bool has_survivor(const struct segment *segment)
{
	const struct piece *piece = segment && segment->is_known ? segment->first : NULL;
	while (piece && !survived(segment, piece))
		piece = piece->next;
	return piece;
}

/* A flush takes from every default pool: who still has something to give is a pool that keeps it. */
void layout_mark_private(struct layout *layout)
{
	for (size_t i = 0; i < layout->sequence->region_count; i++)
		if (has_survivor(layout->segments[i]))
			layout->classes->is_private[layout->segments[i]->class_index] = true;
}

/* A segment that a release should have taken is of another class than what it took. */
static void check_survivor(struct layout *layout, struct segment *segment, uint32_t region)
{
	const struct classes *classes = layout->classes;
	unsigned other = 0, old = segment->class_index;
	if (!layout->is_touched[old])
		return;
	layout->classes->contradictions++;
	if (layout->is_fixed)
		return;
	while (other < classes->count && (classes->streams[other] != classes->streams[old] ||
					  layout->is_touched[other]))
		other++;
	if (other == classes->count)
		other = layout_new_class(layout, classes->streams[old]);
	layout_set_class(layout, segment, region, other);
}

void layout_end_release(struct layout *layout, const struct op *op)
{
	struct classes *classes = layout->classes;
	for (size_t i = 0; i < layout->sequence->region_count; i++)
		if (has_survivor(layout->segments[i]) && !layout->segments[i]->page_bytes)
			check_survivor(layout, layout->segments[i], (uint32_t)i);
	if (layout->is_refused || op->is_emptied)
		layout_mark_private(layout);
	else if (layout->sequence->defs) /* neither: the end of a pool */
		for (unsigned i = 0; i < classes->count; i++)
			classes->is_private[i] |= layout->is_touched[i];
	for (unsigned i = 0; i < classes->count; i++)
		layout->is_touched[i] = false;
}
