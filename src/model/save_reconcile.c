/* Saves and loads what stands beside the figures: maps of segments, memory that is not tracked with its
 * jumps, and what CUPTI told. A map is read with every index in it checked. */
#include <errno.h>

#include "model/save_private.h"

#define MAP_FIRST 64

static const struct field segment_fields[] = {
	FIELD(struct segment, address),
	FIELD(struct segment, bytes),
	FIELD(struct segment, live_bytes),
	FIELD(struct segment, releasable_bytes),
	FIELD(struct segment, largest_hole_bytes),
	FIELD(struct segment, stream),
	STACK_OF(struct segment, stack),
	FIELD(struct segment, first_block),
	FIELD(struct segment, block_count),
	FIELD_BOOL(struct segment, is_expandable),
	FIELD_BOOL(struct segment, is_small),
	FIELD_BOOL(struct segment, is_captured),
	FIELD_END,
};

static const struct field block_fields[] = {
	FIELD(struct segment_block, address),
	FIELD(struct segment_block, bytes),
	FIELD(struct segment_block, asked_bytes),
	FIELD(struct segment_block, born),
	FIELD(struct segment_block, stream),
	STACK_OF(struct segment_block, stack),
	FIELD(struct segment_block, thread),
	FIELD_BELOW(struct segment_block, label, LABEL_COUNT),
	FIELD_END,
};

static const struct field untracked_fields[] = {
	FIELD_BOOL(struct untracked, is_known),
	FIELD_BOOL(struct untracked, in_use_is_known),
	FIELD_BOOL(struct untracked, is_own),
	FIELD_BOOL(struct untracked, is_final),
	FIELD(struct untracked, bytes),
	FIELD(struct untracked, at_peak_bytes),
	FIELD(struct untracked, peak_seen_bytes),
	FIELD(struct untracked, marked_bytes),
	FIELD(struct untracked, in_use_bytes),
	FIELD(struct untracked, others_bytes),
	FIELD(struct untracked, device_bytes),
	FIELD_BELOW(struct untracked, jump_count, MODEL_JUMPS_MAX + 1),
	FIELD(struct untracked, jumps_dropped),
	FIELD_END,
};

static const struct field jump_fields[] = {
	FIELD(struct model_jump, time_ns),
	FIELD(struct model_jump, sequence),
	FIELD(struct model_jump, before_bytes),
	FIELD(struct model_jump, after_bytes),
	FIELD(struct model_jump, contexts),
	FIELD(struct model_jump, modules),
	FIELD(struct model_jump, graphs),
	STACK_OF(struct model_jump, stack),
	FIELD_END,
};

static const struct field causes_fields[] = {
	FIELD(struct causes, contexts), FIELD(struct causes, modules), FIELD(struct causes, graphs),
	STACK_OF(struct causes, stack), FIELD_END,
};

static const struct field witness_fields[] = {
	FIELD_BOOL(struct witness, told.is_there), FIELD_BOOL(struct witness, told.is_over),
	FIELD(struct witness, told.allocations),   FIELD(struct witness, told.frees),
	FIELD(struct witness, told.bytes),	   FIELD(struct witness, told.unconfirmed),
	FIELD_BOOL(struct witness, is_looked_for), FIELD_END,
};

static const struct field seen_fields[] = {
	FIELD(struct seen, address),	 FIELD(struct seen, bytes),
	FIELD(struct seen, allocations), FIELD(struct seen, frees),
	FIELD_BELOW(struct seen, space, MEMTRACE_SPACE_COUNT), FIELD_END,
};

SAVED_SIZE(segment, 64);
SAVED_SIZE(segment_block, 48);
SAVED_SIZE(segment_map, 48);
SAVED_SIZE(let_go, 32);
SAVED_SIZE(untracked, 968);
SAVED_SIZE(model_jump, 56);
SAVED_SIZE(causes, 16);
SAVED_SIZE(witness, 56);
SAVED_SIZE(seen, 96);

/* ---------- maps ---------- */

