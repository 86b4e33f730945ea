/* Finds the module that is repeated and holds most activations: what activation checkpointing would
 * wrap. Owns how calls of the same forward() are counted: blocks of one stack are one a call, but for
 * those of a loop inside. Must never take a module for repeated because one inside it is. */
#include <string.h>

#include "report/levers_facts.h"
#include "report/where.h"

#define CANDIDATES_MAX 32
#define CALLERS_MAX    64
#define COUNTS_MAX     16
#define SMALLEST_BYTES 4096 /* of what a block returns: smaller are its statistics */

struct caller { /* a place that calls a candidate */
	uint32_t suffix; /* hash of the frames beyond it */
	uint64_t least;	 /* blocks of one stack: as many as there are calls, or more */
	struct {
		uint64_t count, bytes;
	} counts[COUNTS_MAX];
};

struct candidate {
	const struct def_python_frame *frame; /* any of its lines */
	const struct def_python_frame *last;  /* its last line that makes a tensor itself … */
	uint64_t last_bytes, last_count;      /* … and the smallest: what it returns, or smaller */
	uint64_t bytes;
	size_t caller_count;
	struct caller callers[CALLERS_MAX];
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

static struct caller *find_caller(struct candidate *candidate, uint32_t suffix)
{
	for (size_t i = 0; i < candidate->caller_count; i++)
		if (candidate->callers[i].suffix == suffix)
			return &candidate->callers[i];
	if (candidate->caller_count == CALLERS_MAX)
		return NULL;
	struct caller *caller = &candidate->callers[candidate->caller_count++];
	*caller = (struct caller){.suffix = suffix, .least = UINT64_MAX};
	return caller;
}

static void add_count(struct caller *caller, const struct model_share *share)
{
	if (share->count < caller->least)
		caller->least = share->count;
	for (size_t i = 0; i < COUNTS_MAX; i++) {
		if (caller->counts[i].count && caller->counts[i].count != share->count)
			continue;
		caller->counts[i].count = share->count;
		caller->counts[i].bytes += share->bytes;
		return;
	}
}

static void add_share(struct candidate *candidate, const struct def_stack *stack, uint32_t at, bool is_innermost,
		      const struct def_python_frame *frame, const struct model_share *share)
{
	struct caller *caller = find_caller(candidate, hash_suffix(stack, at + 1));
	candidate->bytes += share->bytes;
	if (caller)
		add_count(caller, share);
	if (!is_innermost || share->bytes / share->count < SMALLEST_BYTES || (candidate->last && candidate->last->line > frame->line))
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
		if (candidate)
			add_share(candidate, stack, i, i == 0, frame, share);
	}
}

static uint64_t usual_count(const struct caller *caller)
{
	size_t most = 0;
	for (size_t i = 1; i < COUNTS_MAX; i++)
		if (caller->counts[i].bytes > caller->counts[most].bytes)
			most = i;
	return caller->counts[most].count;
}

/* 0: it is called once from each place, and not from several. */
static uint64_t count_calls(const struct candidate *candidate)
{
	uint64_t least = 0, usual = 0;
	for (size_t i = 0; i < candidate->caller_count; i++) {
		least += candidate->callers[i].least;
		usual += usual_count(&candidate->callers[i]);
	}
	return least >= 2 ? usual : 0;
}

void lever_block_find(struct lever_facts *facts, struct arena *arena, const struct defs *defs,
		      const struct model_share *shares, size_t count)
{
	struct search search = {.candidates = arena_alloc(arena, CANDIDATES_MAX * sizeof *search.candidates)};
	for (size_t i = 0; search.candidates && i < count; i++)
		if (shares[i].category == MODEL_ACTIVATIONS)
			take_share(&search, defs, &shares[i]);
	for (size_t i = 0; i < search.count; i++) {
		const struct candidate *candidate = &search.candidates[i];
		uint64_t calls = count_calls(candidate);
		if (!calls || candidate->bytes <= facts->block.bytes)
			continue;
		facts->block.frame = candidate->frame;
		facts->block.bytes = candidate->bytes;
		facts->block.count = calls;
		facts->block.boundary_bytes = candidate->last_count == calls ? candidate->last_bytes : 0;
	}
}
