/* The rules: what a block turns out to have been when it is taken back, by whom, and how long it lived.
 * Must never walk blocks without a bound. */
#include "model/model_private.h"

/* Nothing has trained, and the function that lets go of it has been at other lines since it was made: a variable
 * held it. */
static bool has_outlived_line(const struct model *m, const struct block *block, const struct moment_facts *facts)
{
	struct attribution *a = m->attribution;
	const struct code_place *place = facts->marks->places;
	if (a->has_trained || !context_is_users(block->facts.context) || !place->line)
		return false;
	const struct place_seen *seen = place_of_function(a, place->function);
	return seen->function == place->function && seen->line == place->line && seen->since > block->facts.born;
}

static enum label freed_young(const struct model *m, const struct block *block, const struct loop *loop,
			      const struct moment_facts *facts)
{
	const struct block_facts *own = &block->facts;
	bool is_of_no_graph = own->is_no_grad || (own->context == MARK_FORWARD && !own->call);
	if (is_of_no_graph && m->attribution->has_trained && loop->calls - own->calls >= 4)
		return LABEL_NO_GRAD;
	if (own->label == LABEL_COPY && loop->calls > own->calls)
		return LABEL_COPY;
	bool has_outlived = own->context == MARK_FORWARD ? loop->calls > own->calls :
							   has_outlived_line(m, block, facts);
	return has_outlived ? LABEL_FREED_LATER : LABEL_TEMPORARY;
}

/* What takes part in what is differentiated has a gradient of its own, as large as it is, before the graph lets go
 * of it. */
static bool has_own_gradient(const struct model *m, const struct block *block)
{
	const struct size_entry *size = size_find(m, block_asked(block));
	return size && size->passed == m->attribution->stamp && size->passing > 0;
}

static void leave_passing(const struct model *m, const struct block *block, struct size_entry *size)
{
	bool is_of_pass = block->facts.kind == KIND_BACKWARD || block->facts.kind == KIND_RECOMPUTED;
	if (size && is_of_pass && !block_age(m, block) && size->passed == m->attribution->stamp)
		size->passing--;
}

/* Where the program computed the data of a pass it has computed more of it, after a module had run: another view. */
static bool is_data_again(struct model *m, const struct block *block)
{
	const struct size_entry *size = size_find(m, block_asked(block));
	uint32_t site = attribution_marks(m, block->stack)->site;
	return size && site && (size->data_site == site || size->argument_site == site);
}

static bool is_argument(struct model *m, const struct block *block)
{
	uint32_t site = attribution_marks(m, block->stack)->site;
	return block->facts.is_argument || (site && size_get(m, block_asked(block))->argument_site == site);
}

/* By the engine. What was computed from a parameter before a module had run is of the graph, and with it what that was
 * computed with, such as indices, which goes after it and has no gradient. */
static enum label freed_datum(struct model *m, const struct block *block)
{
	struct loop *loop = &m->attribution->loops[block->facts.loop];
	if (block->bytes < SIGNIFICANT_BYTES)
		return LABEL_ACTIVATION;
	if (has_own_gradient(m, block))
		loop->graph_data = m->attribution->stamp;
	return is_argument(m, block) || loop->graph_data == m->attribution->stamp ? LABEL_ACTIVATION : LABEL_INPUT;
}

/* In half the bytes of a parameter. */
static bool is_cast_weight(struct model *m, const struct block *block)
{
	uint64_t bytes = 2 * block_asked(block);
	return attribution_marks(m, block->stack)->native & MARK_CAST &&
	       (model_parameters_of_size(m, bytes) || model_parameters_of_size(m, bytes - 512));
}

static enum label freed_forward(struct model *m, const struct block *block,
				const struct moment_facts *facts)
{
	const struct block_facts *own = &block->facts;
	const struct loop *loop = &m->attribution->loops[own->loop];
	uint64_t age = block_age(m, block);
	if (facts->is_backward && is_cast_weight(m, block))
		return LABEL_CAST_WEIGHT;
	if (facts->is_backward)
		return is_data_again(m, block) ? freed_datum(m, block) : LABEL_ACTIVATION;
	if (!age)
		return freed_young(m, block, loop, facts);
	if (own->is_flat)
		return LABEL_GRADIENT;
	bool is_old = age > loop_age_of_kept(loop) && context_is_users(own->context);
	if (own->is_joined && (is_old || own->is_joined_copy))
		return LABEL_INPUT;
	if (own->label == LABEL_NO_GRAD && own->is_in_row)
		return LABEL_NO_GRAD;
	if (is_old)
		return LABEL_KEPT;
	if (own->is_no_grad && age > loop_backwards_a_step(loop) + 1)
		return LABEL_NO_GRAD;
	return own->is_clone ? LABEL_COPY : LABEL_HELD;
}

