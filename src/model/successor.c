/* What takes the place of a block: `x = f(x)` makes the one before it lets go of the other, on one line. Owns what
 * the one then says of the other. */
#include "model/model_private.h"

/* What the line that lets go of the block has just made; NULL: nothing. */
static struct block *successor_of(struct model *m, const struct block *block, const struct moment_facts *facts)
{
	const struct loop *loop = &m->attribution->loops[block->facts.loop];
	uint32_t line = facts->marks->places[0].line;
	bool is_by_program = context_is_users(facts->marks->context) && !facts->is_engine;
	if (!line || !is_by_program || !loop->latest || loop->latest == block->address)
		return NULL;
	struct block *heir = block_find(m, loop->latest);
	if (!heir || heir->bytes < SIGNIFICANT_BYTES || heir->facts.is_copied_to)
		return NULL;
	return attribution_marks(m, heir->stack)->places[0].line == line ? heir : NULL;
}

static void settle_as(struct model *m, struct block *block, enum kind kind, enum label label)
{
	block->facts.kind = (uint8_t)kind;
	block_settle_as(m, block, label);
}

/* By as much as the last time: what is as long as its batch does not, but by chance. */
static bool has_grown_again(struct model *m, uint32_t line, const struct block *block, const struct block *heir)
{
	struct growth *growth = &m->attribution->growths[line % GROWTHS];
	uint64_t by = block_asked(heir) - block_asked(block);
	bool is_again = growth->line == line && growth->bytes == block_asked(block) && growth->by == by;
	*growth = (struct growth){line, block_asked(heir), by};
	return is_again;
}

/* `x = cat([x, more])`: with calls of modules between, or with backward passes too. */
static bool has_grown(struct model *m, const struct block *block, const struct block *heir)
{
	const struct block_facts *own = &block->facts;
	bool is_computed = (own->kind == KIND_FORWARD || own->kind == KIND_DATA || own->kind == KIND_INPUT) &&
			   !own->is_factory && !own->is_copied_to;
	uint32_t line = attribution_marks(m, heir->stack)->places[0].line;
	if (!context_is_users(own->context) || block_asked(heir) <= block_asked(block) ||
	    attribution_marks(m, block->stack)->places[0].line != line)
		return false;
	bool is_again = has_grown_again(m, line, block, heir);
	if (own->kind == KIND_NONE && own->label == LABEL_KEPT)
		return true;
	return is_computed && m->attribution->loops[own->loop].calls > own->calls && (!block_age(m, block) || is_again);
}

/* `m = b * m + (1 - b) * gradient`, once a backward, where no class of PyTorch's steps. */
static bool is_moment(struct model *m, const struct block *block, const struct block *heir)
{
	const struct block_facts *own = &block->facts;
	const struct size_entry *size = size_find(m, block_asked(block));
	bool is_computed = (own->kind == KIND_FORWARD || own->kind == KIND_DATA || own->kind == KIND_INPUT) &&
			   !own->is_factory && !own->is_copied_to && own->context == MARK_USER;
	return is_computed && !m->attribution->loops[own->loop].steps && block_age(m, block) &&
	       block_asked(heir) == block_asked(block) && size && size->parameters > 0 && size->gradients_most &&
	       attribution_marks(m, block->stack)->places[0].line == attribution_marks(m, heir->stack)->places[0].line;
}

void successor_settle(struct model *m, struct block *block, const struct moment_facts *facts)
{
	struct block *heir = successor_of(m, block, facts);
	if (heir && is_moment(m, block, heir))
		settle_as(m, block, KIND_STATE, LABEL_STATE);
	if (heir && block->facts.label == LABEL_STATE) {
		size_get(m, block_asked(heir))->states++;
		settle_as(m, heir, KIND_STATE, LABEL_STATE);
	} else if (heir && has_grown(m, block, heir)) {
		settle_as(m, heir, KIND_NONE, LABEL_KEPT);
		settle_as(m, block, KIND_NONE, LABEL_KEPT);
	}
}

/* `x = f(y)` each time round a loop: the line that made it has made the next one, and one backward was between. */
static bool is_replaced(struct model *m, const struct block *block, const struct moment_facts *facts)
{
	const struct loop *loop = &m->attribution->loops[block->facts.loop];
	const struct block *latest = loop->latest ? block_find(m, loop->latest) : NULL;
	const struct stack_marks *marks = attribution_marks(m, block->stack);
	uint32_t line = facts->marks->places[0].line;
	if (!line || !latest || latest == block || block_age(m, block) > loop_backwards_a_step(loop) ||
	    attribution_marks(m, latest->stack)->site != marks->site)
		return false;
	for (unsigned i = 0; i < MARKS_PLACES; i++)
		if (marks->places[i].line == line)
			return true;
	return false;
}

bool successor_leaves_kept(struct model *m, const struct block *block, const struct moment_facts *facts)
{
	if (!is_made_to_keep(m, block))
		return false;
	if (!is_replaced(m, block, facts))
		return true;
	size_get(m, block_asked(block))->keeper = 0; /* what was kept was made by the same function, for another */
	return false;
}
