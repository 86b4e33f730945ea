/* What the end of a phase decides about the blocks that live through it. Each list is emptied by the
 * end that it waits for, so a block is looked at a bounded number of times; the few long-lived blocks
 * of the program's own are looked at after every backward until they are old enough. */
#include "model/model_private.h"

/* ---------- long-lived blocks of the program ---------- */

/* There are gradients or states of that size, and no parameter for them. */
static bool lacks_parameter(const struct size_entry *size)
{
	return size->gradients_most > size->parameters || (size->states && !size->parameters);
}

static void become_parameter(struct model *m, struct block *block)
{
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

/* Made of one value in the constructor of a class of the program: a module, or only a buffer? */
static void age_parameter(struct model *m, struct loop *loop, struct block *block)
{
	if (block_age(m, block) < 2 || !loop->steps)
		return;
	if (size_get(m, block->bytes)->gradients_most || block->facts.is_copied_to) {
		list_remove(block);
		return;
	}
	size_add_parameter(m, block->bytes, -1);
	block->facts.kind = KIND_NONE;
	settle_as(m, block, LABEL_OTHER);
}

static void age_loaded(struct model *m, struct block *block)
{
	const struct size_entry *size = size_get(m, block->bytes);
	if (block_age(m, block) < 1)
		return;
	if (lacks_parameter(size))
		become_parameter(m, block);
	else
		settle_as(m, block, size->parameters ? LABEL_STATE : LABEL_OTHER);
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
	if (age < 2 || block->bytes < SIGNIFICANT_BYTES)
		return;
	if (lacks_parameter(size) && !facts->is_zeros && !facts->is_clone)
		become_parameter(m, block);
	else if (facts->is_zeros && size->parameters > 0)
		settle_as(m, block, LABEL_STATE);
	else if (age <= loop_age_of_kept(loop))
		return;
	else if (!facts->is_copied_to && (!facts->is_factory || facts->is_zeros))
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
			age_loaded(m, block);
		else
			age_kept(m, loop, block, after_call);
	}
	/* In order of birth. */
	while (loop->young.first && block_age(m, loop->young.first) > loop_age_of_kept(loop))
		settle_as(m, loop->young.first, LABEL_KEPT);
}

/* ---------- a call of a module ---------- */

static void leave_to_graph(struct model *m, struct loop *loop)
{
	struct call *call = model_new(m, sizeof *call);
	struct block *block;
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

/* What the program has made since the last step and still has: its data. */
void settle_data(struct model *m, struct loop *loop)
{
	struct block *block;
	loop->window_is_open = false;
	while ((block = list_pop(&loop->data))) {
		block->facts.kind = KIND_INPUT;
		list_push(&loop->kept, block);
		relabel(m, block, block->facts.is_clone ? LABEL_COPY : LABEL_INPUT);
	}
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

static void become_gradient(struct model *m, struct block *block)
{
	struct size_entry *size = size_get(m, block->bytes);
	uint32_t stamp = m->attribution->stamp;
	if (size->stamp != stamp) {
		size->stamp = stamp;
		size->counted = size->predicted = 0;
	}
	size->gradients++;
	size->counted++;
	if (size->counted > size->gradients_most)
		size->gradients_most = size->counted;
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
	age_all(m, loop, false);
}

/* ---------- what is as it is when a report is made ---------- */

/* Far older than an iteration, and made inside a module: something holds its graph. */
static void settle_old(struct model *m, struct block *block)
{
	const struct block_facts *facts = &block->facts;
	const struct loop *loop = &m->attribution->loops[facts->loop];
	bool is_open = facts->label == LABEL_FORWARD || facts->label == LABEL_OUTLIVED;
	if (is_open && block_age(m, block) > loop_age_of_kept(loop))
		relabel(m, block, LABEL_RETAINED);
}

void settle_for_report(struct model *m)
{
	if (m->attribution->has_trained)
		for (struct block *block = m->blocks; block; block = block->hh.next)
			settle_old(m, block);
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