/* What a module made takes no place of a parameter that the program lets go of between calls: images of a generator, say. */
static bool may_inherit(const struct model *m, const struct block *heir, uint8_t context)
{
	if (heir->facts.context == MARK_FORWARD && context != MARK_FORWARD)
		return false;
	uint8_t kind = heir->facts.kind;
	if (heir->facts.is_copied_to || heir->facts.context == MARK_COPY || block_age(m, heir) > 1)
		return false;
	return kind == KIND_FORWARD || kind == KIND_DATA || kind == KIND_INPUT || kind == KIND_STEP;
}

static struct block *heir_of(struct model *m, const struct block *block, const struct size_entry *size,
			     uint8_t context)
{
	bool is_users_swap = context == MARK_USER && m->attribution->has_trained;
	if (!is_users_swap && context != MARK_FORWARD && context != MARK_OPTIMIZER)
		return NULL;
	if (size->newest && may_inherit(m, size->newest, context))
		return size->newest;
	if (context == MARK_FORWARD || !m->attribution->has_trained)
		return NULL;
	return clone_of(&m->attribution->loops[block->facts.loop], block_asked(block));
}

/* The gradient goes just before its parameter where that goes as a whole, with its model. */
static bool goes_with_gradient(const struct model *m, const struct block *block, const struct event *e)
{
	const struct attribution *a = m->attribution;
	return e->sequence == a->gone_sequence + 1 && block_asked(block) == a->gone_bytes;
}

/* Of a model that goes, without gradients: as many are left as ever had one, and no copy need take its place. */
static bool is_spare(const struct size_entry *size, const struct moment_facts *facts)
{
	return facts->marks->context == MARK_USER && size->gradients_most && size->parameters >= size->gradients_most;
}

/* `parameter.data = …`: the newest block of its size takes its place, or a copy made before. */
static void pass_on(struct model *m, struct block *block, const struct event *e, const struct moment_facts *facts)
{
	struct size_entry *size = size_get(m, block_asked(block));
	size->parameters--;
	struct block *heir = heir_of(m, block, size, facts->marks->context);
	if (!heir || goes_with_gradient(m, block, e) || (heir->facts.is_clone && is_spare(size, facts)))
		return;
	list_remove(heir);
	heir->facts.kind = KIND_PARAMETER;
	size->parameters++;
	if (size->newest == heir)
		size->newest = NULL;
	relabel(m, heir, LABEL_PARAMETER);
}

/* Of a class of the program's, such as a loader, that makes its first batch when it is made: there is another. */
static bool is_datum_after_all(struct model *m, const struct block *block)
{
	const struct size_entry *size = size_get(m, block_asked(block));
	bool is_data = block->facts.is_copied_to || (size->newest && size->newest != block);
	return block->facts.context == MARK_USER_INIT && m->attribution->has_trained && is_data &&
	       block->facts.label == LABEL_PARAMETER && !size->gradients_most && !size->states;
}

/* `x = next(batches).cuda()`: it had a gradient, as parameters have, and the next one takes its place. */
static bool is_batch_after_all(struct model *m, const struct block *block, const struct moment_facts *facts)
{
	const struct block *newest = size_get(m, block_asked(block))->newest;
	return block->facts.is_copied_to && block->facts.context == MARK_USER && facts->marks->context == MARK_USER &&
	       newest && newest != block && newest->facts.is_copied_to &&
	       attribution_marks(m, newest->stack)->site == attribution_marks(m, block->stack)->site;
}

static enum label freed_parameter(struct model *m, struct block *block, const struct event *e,
				  const struct moment_facts *facts)
{
	uint8_t context = facts->marks->context;
	if ((is_datum_after_all(m, block) && context_is_users(context)) || is_batch_after_all(m, block, facts)) {
		size_add_parameter(m, block_asked(block), -1);
		return LABEL_INPUT;
	}
	pass_on(m, block, e, facts);
	bool is_scratch = context == MARK_LOAD || context == MARK_INIT || context == MARK_USER_INIT ||
			  (block->facts.context == MARK_USER_INIT && !block_age(m, block));
	if (block_is_cache(m, block))
		return LABEL_KEPT;
	return is_scratch ? LABEL_TEMPORARY : (enum label)block->facts.label;
}

