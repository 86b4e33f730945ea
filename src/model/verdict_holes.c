/* The memory is there, but not in one piece, or not where it may be used. Owns the four reasons, told from the
 * map after PyTorch has flushed: what could have gone back has gone; and when the pieces are not worth a word. */
#include "model/verdict_private.h"

enum hole { HOLE_PINNED, HOLE_SIZE_CLASS, HOLE_OTHER_STREAM, HOLE_PRIVATE_POOL, HOLE_COUNT };

#define SMALL_BYTES  (1u << 20)
#define FIRST_PASSES 8

/* The stream that the request was for is not told: it is the one whose segments have no hole for it. */
static uint64_t stream_of_request(const struct segment_map *map, uint64_t asked_bytes)
{
	uint64_t stream = 0, most = 0;
	for (size_t i = 0; i < map->segment_count; i++) {
		uint64_t sum = 0;
		bool fits = false;
		for (size_t j = 0; j < map->segment_count; j++) {
			const struct segment *other = &map->segments[j];
			if (other->stream != map->segments[i].stream || other->is_small)
				continue;
			sum += other->live_bytes;
			fits |= other->largest_hole_bytes >= asked_bytes && other->live_bytes;
		}
		if (!fits && sum >= most && (sum > most || !map->segments[i].stream)) {
			most = sum;
			stream = map->segments[i].stream;
		}
	}
	return stream;
}

static enum hole hole_of(const struct segment *segment, uint64_t stream, bool is_small, bool was_flushed)
{
	if (segment->is_captured || (was_flushed && !segment->is_expandable && !segment->block_count))
		return HOLE_PRIVATE_POOL;
	if (segment->stream != stream)
		return HOLE_OTHER_STREAM;
	return segment->is_small != is_small ? HOLE_SIZE_CLASS : HOLE_PINNED;
}

static void sum_holes(const struct situation *at, uint64_t sums[HOLE_COUNT])
{
	const struct segment_map *map = at->map;
	uint64_t asked = at->oom->requested_bytes, stream = stream_of_request(map, asked);
	for (size_t i = 0; i < map->segment_count; i++) {
		const struct segment *segment = &map->segments[i];
		if (segment->bytes > segment->live_bytes)
			sums[hole_of(segment, stream, asked <= SMALL_BYTES, at->oom->driver_bytes)] +=
				segment->bytes - segment->live_bytes;
	}
}

static enum hole largest_of(const uint64_t sums[HOLE_COUNT])
{
	enum hole largest = HOLE_PINNED;
	for (unsigned i = 1; i < HOLE_COUNT; i++)
		if (sums[i] > sums[largest])
			largest = i;
	return largest;
}

bool are_holes_of_streams(const struct situation *at)
{
	uint64_t sums[HOLE_COUNT] = {0};
	if (at->map)
		sum_holes(at, sums);
	return largest_of(sums) == HOLE_OTHER_STREAM && sums[HOLE_OTHER_STREAM];
}

/* What a pass makes it needs: it can neither be freed nor be made sooner. */
static bool is_of_pass(const struct situation *at, uint32_t stack)
{
	uint32_t passes = MARK_FLAG(MARK_FORWARD) | MARK_FLAG(MARK_BACKWARD) | MARK_FLAG(MARK_BACKWARD_CALL);
	struct stack_marks marks = marks_at(at, stack);
	bool is_setup = marks.context == MARK_INIT || marks.context == MARK_PARAMETER;
	return !is_setup && (marks.flags & passes || marks.native & MARK_ENGINE);
}

static void blame_pinners(struct situation *at)
{
	struct segment_pinner pinner;
	if (!segment_pinners_of(at->map, at->arena, &pinner, 1))
		return;
	at->verdict->evidence.stack = pinner.stack;
	at->verdict->evidence.count = pinner.segments;
	at->verdict->evidence.bytes = pinner.live_bytes;
	if (!is_of_pass(at, pinner.stack))
		verdict_add_action(at->verdict, ADVICE_FREE_PINNERS, true, pinner.hostage_bytes);
}

/* A hole in the middle of its own class that is large enough: the block there is waiting for an event of another
 * stream, which a free of PyTorch's does not wait for. */
static bool is_pending(const struct situation *at)
{
	const struct segment_map *map = at->map;
	uint64_t stream = stream_of_request(map, at->oom->requested_bytes);
	for (size_t i = 0; i < map->segment_count; i++)
		if (map->segments[i].stream == stream && map->segments[i].block_count &&
		    map->segments[i].largest_hole_bytes >= at->oom->requested_bytes &&
		    !map->segments[i].is_captured && !map->segments[i].is_expandable)
			return true;
	return false;
}

