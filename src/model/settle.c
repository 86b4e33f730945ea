/* What the end of a phase decides about the blocks that live through it. Each list is emptied by the
 * end that it waits for, so a block is looked at a bounded number of times; the few long-lived blocks
 * of the program's own are looked at after every backward until they are old enough. */
#include "model/model_private.h"

#define GRAPH_COUNT 4 /* fewer blocks are no graph */

/* ---------- long-lived blocks of the program ---------- */

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
	size_add_parameter(m, block->bytes, 1);
	block->facts.kind = KIND_PARAMETER;
	relabel(m, block, LABEL_PARAMETER);
}

static void settle_as(struct model *m, struct block *block, enum label label)
{
	list_remove(block);
	relabel(m, block, label);
}

/* Nothing trained has its size: it holds data. */
static bool is_store(const struct block *block, const struct size_entry *size)
{
	return block->facts.is_factory && !size->states && !size->gradients_most;
}

bool block_is_cache(const struct model *m, const struct block *block)
{
	const struct block_facts *facts = &block->facts;
	return !m->attribution->has_trained && facts->is_zeros && !facts->is_copied_to &&
	       context_is_users(facts->context) && block->bytes >= SIGNIFICANT_BYTES &&
	       m->attribution->loops[facts->loop].calls - facts->calls >= 2;
}

/* Made of one value, or copied, in the constructor of a class of the program: a module, or not? */
static void age_parameter(struct model *m, struct loop *loop, struct block *block)
{
	if (block_age(m, block) < 2 || !loop->steps)
		return;
	const struct size_entry *size = size_get(m, block->bytes);
	int32_t enough = block->facts.is_clone ? size->parameters : 1;
	if (size->gradients_most >= enough || block->facts.is_copied_to) {
		settle_as(m, block, LABEL_PARAMETER);
		return;
	}
	size_add_parameter(m, block->bytes, -1);
	block->facts.kind = KIND_NONE;
	if (is_store(block, size_get(m, block->bytes)))
		settle_as(m, block, LABEL_INPUT);
	else
		settle_as(m, block, block->facts.is_clone ? LABEL_COPY : LABEL_OTHER);
}

/* The optimizer has made a state of its own; or one set of the weights was loaded, before there was a model. */
static bool is_spare(const struct block *block, const struct size_entry *size)
{
	return size->states || (block->facts.is_before_model && size->loaded <= size->parameters);
}

static void settle_loaded(struct model *m, struct block *block)
{
	const struct size_entry *size = size_get(m, block->bytes);
	if (lacks_parameter(size))
		become_parameter(m, block);
	else if (is_spare(block, size))
		settle_as(m, block, LABEL_COPY);
	else
		settle_as(m, block, size->parameters ? LABEL_STATE : LABEL_OTHER);
}

/* The first step of an optimizer shows whether it has a state already. */
static void age_loaded(struct model *m, struct loop *loop, struct block *block)
{
	uint64_t age = block_age(m, block);
	if (age >= 2 || (age && (loop->steps || lacks_parameter(size_get(m, block->bytes)))))
		settle_loaded(m, block);
}

/* The program keeps it: and what else it makes there. */
static void keep(struct model *m, struct block *block, enum label label)
{
	size_get(m, block->bytes)->keeper = attribution_marks(m, block->stack)->site;
	settle_as(m, block, label);
}

bool is_made_to_keep(struct model *m, const struct block *block)
{
	const struct size_entry *size = size_find(m, block->bytes);
	return size && size->keeper && !block->facts.is_copied_to && !block->facts.is_factory &&
	       size->keeper == attribution_marks(m, block->stack)->site;
}

bool is_made_for_graph(struct model *m, const struct block *block)
{
	const struct size_entry *size = size_find(m, block->bytes);
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
	size_get(m, block->bytes)->joiner = attribution_marks(m, block->stack)->site;
	settle_as(m, block, LABEL_RETAINED);
}

static void age_kept(struct model *m, struct loop *loop, struct block *block, bool after_call)
{
	const struct block_facts *facts = &block->facts;
	const struct size_entry *size = size_get(m, block->bytes);
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
	if (lacks_parameter(size) && !facts->is_zeros && !facts->is_clone)
		become_parameter(m, block);
	else if (facts->is_zeros && size->parameters > 0 && !size->states)
		settle_as(m, block, LABEL_STATE);
	else if (is_in_whole_graph(loop, block, age))
		join_graph(m, block);
	else if (age <= loop_age_of_kept(loop))
		return;
	else if (!facts->is_copied_to && !facts->is_factory)
		keep(m, block, LABEL_OTHER);
	else if (facts->is_zeros && !is_store(block, size))
		settle_as(m, block, LABEL_OTHER);
	else
		list_remove(block);
}