/* Before another backward. A checkpoint that is there while modules run is kept, unless they run with it. */
static enum label freed_loaded(struct model *m, const struct block *block)
{
	const struct loop *loop = &m->attribution->loops[block->facts.loop];
	if (block_age(m, block))
		return (enum label)block->facts.label;
	if (loop->calls - block->facts.calls < 2)
		return LABEL_TEMPORARY;
	return model_parameters_of_size(m, block_asked(block)) ? LABEL_COPY : (enum label)block->facts.label;
}

/* Made by a hook of Python's on the engine thread, for itself. */
static bool is_made_by_hook(struct model *m, const struct block *block)
{
	uint32_t flags = attribution_marks(m, block->stack)->flags;
	return flags & MARK_IS_PYTHON && !(flags & MARK_FLAG(MARK_FUNCTION)) && block->facts.context == MARK_USER;
}

/* By a hook of Python's on the engine thread: an optimizer that steps inside backward. */
static bool is_freed_by_hook(const struct moment_facts *facts)
{
	uint32_t flags = facts->marks->flags;
	uint8_t context = facts->marks->context;
	if (!facts->is_engine || !(flags & MARK_IS_PYTHON))
		return false;
	return facts_have(facts, MARK_OPTIMIZER) || flags & MARK_ZERO_GRAD ||
	       (flags & MARK_USER_BASE && !facts_have(facts, MARK_FUNCTION) && context != MARK_FORWARD &&
		context != MARK_BACKWARD);
}

/* By a hook of the program's or of PyTorch's, for modules that then ran again: a graph was built on it. */
static bool is_unpacked(struct model *m, const struct block *block, const struct loop *loop)
{
	const struct stack_marks *marks = attribution_marks(m, block->stack);
	return marks->flags & MARK_IS_PYTHON && block->facts.context == MARK_USER &&
	       loop->recomputed > block->facts.born;
}

static enum label freed_backward(struct model *m, struct block *block, const struct moment_facts *facts)
{
	const struct loop *loop = &m->attribution->loops[block->facts.loop];
	bool is_by_engine = facts->is_engine && !(facts->marks->flags & MARK_IS_PYTHON);
	if (!block_age(m, block) && loop->in_backward) {
		if (is_freed_by_hook(facts))
			return is_made_by_hook(m, block) ? LABEL_PASS_TEMPORARY : LABEL_GRADIENT;
		if (is_unpacked(m, block, loop))
			return LABEL_RECOMPUTED;
		return block->facts.context == MARK_COMMUNICATION ? LABEL_COMMUNICATION :
								    LABEL_PASS_TEMPORARY;
	}
	if (block->facts.label == LABEL_GRADIENT)
		size_get(m, block_asked(block))->gradients--;
	/* Left by a backward inside it, for those of higher order. */
	if (facts->marks->flags & MARK_TRANSFORM && block_age(m, block) <= 1)
		return LABEL_PASS_TEMPORARY;
	if (is_by_engine && !loop->in_backward)
		return LABEL_PASS_TEMPORARY;
	return is_by_engine && !block->facts.is_gradient ? LABEL_ACTIVATION : (enum label)block->facts.label;
}

static enum label freed_step(const struct model *m, const struct block *block, const struct event *e,
			     const struct moment_facts *facts)
{
	const struct stepper *stepper = m->threads[e->thread].stepper;
	const struct loop *loop = &m->attribution->loops[block->facts.loop];
	if (facts->is_engine && !(facts->marks->flags & MARK_IS_PYTHON))
		return LABEL_ACTIVATION; /* the forward of a closure */
	if (!loop->steps && stepper && stepper->is_stepping)
		return LABEL_STEP_TEMPORARY;
	return block->facts.label == LABEL_STEPPING ? LABEL_STEP_TEMPORARY : (enum label)block->facts.label;
}

/* `parameter.grad = zeros_like(parameter)`: taken by zero_grad(), or gone before another backward. */
static bool is_gradient_by_hand(struct model *m, const struct block *block, const struct moment_facts *facts)
{
	const struct block_facts *own = &block->facts;
	const struct size_entry *size = size_find(m, block_asked(block));
	if (own->is_copied_to)
		return false;
	return facts->marks->flags & MARK_ZERO_GRAD ||
	       (own->kind == KIND_INPUT && own->is_zeros && !own->is_early && !block_age(m, block) &&
		m->attribution->loops[own->loop].calls - own->calls < 2 &&
		block->bytes >= SIGNIFICANT_BYTES && size && size->parameters > 0);
}

