/* The recorded layout, rebuilt event by event. Owns the pieces of the segments as they were, and the
 * class that a block's place speaks for. Must never guess more than the allocator's rules allow. */
#include <errno.h>

#include "base/bytes.h"
#include "model/layout_private.h"

static struct free_list *list_of(struct layout *layout, unsigned class_index, bool is_small)
{
	return &layout->lists[class_index * 2 + is_small];
}

/* ---------- holes ---------- */

static void add_hole(struct layout *layout, struct piece *piece)
{
	const struct segment *segment = piece->segment;
	if (segment->is_known)
		layout->failed |=
			!free_list_add(list_of(layout, segment->class_index, segment->is_small),
				       layout->arena, piece);
	layout->failed |= !address_map_put(&layout->holes, layout->arena, piece->address,
					   (uint64_t)(uintptr_t)piece);
}

static void remove_hole(struct layout *layout, struct piece *piece)
{
	const struct segment *segment = piece->segment;
	if (segment->is_known)
		free_list_remove(list_of(layout, segment->class_index, segment->is_small), piece);
	address_map_take(&layout->holes, piece->address);
}

static void merge_with(struct layout *layout, struct piece *piece, struct piece *other)
{
	if (!other || other->is_live || other->is_mapped != piece->is_mapped)
		return;
	if (other->is_mapped)
		remove_hole(layout, other);
	piece_swallow(layout->arena, piece, other);
}

/* Joins a free piece, which is in no list, with its neighbours, and lists what is mapped. */
static void settle(struct layout *layout, struct piece *piece)
{
	merge_with(layout, piece, piece->previous);
	merge_with(layout, piece, piece->next);
	if (piece->is_mapped)
		add_hole(layout, piece);
}

/* ---------- classes ---------- */

/* What PyTorch looked for, as far as that is known: a block is larger where what was left was not cut off. */
static uint64_t wanted_bytes(const struct layout *layout, const struct op *op)
{
	uint64_t bytes = op->asked_bytes ? allocator_round(layout->conf, op->asked_bytes) : op->bytes;
	return bytes_smaller(bytes, op->bytes);
}

/* Would the allocator have preferred another hole of this class to one of `hole_bytes`? */
static bool has_better_hole(struct layout *layout, unsigned class_index, bool is_small,
			    const struct op *op, uint64_t hole_bytes, uint64_t rank)
{
	struct free_list *list = list_of(layout, class_index, is_small);
	const struct piece *best = free_list_find(list, op->bytes);
	if (!best || allocator_refuses_piece(layout->conf, wanted_bytes(layout, op), best->bytes))
		return false;
	return best->bytes < hole_bytes ||
	       (best->bytes == hole_bytes && free_list_rank(list, best) < rank);
}

unsigned layout_new_class(struct layout *layout, uint64_t stream)
{
	struct classes *classes = layout->classes;
	if (classes->count == CLASSES_MAX)
		return 0;
	classes->streams[classes->count] = stream;
	return classes->count++;
}

/* The first class of the stream, but `other_than`, for which this hole was the best choice. */
static unsigned fitting_class(struct layout *layout, const struct op *op, unsigned other_than,
			      bool is_small, uint64_t hole_bytes, uint64_t rank)
{
	const struct classes *classes = layout->classes;
	for (unsigned i = 0; i < classes->count; i++)
		if (classes->streams[i] == op->stream && i != other_than &&
		    !has_better_hole(layout, i, is_small, op, hole_bytes, rank))
			return i;
	return layout_new_class(layout, op->stream);
}

/* Every stream and pool has one range for each kind of block: a second one is another class. */
static unsigned class_of_range(struct layout *layout, const struct segment *range, uint64_t stream)
{
	const struct classes *classes = layout->classes;
	for (unsigned i = 0; i < classes->count; i++) {
		bool is_free = classes->streams[i] == stream;
		for (size_t k = 0; is_free && k < layout->sequence->region_count; k++) {
			const struct segment *other = layout->segments[k];
			is_free = !other || other == range || !other->is_known ||
				  !other->page_bytes || other->is_small != range->is_small ||
				  other->class_index != i;
		}
		if (is_free)
			return i;
	}
	return layout_new_class(layout, stream);
}

static void list_holes(struct layout *layout, struct segment *segment)
{
	for (struct piece *piece = segment->first; piece; piece = piece->next)
		if (!piece->is_live && piece->is_mapped)
			add_hole(layout, piece);
}

