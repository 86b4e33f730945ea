/* The rules: what a block is taken for when it is handed out, and what it turns out to have been when
 * it is taken back. First match wins. Owns what is kept of a block for them; what the end of a phase
 * decides stands in settle.c. */
#include "model/model_private.h"

uint32_t block_age(const struct model *m, const struct block *block)
{
	return m->attribution->loops[block->facts.loop].backwards - block->facts.backwards;
}

static bool is_users(uint8_t context)
{
	return context == MARK_USER || context == MARK_USER_INIT;
}

static bool has(const struct moment_facts *facts, enum mark mark)
{
	return facts->marks->flags & MARK_FLAG(mark);
}

/* ---------- handed out ---------- */

struct verdict {
	enum kind kind;
	enum label label;
	struct block_list *list; /* it waits on, NULL none */
};

static bool is_likely_gradient(struct model *m, const struct block *block, const struct moment_facts *facts)
{
	struct size_entry *size = size_find(m, block->bytes);
	if (facts->marks->flags & MARK_IS_PYTHON || block->bytes < SIGNIFICANT_BYTES || !size)
		return false;
	if (size->stamp != m->attribution->stamp) {
		size->stamp = m->attribution->stamp;
		size->counted = size->predicted = 0;
	}
	if (size->gradients + size->predicted >= size->parameters)
		return false;
	size->predicted++;
	return true;
}

static struct verdict judge_backward(struct model *m, struct block *block, const struct moment_facts *facts)
{
	struct loop *loop = facts->loop;
	switch (facts->marks->context) {
	case MARK_COMMUNICATION:
		return (struct verdict){KIND_BACKWARD, LABEL_PASSING_COMMUNICATION, &loop->passing};
	case MARK_PARAMETER:
		return (struct verdict){KIND_PARAMETER, LABEL_PARAMETER, NULL};
	case MARK_BACKWARD_CALL:
	case MARK_GRAD_CALL:
		if (!facts->is_engine)
			return (struct verdict){KIND_SMALL, LABEL_PASS_TEMPORARY, NULL};
		break;
	case MARK_FORWARD:
		if (!(facts->marks->flags & MARK_COMPILED))
			return (struct verdict){KIND_RECOMPUTED, LABEL_RECOMPUTED, NULL};
		break;
	default:
		break;
	}
	enum label label = is_likely_gradient(m, block, facts) ? LABEL_LIKELY_GRADIENT : LABEL_PASSING;
	return (struct verdict){KIND_BACKWARD, label, &loop->passing};
}

static struct verdict judge_step(struct model *m, const struct block *block, const struct event *e,
				 const struct moment_facts *facts)
{
	const struct block_facts *own = &block->facts;
	bool is_state = (facts->marks->flags & MARK_INIT_GROUP && own->is_factory) ||
			(own->is_clone && !facts->loop->steps);
	return (struct verdict){KIND_STEP, is_state ? LABEL_STATE : LABEL_STEPPING,
				&thread_of(m, e->thread)->stepper->blocks};
}

static bool makes_parameter(const struct model *m, const struct moment_facts *facts)
{
	uint8_t context = facts->marks->context;
	if (context == MARK_PARAMETER || context == MARK_COPY || context == MARK_INIT)
		return true;
	return context == MARK_USER_INIT && !m->attribution->has_trained && !has(facts, MARK_FORWARD);
}

static struct verdict judge_parameter(const struct block *block, const struct moment_facts *facts)
{
	bool is_in_doubt = facts->marks->context == MARK_USER_INIT && block->facts.is_zeros &&
			   block->bytes >= SIGNIFICANT_BYTES;
	return (struct verdict){KIND_PARAMETER, LABEL_PARAMETER, is_in_doubt ? &facts->loop->kept : NULL};
}

static struct verdict judge_forward(const struct block *block, const struct moment_facts *facts)
{
	struct loop *loop = facts->loop;
	bool is_user = is_users(facts->marks->context);
	enum label label = block->facts.is_clone && facts->marks->context == MARK_USER ? LABEL_COPY :
											 LABEL_FORWARD;
	if (is_user && block->facts.is_factory)
		return (struct verdict){KIND_INPUT, LABEL_INPUT, &loop->kept};
	if (is_user && loop->window_is_open)
		return (struct verdict){KIND_DATA, block->facts.is_clone ? LABEL_COPY : LABEL_USER,
					&loop->data};
	if (has(facts, MARK_FORWARD) && facts->is_main) {
		loop->call_count++;
		return (struct verdict){KIND_FORWARD, label, &loop->call};
	}
	return (struct verdict){KIND_FORWARD, label, is_user ? &loop->fresh : NULL};
}

