/* What the blocks that live long are taken for: the few of the program's own are looked at after every backward
 * until they are old enough. Owns what the program keeps. Must never walk all blocks. */
#include "model/model_private.h"

#define CLONES_LOOKED_AT 64
#define KEPT_LOOKED_AT	 64
#define COMPUTED_LEAST	 16 /* blocks, of a program that is at work */
#define AGED_FREELY	 1024
#define AGED_EACH	 8

/* There are gradients or states of that size, and no parameter for them. */
static bool lacks_parameter(const struct size_entry *size)
{
	return size->gradients_most > size->parameters || (size->states && !size->parameters);
}

static void note_parameter_site(struct attribution *a, uint32_t site)
{
	a->parameter_sites[a->parameter_site_count++ % PARAMETER_SITES] = site;
}

/* Of a row of tensors that one line makes, such as master weights, some have the size of another's gradient. */
static bool is_made_as_parameter(struct model *m, const struct block *block)
{
	const struct attribution *a = m->attribution;
	uint32_t site = attribution_marks(m, block->stack)->site;
	for (unsigned i = 0; site && i < PARAMETER_SITES; i++)
		if (a->parameter_sites[i] == site)
			return true;
	return false;
}

static void become_parameter(struct model *m, struct block *block)
{
	if (!is_made_as_parameter(m, block))
		note_parameter_site(m->attribution, attribution_marks(m, block->stack)->site);
	list_remove(block);
	size_add_parameter(m, block_asked(block), 1);
	block->facts.kind = KIND_PARAMETER;
	relabel(m, block, LABEL_PARAMETER);
}

struct block *clone_of(const struct loop *loop, uint64_t bytes)
{
	unsigned looks = CLONES_LOOKED_AT;
	struct block *block = loop->clones.last;
	while (block && block_asked(block) != bytes)
		block = --looks ? block->facts.before : NULL;
	return block;
}

/* What the program computed, between calls of modules, before anything trained. */
static struct block *computed_early(const struct model *m, const struct loop *loop, uint64_t bytes)
{
	struct block *block = loop->young.first;
	for (unsigned i = 0; block && i < KEPT_LOOKED_AT; i++, block = block->facts.next)
		if (block->facts.is_early && block_age(m, block) >= 2 && block_asked(block) == bytes)
			return block;
	return NULL;
}

/* Gradients came for which there is no parameter: the originals are gone, and a copy is what trains; or what was
 * computed for it. */
void long_lived_miss(struct model *m, const struct loop *loop, const struct block *gradient)
{
	uint64_t bytes = block_asked(gradient);
	if (bytes < SIGNIFICANT_BYTES || !lacks_parameter(size_get(m, bytes)))
		return;
	struct block *clone = clone_of(loop, bytes);
	struct block *leaf = clone && clone->facts.is_early ? clone : computed_early(m, loop, bytes);
	if (leaf)
		become_parameter(m, leaf);
}

void block_settle_as(struct model *m, struct block *block, enum label label)
{
	list_remove(block);
	relabel(m, block, label);
}

/* Nothing trained has its size: it holds data. */
static bool is_store(const struct block *block, const struct size_entry *size)
{
	return block->facts.is_factory && !size->states && !size->gradients_most;
}

/* The program makes one after the other there, as for a list of what it keeps. */
static bool is_one_of_many(struct model *m, const struct block *block, const struct size_entry *size)
{
	const struct block *newest = size->newest;
	return !block->facts.is_early && newest && newest != block &&
	       attribution_marks(m, newest->stack)->site == attribution_marks(m, block->stack)->site;
}

/* All that the program trains on was copied before it began: its batches are taken from what it had then (or from a
 * part of that, for some epochs), or what was copied was computed anew (standardised). */
static bool is_store_from_copies(struct model *m, const struct loop *loop, const struct block *block,
				 const struct size_entry *size)
{
	const struct block_facts *facts = &block->facts;
	bool is_computed = facts->kind == KIND_INPUT && !facts->is_copied_to && !facts->is_factory;
	bool is_from_copies = loop->early_copied_bytes >= block->bytes && (loop->late_data || size->copied);
	return is_computed && !loop->late_copies && (is_from_copies || (facts->is_early && loop->late_data)) &&
	       !is_one_of_many(m, block, size);
}