static void age_all(struct model *m, struct loop *loop, bool after_call)
{
	struct block *next;
	for (struct block *block = loop->kept.first; block; block = next) {
		next = block->facts.next;
		if (block->facts.kind == KIND_PARAMETER)
			age_parameter(m, loop, block);
		else if (block->facts.kind == KIND_LOADED)
			age_loaded(m, loop, block);
		else
			age_kept(m, loop, block, after_call);
	}
	/* In order of birth. */
	while (loop->young.first && block_age(m, loop->young.first) > loop_age_of_kept(loop))
		keep(m, loop->young.first, LABEL_KEPT);
}

/* ---------- a call of a module ---------- */

void settle_graph(struct model *m, struct call *call)
{
	tombstones_settle(m, &call->tombstones, call->is_used ? LABEL_COUNT : LABEL_DROPPED);
	arena_free(m->arena, call, sizeof *call);
}

void settle_recent(struct model *m, struct loop *loop, bool is_dropped)
{
	struct call *call = loop->recent;
	loop->recent = NULL;
	if (call)
		call->is_used |= !is_dropped;
	if (call && !call->left)
		settle_graph(m, call);
}

static void leave_to_graph(struct model *m, struct loop *loop)
{
	struct call *call = model_new(m, sizeof *call);
	struct block *block;
	loop->recent = call;
	while (call && (block = list_pop(&loop->call))) {
		block->facts.call = call;
		call->left++;
	}
}

static void leave_without_grad(struct loop *loop)
{
	struct block *block;
	while ((block = list_pop(&loop->call))) {
		block->facts.is_no_grad = true;
		list_push(&loop->no_grad, block);
	}
}

static void outlive(struct model *m, struct block *block)
{
	if (block->facts.label == LABEL_FORWARD)
		relabel(m, block, LABEL_OUTLIVED);
}

static void outlive_all(struct model *m, struct loop *loop)
{
	struct block *block;
	if (!m->attribution->has_trained)
		for (block = loop->call.first; block; block = block->facts.next)
			outlive(m, block);
	while ((block = list_pop(&loop->fresh))) {
		if (!m->attribution->has_trained)
			outlive(m, block);
		list_push(&loop->young, block);
	}
}

static uint32_t count_left(const struct block_list *list, uint32_t enough)
{
	uint32_t count = 0;
	for (const struct block *block = list->first; block && count < enough; block = block->facts.next)
		count++;
	return count;
}

/* Of many blocks next to none are left: it ran without grad. Otherwise a graph holds them. */
void settle_call(struct model *m, struct loop *loop)
{
	uint32_t made = loop->call_count, left = count_left(&loop->call, made / 4 + 4);
	outlive_all(m, loop);
	settle_recent(m, loop, true);
	if (made >= 4 && (left <= 1 || (left <= 3 && made >= 20)))
		leave_without_grad(loop);
	else if (left >= 2 && left * 4 >= made)
		leave_to_graph(m, loop);
	while (list_pop(&loop->call))
		continue;
	loop->call_count = 0;
	loop->calls++;
	while (m->attribution->has_trained && loop->no_grad.first &&
	       loop->calls - loop->no_grad.first->facts.calls >= 4)
		settle_as(m, loop->no_grad.first, LABEL_NO_GRAD);
	if (loop->is_setting_up && loop->calls >= 2)
		age_all(m, loop, true);
}

static void settle_datum(struct model *m, struct loop *loop, struct block *block)
{
	enum label label = is_made_to_keep(m, block)   ? LABEL_KEPT :
			   is_made_for_graph(m, block) ? LABEL_FORWARD :
							 LABEL_INPUT;
	list_remove(block);
	block->facts.kind = label == LABEL_INPUT ? KIND_INPUT : KIND_FORWARD;
	list_push(label == LABEL_INPUT ? &loop->kept : &loop->young, block);
	relabel(m, block, label);
}

/* What the program has made since the last step and still has: its data. */
void settle_data(struct model *m, struct loop *loop)
{
	loop->window_is_open = false;
	while (loop->data.first)
		settle_datum(m, loop, loop->data.first);
}