static void unlist_holes(struct layout *layout, struct segment *segment)
{
	for (struct piece *piece = segment->first; piece; piece = piece->next)
		if (!piece->is_live && piece->is_mapped)
			remove_hole(layout, piece);
}

void layout_set_class(struct layout *layout, struct segment *segment, uint32_t region,
		      unsigned class_index)
{
	unlist_holes(layout, segment);
	segment->is_known = true;
	segment->class_index = class_index;
	layout->segment_classes[region] = (uint16_t)class_index;
	list_holes(layout, segment);
}

/* The first block in a segment: it was obtained because no hole of its class was large enough. */
static void found_class(struct layout *layout, struct segment *segment, const struct op *op)
{
	unsigned class_index;
	segment->is_small =
		op->bytes <= SMALL_BYTES &&
		(segment->page_bytes || segment->bytes == SMALL_SEGMENT_BYTES);
	if (layout->is_fixed && layout->segment_classes[op->region] != NO_CLASS) {
		class_index = layout->segment_classes[op->region];
		layout->classes->contradictions +=
			!segment->page_bytes && has_better_hole(layout, class_index,
								segment->is_small, op, UINT64_MAX, 0);
	} else if (segment->page_bytes) {
		class_index = class_of_range(layout, segment, op->stream);
	} else {
		class_index = fitting_class(layout, op, CLASSES_MAX, segment->is_small, UINT64_MAX, 0);
	}
	layout_set_class(layout, segment, op->region, class_index);
}

static void check_class(struct layout *layout, struct segment *segment, const struct op *op,
			const struct piece *hole)
{
	uint64_t rank = free_list_rank(list_of(layout, 0, false), hole);
	if (segment->page_bytes ||
	    !has_better_hole(layout, segment->class_index, segment->is_small, op, hole->bytes, rank))
		return;
	layout->classes->contradictions++;
	if (!layout->is_fixed)
		layout_set_class(layout, segment, op->region,
				 fitting_class(layout, op, segment->class_index, segment->is_small,
					       hole->bytes, rank));
}

/* ---------- events ---------- */

static void note_obtained(struct layout *layout, const struct op *op)
{
	const struct sequence_region *region = &layout->sequence->regions[op->region];
	bool is_range = region->kind == REGION_RANGE;
	if (region->kind == REGION_PAGE || !region->has_blocks)
		return;
	struct segment *segment = arena_alloc(layout->arena, sizeof *segment);
	struct piece *piece =
		segment ? piece_create(layout->arena, segment, region->address, region->bytes)
			: NULL;
	layout->failed |= !piece;
	if (!piece)
		return;
	*segment = (struct segment){.address = region->address,
				    .bytes = region->bytes,
				    .page_bytes = is_range ? 1 : 0,
				    .age = layout->next_age++,
				    .first = piece};
	piece->is_mapped = !is_range;
	layout->segments[op->region] = segment;
	if (!is_range)
		add_hole(layout, piece);
}

static void note_given_back(struct layout *layout, const struct op *op)
{
	struct segment *segment = layout->segments[op->region];
	if (!segment)
		return;
	unlist_holes(layout, segment);
	layout->is_touched[segment->class_index] |= segment->is_known;
	layout->segments[op->region] = NULL;
}

static struct piece *piece_at(struct segment *range, uint64_t address)
{
	struct piece *piece = range->first;
	while (piece && address >= piece->address + piece->bytes)
		piece = piece->next;
	return piece;
}

/* Memory came to, or went from, a part of a range. */
static void note_page(struct layout *layout, const struct op *op)
{
	struct segment *range = layout->segments[op->region];
	struct piece *piece = range ? piece_at(range, op->address) : NULL;
	if (!piece || piece->is_live || op->address < piece->address)
		return;
	bool was_mapped = piece->is_mapped;
	if (was_mapped)
		remove_hole(layout, piece);
	if (op->address > piece->address) {
		struct piece *rest = piece_split(layout->arena, piece, op->address - piece->address);
		if (was_mapped)
			add_hole(layout, piece);
		piece = rest;
	}
	if (piece && piece->bytes > op->bytes) {
		struct piece *rest = piece_split(layout->arena, piece, op->bytes);
		if (rest && was_mapped)
			add_hole(layout, rest);
	}
	layout->failed |= !piece;
	if (!piece)
		return;
	piece->is_mapped = op->kind == OP_MAP;
	settle(layout, piece);
}

