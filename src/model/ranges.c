/* Sorted ranges in two levels: leaves of up to LEAF_MAX spans, and one array that says where each
 * leaf begins. Owns the leaves, not the spans. Chosen over a tree because a look-up touches three
 * cache lines and an insertion moves at most 2 KiB; with 100,000 ranges the upper array is 12 KiB.
 * Must never look into a span beyond its start: overlap is the caller's business. */
#include "model/ranges.h"

#include <errno.h>
#include <string.h>

#define LEAF_MAX 127 /* a leaf is 2 KiB */

struct ranges_leaf {
	size_t count; /* never 0 */
	uint64_t starts[LEAF_MAX];
	struct span *spans[LEAF_MAX];
};

/* How many of the sorted `starts` are <= address. Without a branch, which would be mispredicted every other
 * time. */
static size_t count_up_to(const uint64_t *starts, size_t count, uint64_t address)
{
	size_t low = 0;
	while (count) {
		size_t half = (count + 1) / 2;
		low += half & -(size_t)(starts[low + half - 1] <= address);
		count -= half;
	}
	return low;
}

struct span *ranges_before(const struct ranges *ranges, uint64_t address)
{
	size_t leaves = count_up_to(ranges->firsts, ranges->leaf_count, address);
	if (!leaves)
		return NULL;
	const struct ranges_leaf *leaf = ranges->leaves[leaves - 1];
	return leaf->spans[count_up_to(leaf->starts, leaf->count, address) - 1];
}

struct span *ranges_at(const struct ranges *ranges, uint64_t start)
{
	struct span *span = ranges_before(ranges, start);
	return span && span->start == start ? span : NULL;
}

struct span *ranges_after(const struct ranges *ranges, uint64_t address)
{
	size_t leaves = count_up_to(ranges->firsts, ranges->leaf_count, address);
	if (leaves) {
		const struct ranges_leaf *leaf = ranges->leaves[leaves - 1];
		size_t spans = count_up_to(leaf->starts, leaf->count, address);
		if (spans < leaf->count)
			return leaf->spans[spans];
	}
	return leaves < ranges->leaf_count ? ranges->leaves[leaves]->spans[0] : NULL;
}

static int reserve_leaf(struct ranges *ranges, struct arena *arena)
{
	size_t had = ranges->leaf_capacity, wanted = had ? had * 2 : 16;
	if (ranges->leaf_count < had)
		return 0;
	void *leaves = arena_resize(arena, ranges->leaves, had * sizeof *ranges->leaves,
				    wanted * sizeof *ranges->leaves);
	if (!leaves)
		return -ENOMEM;
	ranges->leaves = leaves;
	void *firsts = arena_resize(arena, ranges->firsts, had * sizeof *ranges->firsts,
				    wanted * sizeof *ranges->firsts);
	if (!firsts)
		return -ENOMEM; /* the model has failed: nobody frees the leaves by their size */
	ranges->firsts = firsts;
	ranges->leaf_capacity = wanted;
	return 0;
}

/* A new leaf at `index`; its spans and its first are still to be set. */
static struct ranges_leaf *insert_leaf(struct ranges *ranges, struct arena *arena, size_t index)
{
	struct ranges_leaf *leaf =
		reserve_leaf(ranges, arena) ? NULL : arena_alloc(arena, sizeof *leaf);
	if (!leaf)
		return NULL;
	size_t above = ranges->leaf_count++ - index;
	memmove(&ranges->leaves[index + 1], &ranges->leaves[index], above * sizeof *ranges->leaves);
	memmove(&ranges->firsts[index + 1], &ranges->firsts[index], above * sizeof *ranges->firsts);
	ranges->leaves[index] = leaf;
	return leaf;
}

static void remove_leaf(struct ranges *ranges, struct arena *arena, size_t index)
{
	arena_free(arena, ranges->leaves[index], sizeof *ranges->leaves[index]);
	size_t above = --ranges->leaf_count - index;
	memmove(&ranges->leaves[index], &ranges->leaves[index + 1], above * sizeof *ranges->leaves);
	memmove(&ranges->firsts[index], &ranges->firsts[index + 1], above * sizeof *ranges->firsts);
}

/* The spans of `from` from index `at` on go to the end of `to`. */
static void move_spans(struct ranges_leaf *to, struct ranges_leaf *from, size_t at)
{
	size_t count = from->count - at;
	memcpy(&to->starts[to->count], &from->starts[at], count * sizeof *to->starts);
	memcpy(&to->spans[to->count], &from->spans[at], count * sizeof *to->spans);
	to->count += count;
	from->count = at;
}

static int split_leaf(struct ranges *ranges, struct arena *arena, size_t index)
{
	struct ranges_leaf *upper = insert_leaf(ranges, arena, index + 1);
	if (!upper)
		return -ENOMEM;
	move_spans(upper, ranges->leaves[index], LEAF_MAX / 2);
	ranges->firsts[index + 1] = upper->starts[0];
	return 0;
}

int ranges_insert(struct ranges *ranges, struct arena *arena, struct span *span)
{
	if (!ranges->leaf_count && !insert_leaf(ranges, arena, 0))
		return -ENOMEM;
	ranges->changes++;
	size_t index = count_up_to(ranges->firsts, ranges->leaf_count, span->start);
	index -= index > 0;
	if (ranges->leaves[index]->count == LEAF_MAX) {
		if (split_leaf(ranges, arena, index))
			return -ENOMEM;
		index += span->start >= ranges->firsts[index + 1];
	}
	struct ranges_leaf *leaf = ranges->leaves[index];
	size_t at = count_up_to(leaf->starts, leaf->count, span->start), above = leaf->count++ - at;
	memmove(&leaf->starts[at + 1], &leaf->starts[at], above * sizeof *leaf->starts);
	memmove(&leaf->spans[at + 1], &leaf->spans[at], above * sizeof *leaf->spans);
	leaf->starts[at] = span->start;
	leaf->spans[at] = span;
	ranges->firsts[index] = leaf->starts[0];
	ranges->count++;
	return 0;
}

static void merge_leaf(struct ranges *ranges, struct arena *arena, size_t index)
{
	if (index + 1 >= ranges->leaf_count)
		return;
	struct ranges_leaf *leaf = ranges->leaves[index], *next = ranges->leaves[index + 1];
	if (leaf->count + next->count > LEAF_MAX / 2)
		return;
	move_spans(leaf, next, 0);
	remove_leaf(ranges, arena, index + 1);
}

void ranges_remove(struct ranges *ranges, struct arena *arena, struct span *span)
{
	ranges->changes++;
	size_t index = count_up_to(ranges->firsts, ranges->leaf_count, span->start) - 1;
	struct ranges_leaf *leaf = ranges->leaves[index];
	size_t at = count_up_to(leaf->starts, leaf->count, span->start) - 1;
	size_t above = --leaf->count - at;
	memmove(&leaf->starts[at], &leaf->starts[at + 1], above * sizeof *leaf->starts);
	memmove(&leaf->spans[at], &leaf->spans[at + 1], above * sizeof *leaf->spans);
	ranges->count--;
	if (!leaf->count) {
		remove_leaf(ranges, arena, index);
		return;
	}
	ranges->firsts[index] = leaf->starts[0];
	merge_leaf(ranges, arena, index);
}