static void settle_old_datum(struct model *m, struct loop *loop, struct block *block)
{
	settle_datum(m, loop, block);
	if (block->facts.kind == KIND_INPUT)
		age_kept(m, loop, block, false);
}

/* Without modules nothing closes the window. */
static void settle_old_data(struct model *m, struct loop *loop)
{
	struct block *first;
	while ((first = loop->data.first) &&
	       block_age(m, first) >= (first->facts.is_early ? 2 : loop_age_of_kept(loop)))
		settle_old_datum(m, loop, first);
}

/* ---------- a backward ---------- */

static struct loop *other_in_backward(struct model *m, const struct loop *loop, uint8_t slot)
{
	struct attribution *a = m->attribution;
	for (unsigned i = 0; i < a->loop_count; i++)
		if (&a->loops[i] != loop && a->loops[i].in_backward && a->loops[i].devices >> (slot & 63) & 1)
			return &a->loops[i];
	return NULL;
}

struct size_entry *count_gradient(struct model *m, uint64_t bytes)
{
	struct size_entry *size = size_get(m, bytes);
	uint32_t stamp = m->attribution->stamp;
	if (size->stamp != stamp) {
		size->stamp = stamp;
		size->counted = size->predicted = 0;
	}
	size->counted++;
	if (size->counted > size->gradients_most)
		size->gradients_most = size->counted;
	return size;
}

static void become_gradient(struct model *m, struct block *block)
{
	count_gradient(m, block->bytes)->gradients++;
	relabel(m, block, LABEL_GRADIENT);
}

/* What is alive when a backward has ended is a gradient. While two loops are in backward on one
 * device nobody knows whose a block is: the later end decides. */
void settle_backward(struct model *m, struct loop *loop)
{
	struct block *block;
	while ((block = list_pop(&loop->passing))) {
		struct loop *other = block->facts.is_shared ? other_in_backward(m, loop, block->slot) : NULL;
		block->facts.is_shared = false;
		if (other)
			list_push(&other->passing, block);
		else
			become_gradient(m, block);
	}
	while ((block = list_pop(&loop->fresh)))
		list_push(&loop->young, block);
	bool is_whole = !loop->took && loop->young_count >= GRAPH_COUNT;
	loop->whole_backwards = is_whole ? loop->whole_backwards + 1 : 0;
	settle_old_data(m, loop);
	age_all(m, loop, false);
	loop->old_count += loop->young_count;
	loop->young_count = 0;
}

/* ---------- what is as it is when a report is made ---------- */

/* Far older than an iteration, and made inside a module: something holds its graph. */
static void settle_old(struct model *m, struct block *block)
{
	const struct block_facts *facts = &block->facts;
	const struct loop *loop = &m->attribution->loops[facts->loop];
	bool is_open = facts->label == LABEL_FORWARD || facts->label == LABEL_OUTLIVED;
	if (facts->kind == KIND_LOADED && facts->label == LABEL_LOADED && block_age(m, block)) {
		settle_loaded(m, block);
		return;
	}
	if (is_open && block_age(m, block) > loop_age_of_kept(loop))
		relabel(m, block, LABEL_RETAINED);
	else if ((is_open || facts->label == LABEL_USER || (facts->kind == KIND_INPUT && block_age(m, block))) &&
		 is_made_to_keep(m, block))
		relabel(m, block, LABEL_KEPT);
}

static void settle_caches(struct model *m, const struct loop *loop)
{
	for (struct block *block = loop->kept.first; block; block = block->facts.next)
		if (block_is_cache(m, block))
			relabel(m, block, LABEL_KEPT);
}

void settle_for_report(struct model *m)
{
	struct block *block;
	if (m->attribution->has_trained)
		for (size_t place = 0; (block = blocks_next(&m->blocks, &place));)
			settle_old(m, block);
	for (unsigned i = 0; i < m->attribution->loop_count; i++)
		settle_recent(m, &m->attribution->loops[i], true);
	for (unsigned i = 0; i < m->attribution->loop_count; i++)
		settle_caches(m, &m->attribution->loops[i]);
}

/* ---------- a step ---------- */

void settle_step(struct model *m, struct loop *loop, struct stepper *stepper)
{
	struct block *block;
	(void)loop;
	while ((block = list_pop(&stepper->blocks))) {
		size_get(m, block->bytes)->states++;
		relabel(m, block, LABEL_STATE);
	}
}