static bool is_exact(const struct segment *segment, const struct piece *hole, uint64_t bytes)
{
	return hole->bytes > bytes || segment->is_small || segment->page_bytes;
}

static void note_alloc(struct layout *layout, struct op *op)
{
	struct piece *hole =
		(struct piece *)(uintptr_t)address_map_get(&layout->holes, op->address);
	op->is_exact = true;
	op->class_index = 0;
	if (!hole || hole->bytes < op->bytes) {
		layout->classes->unplaced++;
		return;
	}
	struct segment *segment = hole->segment;
	if (!segment->is_known)
		found_class(layout, segment, op);
	else
		check_class(layout, segment, op, hole);
	op->class_index = (uint16_t)segment->class_index;
	op->is_exact = is_exact(segment, hole, op->bytes);
	layout->classes->ambiguous += !op->is_exact && !op->asked_bytes;
	remove_hole(layout, hole);
	if (hole->bytes > op->bytes) {
		struct piece *rest = piece_split(layout->arena, hole, op->bytes);
		layout->failed |= !rest;
		if (rest)
			add_hole(layout, rest);
	}
	hole->is_live = true;
	layout->lives[op->index] = hole;
}

static void note_free(struct layout *layout, const struct op *op)
{
	struct piece *piece = layout->lives[op->index];
	if (!piece)
		return;
	layout->lives[op->index] = NULL;
	piece->is_live = false;
	settle(layout, piece);
}

static bool is_release(const struct sequence *sequence, size_t at)
{
	return at < sequence->op_count && sequence->ops[at].kind == OP_GIVE_BACK &&
	       sequence->regions[sequence->ops[at].region].kind == REGION_SEGMENT &&
	       sequence_is_torch(sequence, sequence->ops[at].region);
}

static void note_oom(struct layout *layout, struct op *op)
{
	bool is_small = op->bytes <= SMALL_BYTES;
	layout_mark_private(layout);
	op->class_index = (uint16_t)fitting_class(layout, op, CLASSES_MAX, is_small, UINT64_MAX, 0);
}

static void note_op(struct layout *layout, size_t at)
{
	struct op *op = &layout->sequence->ops[at];
	switch (op->kind) {
	case OP_OBTAIN:
		note_obtained(layout, op);
		break;
	case OP_GIVE_BACK:
		layout->is_refused |= op->is_retry;
		note_given_back(layout, op);
		if (layout->releases_all && is_release(layout->sequence, at) &&
		    !is_release(layout->sequence, at + 1))
			layout_end_release(layout, op);
		break;
	case OP_REFUSED:
		layout->is_refused = true;
		break;
	case OP_MAP:
	case OP_UNMAP:
		note_page(layout, op);
		break;
	case OP_ALLOC:
		layout->is_refused = false;
		note_alloc(layout, op);
		break;
	case OP_FREE:
		note_free(layout, op);
		break;
	case OP_OOM:
		layout->is_refused = false;
		note_oom(layout, op);
		break;
	default:
		break;
	}
}

int layout_rebuild(struct sequence *sequence, const struct allocator_conf *conf,
		   struct classes *classes, struct layout_pass *pass)
{
	struct arena *arena = arena_create();
	struct layout *layout = arena ? arena_alloc(arena, sizeof *layout) : NULL;
	if (layout) {
		layout->segments =
			arena_alloc(arena, (sequence->region_count + 1) * sizeof(struct segment *));
		layout->lives =
			arena_alloc(arena, ((size_t)sequence->life_count + 1) * sizeof(struct piece *));
	}
	if (!layout || !layout->segments || !layout->lives) {
		if (arena)
			arena_release(arena);
		return -ENOMEM;
	}
	layout->sequence = sequence;
	layout->conf = conf;
	layout->arena = arena;
	layout->classes = classes;
	layout->segment_classes = pass->segment_classes;
	layout->is_fixed = pass->is_fixed;
	layout->releases_all =
		!(conf->gc_threshold > 0) && conf->max_split_bytes == ALLOCATOR_NO_LIMIT;
	for (unsigned i = 0; i < CLASSES_MAX * 2; i++)
		layout->lists[i].breaks_ties_by_age = conf->breaks_ties_by_age;
	classes->contradictions = classes->unplaced = classes->ambiguous = 0;
	size_t at = 0;
	while (at < sequence->op_count && classes->contradictions <= pass->contradictions_max)
		note_op(layout, at++);
	pass->work += at;
	bool failed = layout->failed;
	arena_release(arena);
	return failed ? -ENOMEM : 0;
}
