/* What kind of leak it is: who holds the blocks that have survived. Owns these tests. Must never name a graph where
 * autograd recorded nothing. */
#include "model/survivors_private.h"

enum { PARTS_OF_LIST = 6, PARTS_OF_GRAPH = 3, PLACES_OF_GRAPH = 6 };

bool family_is_of_threads(const struct situation *at, const struct families *all, const struct family *family)
{
	return family->threads >= THREADS_LEAST && is_a_threads_own(at, &all->growth, family->stack);
}

bool family_is_in_graph(const struct situation *at, const struct family *family)
{
	enum model_category category = model_label_category(at->m, family->label);
	enum model_detail detail = model_label_detail(at->m, family->label);
	return category == MODEL_ACTIVATIONS || category == MODEL_GRADIENTS || detail == MODEL_DETAIL_DROPPED_GRAPH;
}

bool family_is_in_module(const struct situation *at, const struct family *family)
{
	return marks_at(at, family->stack).flags & MARK_FLAG(MARK_FORWARD);
}

bool family_is_of_cache(const struct situation *at, const struct family *family)
{
	static const char *const words[] = {"cache", "kv_", "past_key", NULL};
	return stack_has_word(at, family->stack, words);
}

/* A list keeps one block an entry; a graph the outputs of many layers, and the batch that went in, which may be the
 * larger part. */
static bool is_whole_graph(const struct families *all)
{
	bool is_most = all->graph_bytes * 2 > all->explained_bytes || all->stacks >= 4;
	bool has_layers = is_most && all->graph_stacks >= 2;
	bool has_several = all->other_count && all->graph_count * 2 >= 3 * all->other_count; /* outputs for each batch */
	return (has_layers || has_several) && all->graph_bytes * 4 > all->explained_bytes;
}

/* Of what a program has made that has never gone backwards, so few are left that it is what it keeps; with no_grad()
 * nothing else tells. */
static bool is_little_left(const struct situation *at, const struct families *all, uint64_t parts)
{
	return !at->work->has_trained && all->count * parts < all->growth.allocations;
}

static bool may_be_graph(const struct situation *at, const struct families *all)
{
	if (is_little_left(at, all, PARTS_OF_LIST))
		return false;
	return all->unrecorded_bytes * 2 <= all->graph_bytes;
}

bool survivors_graph_is_doubtful(const struct situation *at, const struct families *all)
{
	return is_little_left(at, all, PARTS_OF_GRAPH);
}

enum verdict_kind survivors_kind(const struct situation *at, const struct families *all)
{
	static const char *const copy_words[] = {"deepcopy", NULL}; /* meant to be kept */
	uint64_t half = all->explained_bytes / 2;
	if (all->thread_bytes > half && family_is_of_threads(at, all, all->largest))
		return VERDICT_KIND_PER_THREAD;
	bool is_model = all->parameter_bytes > half && !stack_has_word(at, all->largest->stack, copy_words);
	if (is_model || all->collected_bytes > half)
		return VERDICT_KIND_CYCLE;
	bool is_cache = all->growing_bytes > half || family_is_of_cache(at, all->largest);
	bool is_graph = is_whole_graph(all) && may_be_graph(at, all);
	if (is_cache && !(is_graph && all->graph_stacks >= PLACES_OF_GRAPH)) /* a graph has what all layers make beside it */
		return VERDICT_KIND_CACHE;
	return is_graph ? VERDICT_KIND_GRAPH : VERDICT_KIND_LIST;
}