/* Rows of a map, in its own arena; the list grows as they come. */
static void save_rows(struct archive *a, struct arena *arena, void **list, size_t *count, size_t row_bytes,
		      const struct field *fields)
{
	size_t capacity = a->is_loading ? 0 : *count, used = a->is_loading ? 0 : *count;
	for (size_t i = 0; save_has_item(a, i < used); i++) {
		if (a->is_loading && i == capacity) {
			size_t wanted = capacity ? capacity * 2 : MAP_FIRST;
			void *grown = arena_resize(arena, *list, capacity * row_bytes, wanted * row_bytes);
			if (!grown) {
				archive_fail(a, -ENOMEM);
				return;
			}
			*list = grown;
			capacity = wanted;
		}
		archive_fields(a, (char *)*list + i * row_bytes, fields);
		if (a->is_loading)
			*count = i + 1;
	}
}

static struct segment_map *new_map(struct archive *a)
{
	struct arena *arena = arena_create();
	struct segment_map *map = arena ? arena_alloc(arena, sizeof *map) : NULL;
	if (map)
		map->arena = arena;
	else if (arena)
		arena_release(arena);
	if (!map)
		archive_fail(a, -ENOMEM);
	return map;
}

/* Blocks and segments lie in the order of their addresses, each block in its segment. */
static bool is_sound(const struct segment_map *map)
{
	for (size_t i = 0; i < map->segment_count; i++) {
		const struct segment *segment = &map->segments[i];
		uint64_t at = segment->address, end = segment->address + segment->bytes;
		if (end < at || (uint64_t)segment->first_block + segment->block_count > map->block_count ||
		    (i && map->segments[i - 1].address + map->segments[i - 1].bytes > at))
			return false;
	}
	for (size_t i = 1; i < map->block_count; i++)
		if (map->blocks[i].address < map->blocks[i - 1].address)
			return false;
	return true;
}

void save_map(struct archive *a, struct segment_map **place)
{
	if (!save_has_item(a, *place != NULL))
		return;
	struct segment_map *map = a->is_loading ? new_map(a) : *place;
	if (!map)
		return;
	void *segments = map->segments, *blocks = map->blocks;
	archive_number(a, &map->unplaced_bytes);
	save_rows(a, map->arena, &segments, &map->segment_count, sizeof *map->segments, segment_fields);
	save_rows(a, map->arena, &blocks, &map->block_count, sizeof *map->blocks, block_fields);
	if (!a->is_loading)
		return;
	map->segments = segments;
	map->blocks = blocks;
	if (!a->error && !is_sound(map))
		archive_fail(a, -EINVAL);
	if (a->error)
		segment_map_release(map);
	else
		*place = map;
}

void save_let_go(struct model *m, struct archive *a, struct let_go *gone)
{
	uint32_t count = a->is_loading ? 0 : gone->count;
	archive_number(a, &gone->since);
	for (uint32_t i = 0; save_has_item(a, i < count); i++) {
		struct segment_block block = {0};
		if (!a->is_loading)
			block = gone->blocks[i];
		archive_fields(a, &block, block_fields);
		if (a->is_loading && !a->error && !let_go_add(m, gone, &block))
			archive_fail(a, -ENOMEM);
	}
}

/* ---------- what is not tracked ---------- */

void save_untracked(struct model *m, struct archive *a, struct untracked *u)
{
	archive_fields(a, u, untracked_fields);
	for (uint32_t i = 0; i < u->jump_count && !a->error; i++) {
		struct model_jump *jump = &u->jumps[i];
		archive_fields(a, jump, jump_fields);
		if (a->is_loading)
			jump->owner = jump->stack ? m->owner_names[stack_facts(m, jump->stack)->owner] : NULL;
	}
}

void save_causes(struct model *m, struct archive *a)
{
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++)
		archive_fields(a, &m->causes[slot], causes_fields);
}

/* ---------- the witness ---------- */

void save_witness(struct model *m, struct archive *a)
{
	struct seen *seen = a->is_loading ? NULL : m->witness.uneven;
	archive_fields(a, &m->witness, witness_fields);
	while (save_has_item(a, seen != NULL)) {
		struct seen read = {0};
		archive_fields(a, seen ? seen : &read, seen_fields);
		if (a->is_loading && !a->error && witness_restore(m, &read))
			archive_fail(a, -ENOMEM);
		seen = seen ? seen->hh.next : NULL;
	}
}