static struct verdict judge(struct model *m, struct block *block, const struct event *e,
			    const struct moment_facts *facts)
{
	uint8_t context = facts->marks->context, native = facts->marks->native;
	if (native & MARK_WORKSPACE)
		return (struct verdict){KIND_WORKSPACE, LABEL_WORKSPACE, NULL};
	if (native & MARK_REDUCER || context == MARK_DDP_INIT)
		return (struct verdict){KIND_COMMUNICATION, LABEL_COMMUNICATION, NULL};
	if (context == MARK_OPTIMIZER)
		return judge_step(m, block, e, facts);
	if (context == MARK_COMMUNICATION && !facts->is_backward)
		return (struct verdict){KIND_COMMUNICATION, LABEL_COMMUNICATION, NULL};
	if (context == MARK_OPTIMIZER_LOAD)
		return (struct verdict){KIND_STATE, LABEL_STATE, NULL};
	if (facts->is_backward)
		return judge_backward(m, block, facts);
	if (makes_parameter(m, facts))
		return judge_parameter(block, facts);
	if (context == MARK_LOAD)
		return (struct verdict){KIND_LOADED, LABEL_LOADED, &facts->loop->kept};
	if (!(facts->marks->flags & MARK_IS_PYTHON) && !facts->loop->main)
		return (struct verdict){KIND_NONE, LABEL_UNKNOWN, NULL};
	return judge_forward(block, facts);
}

static bool is_shared(const struct model *m, const struct loop *loop)
{
	const struct attribution *a = m->attribution;
	for (unsigned i = 0; i < a->loop_count; i++)
		if (&a->loops[i] != loop && a->loops[i].in_backward)
			return true;
	return false;
}

static void describe(struct model *m, struct block *block, const struct event *e,
		     const struct moment_facts *facts)
{
	const struct size_entry *size = size_find(m, block->bytes);
	uint8_t native = facts->marks->native;
	block->facts = (struct block_facts){
		.born = e->sequence,
		.backwards = facts->loop->backwards,
		.calls = facts->loop->calls,
		.context = facts->marks->context,
		.loop = (uint8_t)(facts->loop - m->attribution->loops),
		.is_zeros = native & MARK_ZEROS,
		.is_factory = native & MARK_FACTORY,
		.is_library = facts->marks->flags & MARK_LIBRARY,
		.is_early = !m->attribution->has_trained,
		.is_clone = native & MARK_CLONE && block->bytes >= SIGNIFICANT_BYTES && size &&
			    size->parameters > 0,
		.is_shared = facts->is_backward && is_shared(m, facts->loop),
	};
}

void classify_alloc(struct model *m, struct block *block, const struct event *e,
		    const struct moment_facts *facts)
{
	describe(m, block, e, facts);
	struct verdict verdict = judge(m, block, e, facts);
	block->facts.kind = (uint8_t)verdict.kind;
	block->facts.label = (uint8_t)verdict.label;
	if (verdict.list)
		list_push(verdict.list, block);
	if (verdict.kind == KIND_PARAMETER)
		size_add_parameter(m, block->bytes, 1);
	bool is_plain = !facts->is_backward && !block->facts.is_zeros && !block->facts.is_factory;
	struct size_entry *size = is_plain ? size_find(m, block->bytes) : NULL;
	if (size)
		size->newest = block;
	struct model_observer *observer = m->attribution->observer;
	if (observer)
		observer->labelled(observer, e->sequence, block->facts.label);
}

/* ---------- taken back ---------- */

static enum label freed_young(const struct model *m, const struct block *block, const struct loop *loop)
{
	const struct block_facts *own = &block->facts;
	if (own->is_no_grad && m->attribution->has_trained && loop->calls - own->calls >= 4)
		return LABEL_NO_GRAD;
	return loop->calls > own->calls && own->context == MARK_FORWARD ? LABEL_FREED_LATER : LABEL_TEMPORARY;
}

static enum label freed_forward(const struct model *m, const struct block *block,
				const struct moment_facts *facts)
{
	const struct block_facts *own = &block->facts;
	const struct loop *loop = &m->attribution->loops[own->loop];
	uint64_t age = block_age(m, block);
	if (facts->is_backward)
		return LABEL_ACTIVATION;
	if (!age)
		return freed_young(m, block, loop);
	if (age > loop_age_of_kept(loop) && is_users(own->context))
		return LABEL_KEPT;
	if (own->is_no_grad && age > loop_backwards_a_step(loop) + 1)
		return LABEL_NO_GRAD;
	return own->is_clone ? LABEL_COPY : LABEL_HELD;
}

/* `parameter.data = …`: the newest block of its size takes its place. */
static void pass_on(struct model *m, struct block *block, const struct moment_facts *facts)
{
	struct size_entry *size = size_get(m, block->bytes);
	struct block *heir = size->newest;
	uint8_t context = facts->marks->context;
	size->parameters--;
	if (!heir || heir->facts.is_copied_to || block_age(m, heir) > 1)
		return;
	bool may_inherit = heir->facts.kind == KIND_FORWARD || heir->facts.kind == KIND_DATA ||
			   heir->facts.kind == KIND_INPUT || heir->facts.kind == KIND_STEP;
	bool is_swap = context == MARK_FORWARD || context == MARK_OPTIMIZER ||
		       (context == MARK_USER && m->attribution->has_trained);
	if (!may_inherit || !is_swap)
		return;
	list_remove(heir);
	heir->facts.kind = KIND_PARAMETER;
	size->parameters++;
	size->newest = NULL;
	relabel(m, heir, LABEL_PARAMETER);
}

