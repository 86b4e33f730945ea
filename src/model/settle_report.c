/* What blocks are called when a report is made or the program has come to its end: what no phase decides any more. The
 * one place that walks all blocks. Owns nothing. */
#include "model/model_private.h"

/* Calls of modules without grad have followed, as in an evaluation, but so did the backward of its own iteration. */
static bool is_of_last_step(const struct model *m, const struct loop *loop, const struct block *block)
{
	uint64_t age = block_age(m, block);
	return !block->facts.is_in_row && age && age <= loop_backwards_a_step(loop);
}

/* Far older than an iteration, and made inside a module: something holds its graph. */
static void settle_old(struct model *m, struct block *block)
{
	const struct block_facts *facts = &block->facts;
	const struct loop *loop = &m->attribution->loops[facts->loop];
	bool is_open = facts->label == LABEL_FORWARD || facts->label == LABEL_OUTLIVED;
	if (facts->is_flat && (is_open || facts->label == LABEL_USER))
		relabel(m, block, LABEL_GRADIENT);
	else if (facts->label == LABEL_NO_GRAD && is_of_last_step(m, loop, block))
		relabel(m, block, LABEL_HELD);
	else if (is_open && block_age(m, block) > loop_age_of_kept(loop))
		relabel(m, block, LABEL_RETAINED);
	else if ((is_open || facts->label == LABEL_USER || (facts->kind == KIND_INPUT && block_age(m, block))) &&
		 is_made_to_keep(m, block))
		relabel(m, block, LABEL_KEPT);
}

static void settle_loaded_ones(struct model *m, struct loop *loop)
{
	struct loaded_look look;
	struct block *next;
	loaded_look(m, loop, &look);
	for (struct block *block = loop->kept.first; block; block = next) {
		next = block->facts.next;
		if (block->facts.kind == KIND_LOADED && block_age(m, block))
			settle_loaded(m, block, &look);
	}
}

static void settle_caches(struct model *m, const struct loop *loop)
{
	for (struct block *block = loop->kept.first; block; block = block->facts.next)
		if (block_is_cache(m, block))
			relabel(m, block, LABEL_KEPT);
}

/* Its call had ended, and left little else. Checkpointing leaves as little of a pass that goes on. */
static bool is_of_ended_call(const struct model *m, const struct block *block)
{
	return block->facts.is_no_grad && !(attribution_known_marks(m, block->stack).flags & MARK_CHECKPOINT);
}

/* The program's own code has ended, and it still has what it computed. Where nothing trains, no pass says more. */
static void settle_left(struct model *m, struct block *block)
{
	const struct block_facts *facts = &block->facts;
	bool is_computed = (facts->kind == KIND_FORWARD || facts->kind == KIND_DATA) &&
			   (!block_is_of_first_pass(m, block) || is_of_ended_call(m, block));
	if (block_is_field(m, block))
		block_settle_as(m, block, LABEL_KEPT);
	else if (is_computed && context_is_users(facts->context) && label_meaning(facts->label, false).is_provisional)
		block_settle_as(m, block, LABEL_KEPT);
}

static void settle_row(struct model *m, struct loop *loop)
{
	struct block *next;
	for (struct block *block = loop->no_grad.first; block; block = next) {
		next = block->facts.next;
		if (block->facts.is_in_row)
			block_settle_as(m, block, LABEL_NO_GRAD);
	}
}

/* A graph that is still there, of a call after the last backward: none will come. */
static void settle_unused(struct model *m, struct block *block)
{
	struct call *call = block->facts.call;
	if (block->facts.is_no_grad && is_of_ended_call(m, block) && !block_age(m, block) &&
	    label_meaning(block->facts.label, true).is_provisional)
		block_settle_as(m, block, LABEL_NO_GRAD);
	if (!call || call->is_used || block_age(m, block) || m->devices[block->slot]->is_unwinding)
		return;
	tombstones_settle(m, &call->tombstones, LABEL_DROPPED);
	if (label_meaning(block->facts.label, true).is_provisional)
		relabel(m, block, LABEL_DROPPED);
}

void settle_at_exit(struct model *m)
{
	bool has_trained = m->attribution->has_trained;
	struct block *block;
	settle_for_report(m);
	for (unsigned i = 0; has_trained && i < m->attribution->loop_count; i++)
		settle_row(m, &m->attribution->loops[i]);
	for (size_t place = 0; (block = blocks_next(&m->blocks, &place));)
		(has_trained ? settle_unused : settle_left)(m, block);
}

void settle_for_report(struct model *m)
{
	struct block *block;
	for (unsigned i = 0; i < m->attribution->loop_count; i++)
		settle_loaded_ones(m, &m->attribution->loops[i]);
	if (m->attribution->has_trained)
		for (size_t place = 0; (block = blocks_next(&m->blocks, &place));)
			settle_old(m, block);
	for (unsigned i = 0; i < m->attribution->loop_count; i++)
		settle_recent(m, &m->attribution->loops[i], true);
	for (unsigned i = 0; i < m->attribution->loop_count; i++)
		settle_caches(m, &m->attribution->loops[i]);
}
