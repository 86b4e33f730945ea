/* The rules: what a block is taken for when it is handed out. First match wins. Owns what is kept of a
 * block for them; what it turns out to have been when it is taken back stands in classify_free.c, what
 * the end of a phase decides in settle.c. */
#include "model/model_private.h"

#define UNIT_BYTES	 512 /* of PyTorch's blocks */
#define PARTS_LEAST	 8   /* so many inputs of a size show what many were joined to */
#define INPUTS_LOOKED_AT 64

uint32_t block_age(const struct model *m, const struct block *block)
{
	return m->attribution->loops[block->facts.loop].backwards - block->facts.backwards;
}

uint64_t size_asked(uint64_t bytes, uint64_t asked_bytes)
{
	return asked_bytes ? (asked_bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES : bytes;
}

uint64_t block_asked(const struct block *block)
{
	return size_asked(block->bytes, block->asked_bytes);
}

/* ---------- handed out ---------- */

struct verdict {
	enum kind kind;
	enum label label;
	struct block_list *list; /* it waits on, NULL none */
};

static bool is_likely_gradient(struct model *m, const struct block *block, const struct moment_facts *facts)
{
	struct size_entry *size = size_find(m, block_asked(block));
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
	case MARK_USER: /* a function that is checkpointed */
		if (facts->marks->flags & MARK_CHECKPOINT)
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
	return context == MARK_USER_INIT && !m->attribution->has_trained && !facts_have(facts, MARK_FORWARD);
}

static struct verdict judge_parameter(const struct block *block, const struct moment_facts *facts)
{
	bool is_in_doubt = facts->marks->context == MARK_USER_INIT && block->bytes >= SIGNIFICANT_BYTES;
	return (struct verdict){KIND_PARAMETER, LABEL_PARAMETER, is_in_doubt ? &facts->loop->kept : NULL};
}

/* What the program computes after a call is in the graph that the call began. */
static void join_recent(struct loop *loop, struct block *block)
{
	block->facts.call = loop->recent;
	if (loop->recent)
		loop->recent->left++;
}

static void note_in_call(struct loop *loop, const struct block *block, const struct moment_facts *facts)
{
	if (!loop->call_count) {
		loop->call_stack = block->stack;
	} else if (block->stack == loop->call_stack) {
		loop->call_period = loop->call_period ? loop->call_period : loop->call_count;
		loop->call_again++;
	}
	loop->call_count++;
	loop->call_keeps |= (facts->marks->flags & MARK_CHECKPOINT) != 0;
}

static struct verdict judge_forward(struct block *block, const struct moment_facts *facts)
{
	struct loop *loop = facts->loop;
	bool is_user = context_is_users(facts->marks->context);
	if (block->facts.is_clone && facts->marks->context == MARK_USER)
		return (struct verdict){KIND_FORWARD, LABEL_COPY, &loop->clones};
	if (is_user && block->facts.is_factory) {
		/* While no graph waits for its backward: the data of the next one is drawn. */
		loop->window_is_open |= facts->marks->native & MARK_DRAW && facts->is_main && !loop->recent;
		return (struct verdict){KIND_INPUT, LABEL_INPUT, &loop->kept};
	}
	if (is_user && loop->window_is_open)
		return (struct verdict){KIND_DATA, LABEL_USER, &loop->data};
	if (facts_have(facts, MARK_FORWARD) && facts->is_main) {
		note_in_call(loop, block, facts);
		return (struct verdict){KIND_FORWARD, LABEL_FORWARD, &loop->call};
	}
	if (is_user && facts->is_main)
		join_recent(loop, block);
	return (struct verdict){KIND_FORWARD, LABEL_FORWARD, is_user ? &loop->fresh : NULL};
}

static struct verdict judge(struct model *m, struct block *block, const struct event *e,
			    const struct moment_facts *facts)
{
	uint8_t context = facts->marks->context;
	uint16_t native = facts->marks->native;
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
	if (context == MARK_COPY && block->facts.is_clone) /* of a state_dict: a Parameter is copied elsewhere */
		return (struct verdict){KIND_FORWARD, LABEL_COPY, NULL};
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

/* The program joins the gradients to one vector, and computes others of its length. */
static bool is_flat(struct loop *loop, const struct block *block, const struct moment_facts *facts)
{
	uint64_t asked = block->asked_bytes;
	if (asked < SIGNIFICANT_BYTES || facts->is_backward || facts->marks->native & MARK_FACTORY ||
	    !context_is_users(facts->marks->context) || (asked != loop->gradient_bytes && asked != loop->flat_bytes))
		return false;
	loop->flat_bytes = asked;
	return true;
}

/* There are as many inputs of that size, or as many as are looked for. */
static bool has_parts(const struct block_list *inputs, uint64_t part_bytes, uint64_t parts)
{
	const struct block *input = inputs->last;
	unsigned found = 0, wanted = parts < PARTS_LEAST ? (unsigned)parts : PARTS_LEAST;
	for (unsigned i = 0; input && found < wanted && i < INPUTS_LOOKED_AT; i++, input = input->facts.before)
		found += input->facts.kind == KIND_INPUT && input->asked_bytes == part_bytes;
	return found == wanted;
}

/* The program joins what it has of inputs, such as a rollout's observations: one of them, else NULL. */
static const struct block *part_of(const struct loop *loop, const struct block *block,
				   const struct moment_facts *facts)
{
	uint64_t bytes = block->asked_bytes, tried_bytes = 0;
	const struct block *input = loop->kept.last;
	if (!(facts->marks->native & MARK_JOIN) || !context_is_users(facts->marks->context) || facts->is_backward ||
	    bytes < SIGNIFICANT_BYTES)
		return NULL;
	for (unsigned i = 0; input && i < PARTS_LEAST; i++, input = input->facts.before) {
		uint64_t part_bytes = input->facts.kind == KIND_INPUT ? input->asked_bytes : 0;
		if (!part_bytes || part_bytes == tried_bytes || bytes % part_bytes || bytes == part_bytes)
			continue;
		if (has_parts(&loop->kept, part_bytes, bytes / part_bytes))
			return input;
		tried_bytes = part_bytes;
	}
	return NULL;
}

static void count_passing(const struct model *m, struct size_entry *size)
{
	if (size->passed != m->attribution->stamp)
		size->passing = 0;
	size->passed = m->attribution->stamp;
	size->passing++;
}

static void describe(struct model *m, struct block *block, const struct event *e,
		     const struct moment_facts *facts)
{
	struct size_entry *size = size_find(m, block_asked(block));
	const struct block *part = part_of(facts->loop, block, facts);
	uint16_t native = facts->marks->native;
	if (part && block->asked_bytes / part->asked_bytes >= PARTS_LEAST)
		size_get(m, block_asked(part))->is_part = true;
	if (size && facts->is_backward)
		count_passing(m, size);
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
		.is_clone = (native & MARK_CLONE || facts->marks->context == MARK_COPY) &&
			    block->bytes >= SIGNIFICANT_BYTES && size && size->parameters > 0,
		.is_shared = facts->is_backward && is_shared(m, facts->loop),
		.is_before_model = !size || !size->parameters_most,
		.is_flat = is_flat(facts->loop, block, facts),
		.is_joined = part,
		.is_joined_copy = part && part->facts.is_copied_to,
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
		size_add_parameter(m, block_asked(block), 1);
	block->facts.is_in_pass = verdict.kind == KIND_FORWARD && verdict.label == LABEL_FORWARD;
	facts->loop->young_count += block->facts.is_in_pass;
	if (verdict.kind == KIND_RECOMPUTED)
		facts->loop->recomputed = e->sequence;
	if (verdict.kind == KIND_LOADED)
		loaded_note(m, block);
	m->attribution->is_loading = verdict.kind == KIND_LOADED;
	if (verdict.kind == KIND_STATE)
		size_get(m, block_asked(block))->states++;
	bool is_plain = !facts->is_backward && !block->facts.is_zeros && !block->facts.is_factory;
	struct size_entry *size = is_plain ? size_find(m, block_asked(block)) : NULL;
	if (size)
		size->newest = block;
	if (context_is_users(block->facts.context) && !facts->is_engine)
		facts->loop->latest = block->address;
	facts->loop->computed += is_plain && block->facts.context == MARK_USER && !facts_have(facts, MARK_USER_INIT);
	struct model_observer *observer = m->attribution->observer;
	if (observer)
		observer->labelled(observer, e->sequence, block->facts.label);
}

/* ---------- copied to ---------- */

static void count_copy(struct model *m, struct loop *loop, const struct block *block)
{
	size_get(m, block_asked(block))->copied++;
	if (!m->attribution->has_trained)
		loop->early_copied_bytes += block->bytes;
	else
		loop->late_copies += block->bytes >= SIGNIFICANT_BYTES;
}

/* As many numbers, of 1, 2, 4 or 8 bytes each. */
static bool may_be_cast(const struct block *a, const struct block *b)
{
	uint64_t least = a->asked_bytes < b->asked_bytes ? a->asked_bytes : b->asked_bytes;
	uint64_t most = a->asked_bytes < b->asked_bytes ? b->asked_bytes : a->asked_bytes;
	uint64_t times = least >= SIGNIFICANT_BYTES && most % least == 0 ? most / least : 0;
	return block_asked(a) == block_asked(b) || times == 2 || times == 4 || times == 8;
}

/* What is stored in another order (channels last), or in another type, is made first, and then filled from a block to
 * which the copy goes. NULL: it goes there itself. */
static struct block *filled_from(struct model *m, const struct block *block)
{
	struct block *before = block->facts.before;
	if (!before || before->facts.is_copied_to || !may_be_cast(before, block) ||
	    before->facts.calls != block->facts.calls || before->facts.backwards != block->facts.backwards)
		return NULL;
	uint32_t line = attribution_marks(m, block->stack)->places[0].line;
	return line && attribution_marks(m, before->stack)->places[0].line == line ? before : NULL;
}

static void become_input(struct model *m, struct loop *loop, struct block *block)
{
	list_remove(block);
	block->facts.is_copied_to = true;
	block->facts.kind = KIND_INPUT;
	list_push(&loop->kept, block);
	relabel(m, block, LABEL_INPUT);
}

void classify_copy(struct model *m, struct block *block)
{
	struct loop *loop = &m->attribution->loops[block->facts.loop];
	struct block_facts *own = &block->facts;
	if (own->is_copied_to)
		return;
	own->is_copied_to = true;
	if (!context_is_users(own->context))
		return;
	count_copy(m, loop, block);
	if (own->kind != KIND_FORWARD && own->kind != KIND_DATA)
		return;
	struct block *filled = filled_from(m, block);
	if (filled)
		become_input(m, loop, filled);
	become_input(m, loop, block);
	loop->window_is_open = true;
}