static enum label freed_parameter(struct model *m, struct block *block, const struct moment_facts *facts)
{
	uint8_t context = facts->marks->context;
	pass_on(m, block, facts);
	bool is_scratch = context == MARK_LOAD || context == MARK_INIT || context == MARK_USER_INIT ||
			  (block->facts.context == MARK_USER_INIT && !block_age(m, block));
	return is_scratch ? LABEL_TEMPORARY : (enum label)block->facts.label;
}

/* By a hook of Python's on the engine thread: an optimizer that steps inside backward. */
static bool is_freed_by_hook(const struct moment_facts *facts)
{
	uint32_t flags = facts->marks->flags;
	uint8_t context = facts->marks->context;
	if (!facts->is_engine || !(flags & MARK_IS_PYTHON))
		return false;
	return has(facts, MARK_OPTIMIZER) || flags & MARK_ZERO_GRAD ||
	       (flags & MARK_USER_BASE && !has(facts, MARK_FUNCTION) && context != MARK_FORWARD &&
		context != MARK_BACKWARD);
}

static enum label freed_backward(struct model *m, struct block *block, const struct moment_facts *facts)
{
	const struct loop *loop = &m->attribution->loops[block->facts.loop];
	bool is_by_engine = facts->is_engine && !(facts->marks->flags & MARK_IS_PYTHON);
	if (!block_age(m, block) && loop->in_backward) {
		if (is_freed_by_hook(facts))
			return LABEL_GRADIENT;
		return block->facts.context == MARK_COMMUNICATION ? LABEL_COMMUNICATION :
								    LABEL_PASS_TEMPORARY;
	}
	if (block->facts.label == LABEL_GRADIENT)
		size_get(m, block->bytes)->gradients--;
	if (is_by_engine)
		return loop->in_backward ? LABEL_ACTIVATION : LABEL_PASS_TEMPORARY;
	return (enum label)block->facts.label;
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

static enum label freed_as(struct model *m, struct block *block, const struct event *e,
			   const struct moment_facts *facts)
{
	const struct block_facts *own = &block->facts;
	bool is_by_engine = facts->is_engine && !(facts->marks->flags & MARK_IS_PYTHON);
	switch (own->kind) {
	case KIND_FORWARD:
	case KIND_DATA:
	case KIND_INPUT:
		if (facts->marks->flags & MARK_ZERO_GRAD && !own->is_copied_to)
			return LABEL_GRADIENT; /* made by hand */
		if (own->kind != KIND_INPUT)
			return freed_forward(m, block, facts);
		return is_by_engine && !own->is_copied_to && own->is_clone ? LABEL_ACTIVATION :
									     (enum label)own->label;
	case KIND_RECOMPUTED:
		return facts->marks->context == MARK_FORWARD && facts->is_backward ? LABEL_PASS_TEMPORARY :
										     LABEL_RECOMPUTED;
	case KIND_PARAMETER:
		return freed_parameter(m, block, facts);
	case KIND_LOADED:
		return block_age(m, block) ? (enum label)own->label : LABEL_TEMPORARY;
	case KIND_STEP:
		return freed_step(m, block, e, facts);
	case KIND_BACKWARD:
		return freed_backward(m, block, facts);
	default:
		return (enum label)own->label;
	}
}

/* A graph that is dropped without a backward held activations; until it is known what became of it,
 * those of its blocks that went count as temporary. */
static void leave_call(struct model *m, struct block *block, const struct event *e, bool by_backward)
{
	struct call *call = block->facts.call;
	if (!call)
		return;
	call->is_used |= by_backward;
	if (call->is_used)
		tombstones_settle(m, &call->tombstones, LABEL_COUNT);
	else if (block->facts.label == LABEL_TEMPORARY || block->facts.label == LABEL_FREED_LATER)
		tombstone_add(m, &call->tombstones, block, e->sequence);
	if (--call->left)
		return;
	tombstones_settle(m, &call->tombstones, call->is_used ? LABEL_COUNT : LABEL_DROPPED);
	arena_free(m->arena, call, sizeof *call);
}

void classify_free(struct model *m, struct block *block, const struct event *e,
		   const struct moment_facts *facts)
{
	list_remove(block);
	struct size_entry *size = size_find(m, block->bytes);
	if (size && size->newest == block)
		size->newest = NULL;
	relabel(m, block, freed_as(m, block, e, facts));
	leave_call(m, block, e, facts->is_backward);
	struct model_observer *observer = m->attribution->observer;
	if (observer)
		observer->freed(observer, block->facts.born, e->sequence);
}

/* ---------- copied to ---------- */

void classify_copy(struct model *m, struct block *block)
{
	struct loop *loop = &m->attribution->loops[block->facts.loop];
	struct block_facts *own = &block->facts;
	if (own->is_copied_to)
		return;
	own->is_copied_to = true;
	if ((own->kind != KIND_FORWARD && own->kind != KIND_DATA) || !is_users(own->context))
		return;
	list_remove(block);
	own->kind = KIND_INPUT;
	list_push(&loop->kept, block);
	loop->window_is_open = true;
	relabel(m, block, LABEL_INPUT);
}
