/* What kind of leak it is: who holds the blocks that have survived. Owns these tests. Must never name a graph where
 * autograd recorded nothing. */
#include "model/survivors_private.h"

enum { PARTS_OF_LIST = 6, OUTPUTS_MOST = 3 };

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

bool family_is_copy_of_weights(const struct situation *at, const struct family *family)
{
	struct stack_marks marks = marks_at(at, family->stack);
	bool is_cloned = marks.native & MARK_CLONE || marks.context == MARK_COPY;
	return is_cloned && model_parameters_of_size(at->m, family->largest_bytes);
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
static bool is_little_left(const struct situation *at, const struct families *all)
{
	return !at->work->has_trained && all->count * PARTS_OF_LIST < all->growth.allocations;
}

/* What layers have made at so few places that a model may return it; and nothing that went in. */
static bool may_be_outputs(const struct families *all)
{
	return all->graph_stacks >= 2 && all->graph_stacks <= OUTPUTS_MOST && !all->beside_count &&
	       all->unrecorded_bytes * 2 <= all->graph_bytes;
}

static bool may_be_graph(const struct situation *at, const struct families *all)
{
	if (is_little_left(at, all) || may_be_outputs(all))
		return false;
	return all->unrecorded_bytes * 2 <= all->graph_bytes;
}

/* Without the batches that went in, or several outputs of one place for each, it may be what a model returns. */
static bool is_doubtful_graph(const struct families *all)
{
	bool has_many = all->graph_stacks > OUTPUTS_MOST || all->graph_count * 2 >= 3 * all->beside_count;
	return !all->beside_count || !has_many;
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

/* ---------- what helps beside the first action ---------- */

/* Whether Python's collector is on is in no trace. */
static void advise_list(struct situation *at, const struct families *all)
{
	bool is_open = may_be_outputs(all);
	if (is_open)
		at->verdict->is_certain = false;
	verdict_add_action(at->verdict, ADVICE_CLONE_SLICE, false, 0); /* which of a tensor is used, no event tells */
	verdict_add_action(at->verdict, is_open ? ADVICE_DETACH : ADVICE_COLLECT, false, 0);
}

static void advise_graph(struct situation *at, const struct families *all, bool by_step)
{
	verdict_add_action(at->verdict, by_step ? ADVICE_KEEP_TEXT : ADVICE_BACKWARD_EACH, false, 0);
	if (!is_doubtful_graph(all))
		return;
	at->verdict->is_certain = false;
	verdict_add_action(at->verdict, ADVICE_CLEAR_LIST, false, 0);
}

void survivors_advise(struct situation *at, const struct families *all, bool by_step)
{
	struct verdict *verdict = at->verdict;
	if (is_in_function(at, all->largest->stack)) { /* its ctx may be what holds it: a cycle */
		verdict->is_certain = false;
		verdict_add_action(verdict, ADVICE_SAVE_FOR_BACKWARD, false, 0);
	}
	if (verdict->kind == VERDICT_KIND_GRAPH)
		advise_graph(at, all, by_step);
	if (verdict->kind == VERDICT_KIND_LIST)
		advise_list(at, all);
	if (verdict->kind == VERDICT_KIND_CACHE)
		verdict_add_action(verdict, ADVICE_SHORTER_CACHE, false, 0);
	if (verdict->kind == VERDICT_KIND_PER_THREAD) { /* which have ended is not known */
		verdict->is_certain = false;
		verdict_add_action(verdict, ADVICE_CLEAR_LIST, false, 0);
	}
}