/* Modules ran since; or the program has none, and has computed something with what its class has made. */
static bool is_in_use(const struct model *m, const struct block_facts *facts)
{
	const struct loop *loop = &m->attribution->loops[facts->loop];
	return loop->calls - facts->calls >= 2 ||
	       (!loop->calls && !m->attribution->has_trained && facts->context == MARK_USER_INIT &&
		loop->computed >= COMPUTED_LEAST);
}

bool block_is_cache(const struct model *m, const struct block *block)
{
	const struct block_facts *facts = &block->facts;
	return (!m->attribution->has_trained || !block_age(m, block)) && facts->is_zeros && !facts->is_copied_to &&
	       context_is_users(facts->context) && block->bytes >= SIGNIFICANT_BYTES && is_in_use(m, facts);
}

bool block_is_field(const struct model *m, const struct block *block)
{
	const struct block_facts *facts = &block->facts;
	return !m->attribution->has_trained && facts->kind == KIND_INPUT && facts->is_zeros &&
	       !facts->is_copied_to && !m->attribution->loops[facts->loop].calls;
}

/* Of an object that keeps all data on the device: nothing trained has its size, no batch comes from the host, and the
 * program computes them from what it has. */
static bool is_of_loader(const struct loop *loop, const struct size_entry *size)
{
	return !size->states && !size->gradients_most && !loop->late_copies && loop->late_data;
}

/* Uninitialised, and one of several of that size that one line makes: weights of layers, that do not train. */
static bool is_frozen_weight(struct model *m, const struct block *block)
{
	const struct stack_marks *marks = attribution_marks(m, block->stack);
	const struct block *other = block->facts.next;
	if (!(marks->native & MARK_EMPTY))
		return false;
	if (is_made_as_parameter(m, block))
		return true;
	for (unsigned i = 0; other && i < KEPT_LOOKED_AT; i++, other = other->facts.next)
		if (other->facts.kind == KIND_PARAMETER && block_asked(other) == block_asked(block) &&
		    attribution_marks(m, other->stack)->site == marks->site) {
			note_parameter_site(m->attribution, marks->site);
			return true;
		}
	return false;
}

static bool is_parameter(struct model *m, const struct loop *loop, const struct block *block,
			 const struct size_entry *size)
{
	const struct block_facts *facts = &block->facts;
	int32_t enough = facts->is_clone ? size->parameters : 1;
	bool is_plain = facts->is_copied_to || !(facts->is_zeros || facts->is_clone);
	return size->gradients_most >= enough || (is_plain && !is_of_loader(loop, size)) || is_frozen_weight(m, block);
}

/* Of a class that steps by hand: more have that size than gradients came for. Nothing that has it, or half of it,
 * trains: then it is a weight that is frozen. */
static bool is_state_by_hand(const struct model *m, const struct loop *loop, const struct block *block,
			     const struct size_entry *size)
{
	const struct size_entry *half = size_find(m, block_asked(block) / 2);
	bool is_trained = size->gradients_most || (half && half->gradients_most);
	bool is_spare = size->parameters > 1 || model_parameters_of_size(m, block_asked(block) / 2);
	return !loop->steps && block->facts.is_zeros && !block->facts.is_copied_to && is_spare && is_trained &&
	       size->parameters > size->gradients_most;
}

static void become_state(struct model *m, struct block *block)
{
	size_add_parameter(m, block_asked(block), -1);
	block->facts.kind = KIND_NONE;
	block_settle_as(m, block, LABEL_STATE);
}

/* Made in the constructor of a class of the program: a module, or not? */
static void age_parameter(struct model *m, struct loop *loop, struct block *block)
{
	if (block_age(m, block) < 2)
		return;
	const struct size_entry *size = size_get(m, block_asked(block));
	if (is_state_by_hand(m, loop, block, size))
		become_state(m, block);
	if (!loop->steps)
		return;
	if (is_parameter(m, loop, block, size)) {
		block_settle_as(m, block, LABEL_PARAMETER);
		return;
	}
	bool is_data = !block->facts.is_factory && !block->facts.is_clone && is_of_loader(loop, size);
	size_add_parameter(m, block_asked(block), -1);
	block->facts.kind = KIND_NONE;
	if (is_data || is_store(block, size))
		block_settle_as(m, block, LABEL_INPUT);
	else
		block_settle_as(m, block, block->facts.is_clone ? LABEL_COPY : LABEL_OTHER);
}