/* Something is being computed, rather than made from nothing. */
static bool is_computed(const struct situation *at)
{
	struct stack_marks marks = marks_at(at, at->oom->stack);
	bool is_made = marks.native & MARK_FACTORY || !has_native_frames(at, at->oom->stack);
	return marks.flags & (MARK_FLAG(MARK_FORWARD) | MARK_FLAG(MARK_OPTIMIZER)) || !is_made;
}

/* Of a program that computes, and has not been through a step: it has never had all that it needs, so few idle bytes
 * do not tell that it would fit without the holes. */
static bool is_share_small(const struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	return !evidence->steps && is_computed(at) && evidence->idle_bytes * 5 < evidence->live_bytes;
}

void judge_fragmentation(struct situation *at)
{
	static const enum verdict_kind kinds[HOLE_COUNT] = {
		[HOLE_PINNED] = VERDICT_KIND_PINNED,
		[HOLE_SIZE_CLASS] = VERDICT_KIND_SIZE_CLASS,
		[HOLE_OTHER_STREAM] = VERDICT_KIND_OTHER_STREAM,
		[HOLE_PRIVATE_POOL] = VERDICT_KIND_PRIVATE_POOL,
	};
	struct verdict *verdict = at->verdict;
	uint64_t *sums = verdict->evidence.holes_bytes;
	verdict->cause = VERDICT_FRAGMENTATION;
	if (!at->map)
		return;
	sum_holes(at, sums);
	enum hole largest = largest_of(sums);
	verdict->kind = is_pending(at) && largest == HOLE_PINNED ? VERDICT_KIND_PENDING_FREE : kinds[largest];
	verdict->is_certain = sums[largest] >= verdict->evidence.missing_bytes && !is_share_small(at);
	if (verdict->kind == VERDICT_KIND_PENDING_FREE)
		verdict_add_action(verdict, ADVICE_WAIT_STREAM, false, 0);
	else if (largest == HOLE_OTHER_STREAM)
		verdict_add_action(verdict, ADVICE_ONE_STREAM, true, sums[largest]);
	else if (largest == HOLE_PRIVATE_POOL)
		verdict_add_action(verdict, ADVICE_DROP_POOL, true, sums[largest]);
	if (largest == HOLE_PINNED || largest == HOLE_SIZE_CLASS)
		blame_pinners(at);
	if (largest != HOLE_PRIVATE_POOL)
		verdict_add_action(verdict, ADVICE_WHATIF, false, 0);
	if (is_of_pass(at, verdict->evidence.stack))
		verdict_add_action(verdict, ADVICE_SMALLER_BATCH, false, 0);
	verdict_add_not(verdict, NOT_EMPTY_CACHE);
}

/* ---------- or not worth the word ---------- */

/* Were the pieces one, what would be left after this block. */
static uint64_t room_beyond(const struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t room = evidence->free_bytes + evidence->idle_bytes;
	return room > evidence->asked_bytes ? room - evidence->asked_bytes : 0;
}

/* Not where one stream or a private pool keeps it: that is a cause of its own, however little it is. */
static bool is_between_blocks(const struct situation *at)
{
	uint64_t sums[HOLE_COUNT] = {0};
	if (at->map)
		sum_holes(at, sums);
	enum hole largest = largest_of(sums);
	return largest == HOLE_PINNED || largest == HOLE_SIZE_CLASS;
}

/* Of a pass that goes on nobody knows yet that it fits. */
static bool is_in_first_pass(const struct situation *at)
{
	bool went_round = at->verdict->evidence.steps || at->work->backwards;
	return !went_round && is_computed(at) && at->verdict->evidence.pass_bytes * 2 > at->verdict->evidence.live_bytes;
}

/* No step has come to its end, and what the first one still needs is not there yet: gradients, then state. A program
 * that does not train may fill a cache in its first passes. */
static bool is_before_first_step(const struct situation *at)
{
	return !at->verdict->evidence.steps && is_computed(at) && (at->work->backwards || at->work->passes < FIRST_PASSES);
}

/* A program that leaves less than one part in fifty idle is packed as well as any: were the pieces one, it would
 * have got this block, and run out at the next. So would a first pass that would have no more than that left, and a
 * first step that leaves less than one part in five. */
bool is_packed(const struct situation *at)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t left = evidence->idle_bytes;
	if (is_in_first_pass(at) && room_beyond(at) < left)
		left = room_beyond(at);
	bool is_little = left * 50 < evidence->live_bytes ||
			 (is_share_small(at) && is_before_first_step(at) && is_between_blocks(at));
	return is_little && evidence->live_bytes * 5 >= verdict_usable_bytes(evidence) * 4;
}
