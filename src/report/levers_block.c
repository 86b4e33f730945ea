/* Finds the module that is repeated and holds most activations: what activation checkpointing would
 * wrap. Owns how calls of the same forward() are counted: blocks of one stack are one a call, but for
 * those of a loop inside. Must never take a module for repeated because one inside it is. */
#include <string.h>

#include "report/levers_facts.h"
#include "report/where.h"

#define CANDIDATES_MAX 32
#define PLACES_MAX     96
#define SMALLEST_BYTES 4096 /* of what counts, and of what a block returns: smaller are statistics */

struct place { /* a line of a candidate, as far as it is called from one place */
	uint32_t line;	 /* Python frame */
	uint32_t suffix; /* hash of the frames beyond it */
	uint64_t bytes, heaviest; /* of the stack that holds most: its blocks */
	uint64_t calls;		  /* as many, or a few more: of some calls its block may be gone already */
};

struct candidate {
	const struct def_python_frame *frame; /* any of its lines */
	const struct def_python_frame *last;  /* its last line that makes a tensor itself … */
	uint64_t last_bytes, last_count;      /* … and the smallest: what it returns, or smaller */
	uint64_t bytes;
	double uneven_bytes; /* the same if all its calls were like the largest */
	uint64_t largest_bytes; /* of a block */
	uint64_t looped_bytes;	/* made in a loop of PyTorch's inside, so several of a stack a call */
	size_t place_count;
	struct place places[PLACES_MAX];
};

struct search {
	struct candidate *candidates;
	size_t count;
};

static bool is_same_function(const struct def_python_frame *a, const struct def_python_frame *b)
{
	return !strcmp(a->function, b->function) && !strcmp(a->file, b->file);
}

/* forward() of a class that is not PyTorch's own. */
static bool is_module(const struct defs *defs, const struct def_python_frame *frame)
{
	const char *dot = strrchr(frame->function, '.'), *package;
	if (!dot || strcmp(dot, ".forward"))
		return false;
	size_t bytes = where_package(defs, frame->file, &package);
	return !(bytes == 5 && !memcmp(package, "torch", 5));
}

static struct candidate *find_candidate(struct search *search, const struct def_python_frame *frame)
{
	for (size_t i = 0; i < search->count; i++)
		if (is_same_function(search->candidates[i].frame, frame))
			return &search->candidates[i];
	if (search->count == CANDIDATES_MAX)
		return NULL;
	struct candidate *candidate = &search->candidates[search->count++];
	candidate->frame = frame;
	return candidate;
}

static uint32_t hash_suffix(const struct def_stack *stack, uint32_t from)
{
	uint32_t hash = 2166136261u;
	for (uint32_t i = from; i < stack->python_count; i++)
		hash = (hash ^ stack->python[i]) * 16777619u;
	return hash;
}

static struct place *find_place(struct candidate *candidate, uint32_t line, uint32_t suffix)
{
	struct place *place = candidate->places, *end = place + candidate->place_count;
	for (; place < end; place++)
		if (place->line == line && place->suffix == suffix)
			return place;
	if (candidate->place_count == PLACES_MAX)
		return NULL;
	candidate->place_count++;
	*place = (struct place){.line = line, .suffix = suffix};
	return place;
}

static void note_last(struct candidate *candidate, const struct def_python_frame *frame,
		      const struct model_share *share)
{
	if (candidate->last && candidate->last->line > frame->line)
		return;
	if (!candidate->last || candidate->last->line < frame->line)
		candidate->last_bytes = candidate->last_count = 0;
	candidate->last = frame;
	if (!candidate->last_count ||
	    share->bytes * candidate->last_count < candidate->last_bytes * share->count) {
		candidate->last_bytes = share->bytes;
		candidate->last_count = share->count;
	}
}

/* By nn.Sequential: what its modules make has one stack. */
static bool is_looped(const struct defs *defs, const struct def_stack *stack, uint32_t at)
{
	for (uint32_t i = 0; i < at; i++) {
		const struct def_python_frame *frame = defs_python_frame(defs, stack->python[i]);
		if (frame && !strcmp(frame->function, "Sequential.forward"))
			return true;
	}
	return false;
}

/* Shares come largest first. */
static void add_share(struct candidate *candidate, const struct def_stack *stack, uint32_t at,
		      const struct def_python_frame *frame, const struct model_share *share)
{
	candidate->bytes += share->bytes;
	bool is_weight = share->detail == MODEL_DETAIL_AUTOCAST_WEIGHT;
	candidate->uneven_bytes += is_weight ? (double)share->bytes : (double)share->largest_bytes * (double)share->count;
	if (!is_weight && share->largest_bytes > candidate->largest_bytes)
		candidate->largest_bytes = share->largest_bytes;
	if (share->bytes / share->count < SMALLEST_BYTES)
		return;
	struct place *place = find_place(candidate, stack->python[at], hash_suffix(stack, at + 1));
	if (place && !place->heaviest) {
		place->bytes = share->bytes;
		place->heaviest = place->calls = share->count;
	} else if (place && share->count > place->calls && share->count <= place->heaviest * 5 / 4) {
		place->calls = share->count;
	}
	if (!at)
		note_last(candidate, frame, share);
}