/* By the module that runs again, or by the Function that ran it: the graph did not hold it. */
static bool is_freed_by_recomputing(const struct moment_facts *facts)
{
	uint8_t context = facts->marks->context;
	bool is_by_function = context == MARK_USER && facts->marks->flags & MARK_CHECKPOINT;
	return facts->is_backward && (context == MARK_FORWARD || context == MARK_FUNCTION || is_by_function);
}

/* Made from nothing, and gone before anything ran. */
static bool is_scratch(const struct model *m, const struct block *block, const struct moment_facts *facts)
{
	const struct block_facts *own = &block->facts;
	const struct loop *loop = &m->attribution->loops[own->loop];
	return own->is_factory && !own->is_copied_to && !block_age(m, block) && loop->calls == own->calls &&
	       (loop->calls || m->attribution->has_trained) && context_is_users(facts->marks->context);
}

static enum label freed_as(struct model *m, struct block *block, const struct event *e,
			   const struct moment_facts *facts)
{
	const struct block_facts *own = &block->facts;
	bool is_by_engine = facts->is_engine && !(facts->marks->flags & MARK_IS_PYTHON);
	switch (own->kind) {
	case KIND_FORWARD:
	case KIND_DATA:
	case KIND_INPUT:
		if (is_gradient_by_hand(m, block, facts)) {
			count_gradient(m, block_asked(block));
			return LABEL_GRADIENT;
		}
		if (!is_by_engine && successor_leaves_kept(m, block, facts))
			return LABEL_KEPT;
		if (own->kind != KIND_INPUT)
			return freed_forward(m, block, facts);
		if (block_is_cache(m, block))
			return LABEL_KEPT;
		if (is_scratch(m, block, facts))
			return LABEL_TEMPORARY;
		if (block_is_field(m, block))
			return has_outlived_line(m, block, facts) ? LABEL_FREED_LATER : LABEL_TEMPORARY;
		return is_by_engine && !own->is_copied_to && !own->is_factory ? freed_datum(m, block) :
										(enum label)own->label;
	case KIND_RECOMPUTED:
		return is_freed_by_recomputing(facts) ? LABEL_PASS_TEMPORARY : LABEL_RECOMPUTED;
	case KIND_PARAMETER:
		return freed_parameter(m, block, e, facts);
	case KIND_LOADED:
		return freed_loaded(m, block);
	case KIND_STEP:
		return freed_step(m, block, e, facts);
	case KIND_BACKWARD:
		return freed_backward(m, block, facts);
	default:
		return (enum label)own->label;
	}
}

static void leave_pass(struct model *m, struct block *block, bool by_backward)
{
	struct loop *loop = &m->attribution->loops[block->facts.loop];
	if (!block->facts.is_in_pass)
		return;
	loop->took |= by_backward;
	if (block_age(m, block))
		loop->old_count--;
	else
		loop->young_count--;
}

bool block_is_of_first_pass(const struct model *m, const struct block *block)
{
	const struct device *d = m->devices[block->slot];
	return d && d->is_unwinding && !m->attribution->has_trained;
}

/* While the interpreter ends, or an exception unwinds, nobody frees a block for a reason; but which blocks a graph holds,
 * and not a function, is still seen then. */
static bool is_decided(const struct model *m, const struct block *block)
{
	bool is_provisional = label_meaning(block->facts.label, m->attribution->has_trained).is_provisional;
	return is_provisional ? block_is_of_first_pass(m, block) : m->is_frozen || m->devices[block->slot]->is_unwinding;
}

void classify_free(struct model *m, struct block *block, const struct event *e,
		   const struct moment_facts *facts)
{
	list_remove(block);
	struct size_entry *size = size_find(m, block_asked(block));
	if (size && size->newest == block)
		size->newest = NULL;
	leave_passing(m, block, size);
	leave_pass(m, block, facts->is_backward);
	if (block->facts.label == LABEL_GRADIENT) {
		m->attribution->gone_sequence = e->sequence;
		m->attribution->gone_bytes = block_asked(block);
	}
	successor_settle(m, block, facts);
	if (m->attribution->loops[block->facts.loop].latest == block->address)
		m->attribution->loops[block->facts.loop].latest = 0;
	if (!is_decided(m, block))
		relabel(m, block, freed_as(m, block, e, facts));
	settle_freed(m, block, e, facts->is_backward);
	struct model_observer *observer = m->attribution->observer;
	if (observer)
		observer->freed(observer, block->facts.born, e->sequence);
}
