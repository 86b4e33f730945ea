/* What a map of segments says in figures: how much of what is reserved nobody uses, and what keeps it.
 * Owns the definitions of these figures. Allocates only from the arena that a caller gives. */
#include "base/arena.h"
#include "model/segments.h"

uint64_t segment_hole(const struct segment_map *map, const struct segment *segment, uint32_t index, uint64_t *address)
{
	const struct segment_block *blocks = map->blocks + segment->first_block;
	uint64_t end = index < segment->block_count ? blocks[index].address : segment->address + segment->bytes;
	*address = index ? blocks[index - 1].address + blocks[index - 1].bytes : segment->address;
	return end > *address ? end - *address : 0;
}

static void add_segment(struct segment_metrics *sum, const struct segment_map *map, const struct segment *segment)
{
	uint64_t external = segment->bytes - segment->live_bytes;
	if (segment->live_bytes > segment->bytes)
		return; /* blocks that overlap: the trace is not whole */
	sum->segments++;
	sum->reserved_bytes += segment->bytes;
	sum->allocated_bytes += segment->live_bytes;
	sum->external_bytes += external;
	sum->releasable_bytes += segment->releasable_bytes;
	sum->pinned_bytes += external - segment->releasable_bytes;
	if (segment->block_count == 1 && !segment->is_expandable)
		sum->sole_pinned_bytes += external;
	if (segment->largest_hole_bytes > sum->largest_hole_bytes)
		sum->largest_hole_bytes = segment->largest_hole_bytes;
	for (uint32_t i = 0; i < segment->block_count; i++) {
		const struct segment_block *block = &map->blocks[segment->first_block + i];
		if (block->asked_bytes)
			sum->internal_bytes += block->bytes - block->asked_bytes;
		else
			sum->unasked_bytes += block->bytes;
	}
}

static void finish(struct segment_metrics *sum)
{
	if (sum->external_bytes)
		sum->largest_hole_index = 1 - (double)sum->largest_hole_bytes / (double)sum->external_bytes;
}

struct segment_metrics segment_metrics_of(const struct segment_map *map)
{
	struct segment_metrics sum = {0};
	for (size_t i = 0; i < map->segment_count; i++)
		add_segment(&sum, map, &map->segments[i]);
	finish(&sum);
	return sum;
}

/* ---------- classes ---------- */

static struct segment_class *class_of(struct segment_class *classes, size_t *count, size_t capacity,
				      const struct segment *segment)
{
	for (size_t i = 0; i < *count; i++) {
		struct segment_class *at = &classes[i];
		if (at->stream == segment->stream && at->is_small == segment->is_small &&
		    at->is_captured == segment->is_captured)
			return at;
	}
	if (*count == capacity)
		return NULL;
	classes[*count] = (struct segment_class){segment->stream, segment->is_small, segment->is_captured, {0}};
	return &classes[(*count)++];
}

size_t segment_classes_of(const struct segment_map *map, struct segment_class *classes, size_t capacity)
{
	size_t count = 0;
	for (size_t i = 0; i < map->segment_count; i++) {
		struct segment_class *at = class_of(classes, &count, capacity, &map->segments[i]);
		if (at)
			add_segment(&at->metrics, map, &map->segments[i]);
	}
	for (size_t i = 0; i < count; i++)
		finish(&classes[i].metrics);
	for (size_t i = 1; i < count; i++) /* few: by insertion */
		for (size_t at = i; at && classes[at].metrics.external_bytes > classes[at - 1].metrics.external_bytes;
		     at--) {
			struct segment_class swap = classes[at];
			classes[at] = classes[at - 1];
			classes[at - 1] = swap;
		}
	return count;
}

/* ---------- one size ---------- */

static uint64_t sum_usable(const struct segment_map *map, uint64_t wanted_bytes)
{
	uint64_t sum = 0, address;
	for (size_t i = 0; i < map->segment_count; i++) {
		const struct segment *segment = &map->segments[i];
		for (uint32_t j = 0; segment->largest_hole_bytes >= wanted_bytes && j <= segment->block_count; j++) {
			uint64_t bytes = segment_hole(map, segment, j, &address);
			sum += bytes / wanted_bytes * wanted_bytes;
		}
	}
	return sum;
}

double segment_unusable_index(const struct segment_map *map, uint64_t bytes)
{
	struct segment_metrics metrics = segment_metrics_of(map);
	if (!metrics.external_bytes || !bytes)
		return 0;
	return 1 - (double)sum_usable(map, bytes) / (double)metrics.external_bytes;
}

/* ---------- who pins ---------- */

struct pinner_row {
	struct segment_pinner pinner;
	size_t last_segment; /* plus one */
};

struct pinner_table {
	struct pinner_row *rows;
	uint32_t mask;
};

static struct pinner_row *row_of(struct pinner_table *table, uint32_t stack)
{
	uint32_t at = (uint32_t)(stack * 0x9E3779B1u) & table->mask;
	while (table->rows[at].last_segment && table->rows[at].pinner.stack != stack)
		at = (at + 1) & table->mask;
	return &table->rows[at];
}

static void add_pinner(struct pinner_table *table, const struct segment *segment, size_t number,
		       const struct segment_block *block)
{
	struct pinner_row *row = row_of(table, block->stack);
	struct segment_pinner *pinner = &row->pinner;
	uint64_t hostage = segment->bytes - segment->live_bytes - segment->releasable_bytes;
	if (!row->last_segment)
		pinner->oldest_born = block->born;
	pinner->stack = block->stack;
	pinner->live_bytes += block->bytes;
	pinner->hostage_bytes += hostage / segment->block_count;
	if (block->born < pinner->oldest_born)
		pinner->oldest_born = block->born;
	if (block->born > pinner->newest_born)
		pinner->newest_born = block->born;
	if (row->last_segment != number + 1)
		pinner->segments++;
	row->last_segment = number + 1;
	if (segment->block_count > 1)
		return;
	pinner->sole_segments++;
	pinner->sole_bytes += hostage;
}

static size_t keep_largest(struct segment_pinner *pinners, size_t count, size_t capacity,
			   const struct segment_pinner *offered)
{
	size_t at = count < capacity ? count : capacity;
	for (; at && pinners[at - 1].hostage_bytes < offered->hostage_bytes; at--)
		if (at < capacity)
			pinners[at] = pinners[at - 1];
	if (at < capacity)
		pinners[at] = *offered;
	return count < capacity ? count + 1 : count;
}

size_t segment_pinners_of(const struct segment_map *map, struct arena *arena, struct segment_pinner *pinners,
			  size_t capacity)
{
	struct pinner_table table = {.mask = 64};
	while (table.mask < 2 * map->block_count)
		table.mask *= 2;
	size_t bytes = table.mask * sizeof *table.rows, count = 0;
	table.rows = arena_alloc(arena, bytes);
	if (!table.rows)
		return 0;
	table.mask--;
	for (size_t i = 0; i < map->segment_count; i++) {
		const struct segment *segment = &map->segments[i];
		bool is_sound = segment->live_bytes + segment->releasable_bytes < segment->bytes;
		for (uint32_t j = 0; is_sound && j < segment->block_count; j++)
			add_pinner(&table, segment, i, &map->blocks[segment->first_block + j]);
	}
	for (size_t at = 0; at <= table.mask; at++)
		if (table.rows[at].last_segment)
			count = keep_largest(pinners, count, capacity, &table.rows[at].pinner);
	arena_free(arena, table.rows, bytes);
	return count;
}