static bool is_before(const struct defs *defs, const struct def_stack *stack, uint32_t at,
		      const struct def_python_frame *frame)
{
	for (uint32_t i = 0; i < at; i++) {
		const struct def_python_frame *inner = defs_python_frame(defs, stack->python[i]);
		if (inner && is_same_function(inner, frame))
			return true;
	}
	return false;
}

static void take_share(struct search *search, const struct defs *defs, const struct model_share *share)
{
	const struct def_stack *stack = defs_stack(defs, share->stack);
	for (uint32_t i = 0; stack && i < stack->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(defs, stack->python[i]);
		if (!frame || !is_module(defs, frame) || is_before(defs, stack, i, frame))
			continue;
		struct candidate *candidate = find_candidate(search, frame);
		if (!candidate)
			continue;
		candidate->looped_bytes += is_looped(defs, stack, i) ? share->bytes : 0;
		add_share(candidate, stack, i, frame, share);
	}
}

/* ---------- how often it was called ---------- */

struct line {
	uint32_t frame;
	uint64_t bytes, calls;
};

static size_t lines_of(const struct candidate *candidate, struct line *lines)
{
	size_t count = 0;
	for (size_t i = 0; i < candidate->place_count; i++) {
		const struct place *place = &candidate->places[i];
		size_t at = 0;
		while (at < count && lines[at].frame != place->line)
			at++;
		if (at == count)
			lines[count++] = (struct line){.frame = place->line};
		lines[at].bytes += place->bytes;
		lines[at].calls += place->calls;
	}
	return count;
}

/* Those that may have been run as often as `line`: of the last calls some blocks may be gone. */
static size_t count_like(const struct line *lines, size_t count, const struct line *line)
{
	size_t like = 0;
	for (size_t i = 0; i < count; i++)
		like += lines[i].calls <= line->calls && lines[i].calls >= line->calls - line->calls / 4;
	return like;
}

struct calls {
	uint64_t count; /* 0: it is not repeated */
	bool is_sure;	/* several lines say so, and most; else it may only contain what is repeated */
};

static struct calls count_calls(const struct candidate *candidate)
{
	struct line lines[PLACES_MAX];
	size_t count = lines_of(candidate, lines), most = 0;
	const struct line *best = NULL;
	uint64_t least = UINT64_MAX;
	for (size_t i = 0; i < count; i++) {
		size_t like = count_like(lines, count, &lines[i]);
		if (like > most || (like == most && lines[i].bytes > best->bytes)) {
			most = like;
			best = &lines[i];
		}
		if (lines[i].calls < least)
			least = lines[i].calls;
	}
	if (!best || best->calls < 2)
		return (struct calls){0};
	bool is_sure = most >= 2 && most * 2 > count;
	return (struct calls){.count = is_sure || least >= 2 ? best->calls : 0, .is_sure = is_sure};
}

struct kept { /* of a stack's activations */
	uint64_t bytes, all_bytes;
};

static bool is_kept(const struct model_share *share)
{
	return share->detail == MODEL_DETAIL_HELD || share->detail == MODEL_DETAIL_RETAINED_GRAPH ||
	       share->detail == MODEL_DETAIL_DROPPED_GRAPH;
}

static struct kept *kept_by_stack(struct arena *arena, const struct defs *defs, const struct model_share *shares,
				  size_t count)
{
	struct kept *kept = arena_alloc(arena, (defs_stack_count(defs) + 1) * sizeof *kept);
	for (size_t i = 0; kept && i < count; i++) {
		if (shares[i].category != MODEL_ACTIVATIONS)
			continue;
		kept[shares[i].stack].all_bytes += shares[i].bytes;
		kept[shares[i].stack].bytes += is_kept(&shares[i]) ? shares[i].bytes : 0;
	}
	return kept;
}

/* What is kept from one pass to the next says how often that was, not how many modules there are. */
static bool counts(const struct kept *kept, const struct model_share *share)
{
	const struct kept *of = &kept[share->stack];
	return share->category == MODEL_ACTIVATIONS && share->count && of->bytes * 2 <= of->all_bytes;
}

void lever_block_find(struct lever_facts *facts, struct arena *arena, const struct defs *defs,
		      const struct model_share *shares, size_t count)
{
	struct search search = {.candidates = arena_alloc(arena, CANDIDATES_MAX * sizeof *search.candidates)};
	const struct kept *kept = kept_by_stack(arena, defs, shares, count);
	bool is_sure = false;
	for (size_t i = 0; search.candidates && kept && i < count; i++)
		if (counts(kept, &shares[i]))
			take_share(&search, defs, &shares[i]);
	for (size_t i = 0; i < search.count; i++) {
		const struct candidate *candidate = &search.candidates[i];
		struct calls calls = count_calls(candidate);
		bool is_better = calls.is_sure == is_sure ? candidate->bytes > facts->block.bytes : calls.is_sure;
		if (!calls.count || !is_better)
			continue;
		is_sure = calls.is_sure;
		facts->block.frame = candidate->frame;
		facts->block.bytes = candidate->bytes;
		facts->block.count = calls.count;
		facts->block.call_bytes = (uint64_t)(candidate->uneven_bytes / (double)calls.count);
		facts->block.largest_bytes = candidate->largest_bytes;
		facts->block.is_counted = candidate->looped_bytes <= candidate->bytes / 2;
		facts->block.boundary_bytes = candidate->last_count == calls.count ? candidate->last_bytes : 0;
	}
}