/* The optimizer has made a state of its own; or one set of the weights was loaded, before there was a model. */
static bool is_spare(const struct block *block, const struct size_entry *size)
{
	return size->states || (block->facts.is_before_model && size->loaded <= size->parameters);
}

void settle_loaded(struct model *m, struct block *block, const struct loaded_look *look)
{
	const struct size_entry *size = size_get(m, block_asked(block));
	if (lacks_parameter(size))
		become_parameter(m, block);
	else if (is_spare(block, size))
		block_settle_as(m, block, LABEL_COPY);
	else if (loaded_is_state(m, block, look))
		block_settle_as(m, block, LABEL_STATE);
	else
		block_settle_as(m, block, size->parameters ? LABEL_COPY : LABEL_OTHER);
}

/* The first step of an optimizer shows whether it has a state already. */
static void age_loaded(struct model *m, struct loop *loop, struct block *block, const struct loaded_look *look)
{
	uint64_t age = block_age(m, block);
	if (age >= 2 || (age && (loop->steps || lacks_parameter(size_get(m, block_asked(block))))))
		settle_loaded(m, block, look);
}

/* The program keeps it: and what else it makes there. */
static void keep(struct model *m, struct block *block, enum label label)
{
	size_get(m, block_asked(block))->keeper = attribution_marks(m, block->stack)->site;
	block_settle_as(m, block, label);
}

bool is_made_to_keep(struct model *m, const struct block *block)
{
	const struct size_entry *size = size_find(m, block_asked(block));
	return size && size->keeper && !block->facts.is_copied_to &&
	       (!block->facts.is_factory || block->facts.is_zeros) && size->keeper == attribution_marks(m, block->stack)->site;
}

bool is_made_for_graph(struct model *m, const struct block *block)
{
	const struct size_entry *size = size_find(m, block_asked(block));
	return size && size->joiner && !block->facts.is_copied_to && !block->facts.is_factory &&
	       size->joiner == attribution_marks(m, block->stack)->site;
}

/* No graph has been taken apart since it was computed, and older ones are there still. */
static bool is_in_whole_graph(const struct loop *loop, const struct block *block, uint64_t age)
{
	return !block->facts.is_copied_to && !block->facts.is_factory && loop->whole_backwards >= age &&
	       loop->old_count >= GRAPH_COUNT;
}

static void join_graph(struct model *m, struct block *block)
{
	size_get(m, block_asked(block))->joiner = attribution_marks(m, block->stack)->site;
	block_settle_as(m, block, LABEL_RETAINED);
}

/* A batch may live as long as several backwards, but the first is made before any. torch.autograd.grad alone is also
 * asked for the gradient of an image that is made step by step. */
static bool is_old_enough(const struct loop *loop, const struct block_facts *facts, uint64_t age)
{
	return facts->is_early || (age > loop_age_of_kept(loop) && loop->fills_gradients);
}

static bool is_made_as_store(struct model *m, const struct loop *loop, const struct block *block)
{
	uint32_t site = attribution_marks(m, block->stack)->site;
	for (unsigned i = 0; site && !loop->late_copies && i < STORE_SITES; i++)
		if (m->attribution->store_sites[i] == site)
			return true;
	return false;
}

static void keep_store(struct model *m, struct block *block)
{
	struct attribution *a = m->attribution;
	if (!is_made_as_store(m, &a->loops[block->facts.loop], block))
		a->store_sites[a->store_site_count++ % STORE_SITES] = attribution_marks(m, block->stack)->site;
	list_remove(block);
}

/* A state by hand; where a class of PyTorch's steps, that has its state made in its own files, or by a class of the
 * program's that steps around it (Lookahead). */
static bool may_be_state(struct model *m, const struct loop *loop, const struct block *block,
			 const struct size_entry *size)
{
	uint32_t flags = attribution_marks(m, block->stack)->flags;
	bool is_plain = !loop->steps || flags & MARK_OPTIMIZER_FILE;
	return block->facts.is_zeros && size->parameters > 0 &&
	       ((is_plain && !size->states) || flags & MARK_STEP_METHOD);
}

static void settle_as_store(struct model *m, struct block *block)
{
	block->facts.kind = KIND_NONE;
	block_settle_as(m, block, LABEL_INPUT);
}

/* From nothing, when training had begun: what is trained on is there before. But the order of an epoch's rows is drawn
 * for each. */
static bool is_made_late(struct model *m, const struct block *block)
{
	const struct block_facts *facts = &block->facts;
	return facts->is_factory && !facts->is_copied_to && !facts->is_early &&
	       !(attribution_marks(m, block->stack)->native & MARK_DRAW);
}

/* Computed as data, such as the states of a replay memory, of which batches are made. */
static bool is_part(const struct block_facts *facts, const struct size_entry *size)
{
	return size->is_part && facts->kind == KIND_INPUT && !facts->is_factory;
}

void kept_age(struct model *m, struct loop *loop, struct block *block, bool after_call)
{
	const struct block_facts *facts = &block->facts;
	const struct size_entry *size = size_get(m, block_asked(block));
	uint64_t age = block_age(m, block);
	bool from_loader = facts->is_copied_to && facts->is_library && facts->is_early;
	if (from_loader && (age >= 2 || (after_call && loop->calls - facts->calls >= 2))) {
		become_parameter(m, block);
		return;
	}
	if (age >= 2 && facts->is_early && !facts->is_factory && !facts->is_copied_to &&
	    is_made_as_parameter(m, block)) {
		become_parameter(m, block);
		return;
	}
	if (age < 2 || block->bytes < SIGNIFICANT_BYTES)
		return;
	if (lacks_parameter(size) && !facts->is_zeros && !facts->is_clone && is_old_enough(loop, facts, age))
		become_parameter(m, block);
	else if (may_be_state(m, loop, block, size))
		block_settle_as(m, block, LABEL_STATE);
	else if (is_in_whole_graph(loop, block, age))
		join_graph(m, block);
	else if (age <= loop_age_of_kept(loop))
		return;
	else if (facts->is_joined || is_part(facts, size))
		list_remove(block);
	else if (is_store_from_copies(m, loop, block, size))
		keep_store(m, block);
	else if (!facts->is_copied_to && !facts->is_factory)
		keep(m, block, LABEL_OTHER);
	else if (facts->is_zeros && !is_store(block, size))
		keep(m, block, LABEL_OTHER);
	else if (is_made_late(m, block))
		keep(m, block, LABEL_OTHER);
	else
		list_remove(block);
}

/* Few, or no more than events have come since they were looked at: then the list costs an event next to nothing,
 * however long it is and however short are the calls. */
static bool is_worth_a_look(const struct model *m, const struct loop *loop)
{
	return loop->aged_count <= AGED_FREELY + AGED_EACH * (m->totals.events - loop->aged_at);
}

static void age_kept(struct model *m, struct loop *loop, bool after_call)
{
	struct block *next;
	struct loaded_look look;
	loaded_look(m, loop, &look);
	loop->aged_at = m->totals.events;
	loop->aged_count = 0;
	for (struct block *block = loop->kept.first; block; block = next) {
		next = block->facts.next;
		loop->aged_count++;
		if (block->facts.kind == KIND_PARAMETER)
			age_parameter(m, loop, block);
		else if (block->facts.kind == KIND_LOADED)
			age_loaded(m, loop, block, &look);
		else
			kept_age(m, loop, block, after_call);
	}
}

void long_lived_age(struct model *m, struct loop *loop, bool after_call)
{
	if (is_worth_a_look(m, loop))
		age_kept(m, loop, after_call);
	/* In order of birth. */
	while (loop->young.first && block_age(m, loop->young.first) > loop_age_of_kept(loop))
		if (loop->young.first->facts.is_joined || is_made_as_store(m, loop, loop->young.first))
			settle_as_store(m, loop->young.first);
		else
			keep(m, loop->young.first, LABEL_KEPT);
}
