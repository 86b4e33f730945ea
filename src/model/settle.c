/* What the end of a phase decides about the blocks that live through it. Each list is emptied by the
 * end that it waits for, so a block is looked at a bounded number of times. What lives for longer stands in
 * long_lived.c. */
#include "model/model_private.h"

#define FEW_OF 6 /* one of so many blocks is left, at most: no graph holds them */

/* ---------- a call of a module ---------- */

static void settle_graph(struct model *m, struct call *call)
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

/* What was held of a pass after a backward of another one. A backward that took nothing may have been of this pass. */
static bool is_held(const struct model *m, const struct block *block)
{
	return block->facts.label == LABEL_HELD && block->facts.born > m->attribution->loops[block->facts.loop].whole_end;
}

/* What a line of the program makes and lets go of before a module has run again, while the graph is there, it needed
 * for itself. */
static bool is_of_line(struct model *m, const struct block *block, const struct event *e)
{
	uint32_t line = attribution_marks(m, block->stack)->places[0].line;
	return context_is_users(block->facts.context) && line && attribution_marks(m, e->stack)->places[0].line == line &&
	       m->attribution->loops[block->facts.loop].calls == block->facts.calls && block->facts.call->left > 1;
}

/* A graph that is dropped without a backward held activations; until it is known what became of it, those of its blocks
 * that went count as temporary, or as held by the program. A batch from the host that followed it is of the next pass. */
void settle_freed(struct model *m, struct block *block, const struct event *e, bool by_backward)
{
	struct call *call = block->facts.call;
	if (!call)
		return;
	call->is_used |= by_backward && !block->facts.is_copied_to;
	if (call->is_used)
		tombstones_settle(m, &call->tombstones, LABEL_COUNT);
	else if ((block->facts.label == LABEL_TEMPORARY && !is_of_line(m, block, e)) ||
		 block->facts.label == LABEL_FREED_LATER || is_held(m, block))
		tombstone_add(m, &call->tombstones, block, e->sequence);
	if (!--call->left && m->attribution->loops[block->facts.loop].recent != call)
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

static void leave_without_grad(struct loop *loop, uint32_t calls)
{
	struct block *block;
	loop->calls += calls - 1;
	while ((block = list_pop(&loop->call))) {
		block->facts.is_no_grad = true;
		block->facts.calls = loop->calls;
		block->facts.is_in_row = calls > 1;
		list_push(&loop->no_grad, block);
	}
}

/* Several outputs, such as features of each stage. */
static void leave_few(struct loop *loop)
{
	for (struct block *block = loop->call.first; block; block = block->facts.next)
		block->facts.is_no_grad = true;
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

static bool is_without_grad(uint32_t made, uint32_t left)
{
	return made >= 4 && (left <= 1 || (left <= 2 && made >= 12) || (left <= 3 && made >= 20));
}

/* Each of them makes as many blocks. Within one a layer like the first may come again, but not so. */
static uint32_t calls_in_row(const struct loop *loop)
{
	uint32_t calls = loop->call_again + 1;
	return loop->call_count == calls * loop->call_period ? calls : 1;
}

/* Of many blocks next to none are left: it ran without grad. Otherwise a graph holds them. */
void settle_call(struct model *m, struct loop *loop)
{
	uint32_t made = loop->call_count, left = count_left(&loop->call, made / 4 + 4);
	uint32_t calls = loop->call_keeps ? 1 : calls_in_row(loop);
	outlive_all(m, loop);
	settle_recent(m, loop, true);
	if (is_without_grad(made, left) || (left >= calls && is_without_grad(made / calls, (left + calls - 1) / calls)))
		leave_without_grad(loop, left < calls ? 1 : calls);
	else if (left >= 2 && left * 4 >= made)
		leave_to_graph(m, loop);
	else if (made >= FEW_OF * left && !loop->call_keeps)
		leave_few(loop);
	while (list_pop(&loop->call))
		continue;
	loop->call_count = loop->call_again = loop->call_period = 0;
	loop->call_keeps = false;
	loop->calls++;
	while (m->attribution->has_trained && loop->no_grad.first &&
	       loop->calls - loop->no_grad.first->facts.calls >= 4)
		block_settle_as(m, loop->no_grad.first, LABEL_NO_GRAD);
	if (loop->is_setting_up && loop->calls >= 2)
		long_lived_age(m, loop, true);
}

/* `module(x / 255)`: it has no name, and only a graph can hold it. */
static bool is_argument(struct model *m, const struct block *block, const struct stack_marks *of_call)
{
	uint32_t line = attribution_marks(m, block->stack)->places[0].line;
	for (unsigned i = 0; line && i < MARKS_PLACES; i++)
		if (of_call->places[i].line == line)
			return true;
	return false;
}

static void note_site(struct model *m, const struct block *block)
{
	struct size_entry *size = size_get(m, block_asked(block));
	*(block->facts.is_argument ? &size->argument_site : &size->data_site) =
		attribution_marks(m, block->stack)->site;
}

static void settle_datum(struct model *m, struct loop *loop, struct block *block)
{
	enum label label = block->facts.is_flat	       ? LABEL_GRADIENT :
			   is_made_to_keep(m, block)   ? LABEL_KEPT :
			   is_made_for_graph(m, block) ? LABEL_FORWARD :
							 LABEL_INPUT;
	if (label == LABEL_INPUT)
		note_site(m, block);
	loop->late_data += label == LABEL_INPUT && !block->facts.is_early && block->bytes >= SIGNIFICANT_BYTES;
	list_remove(block);
	block->facts.kind = label == LABEL_INPUT ? KIND_INPUT : label == LABEL_GRADIENT ? KIND_NONE : KIND_FORWARD;
	if (label != LABEL_GRADIENT)
		list_push(label == LABEL_INPUT ? &loop->kept : &loop->young, block);
	relabel(m, block, label);
}

/* What the program has made since the last step and still has: its data. */
void settle_data(struct model *m, struct loop *loop, const struct stack_marks *of_call)
{
	struct block *block;
	loop->window_is_open = false;
	while ((block = loop->data.first)) {
		block->facts.is_argument = is_argument(m, block, of_call);
		settle_datum(m, loop, block);
	}
}

static void settle_old_datum(struct model *m, struct loop *loop, struct block *block)
{
	settle_datum(m, loop, block);
	if (block->facts.kind == KIND_INPUT)
		kept_age(m, loop, block, false);
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

static void become_gradient(struct model *m, const struct loop *loop, struct block *block)
{
	count_gradient(m, block_asked(block))->gradients++;
	relabel(m, block, LABEL_GRADIENT);
	long_lived_miss(m, loop, block);
}

struct left { /* by a backward */
	uint32_t fitting, others; /* as large as a parameter, and not */
};

static bool is_as_parameter(const struct model *m, const struct block *block)
{
	const struct size_entry *size = size_find(m, block_asked(block));
	return size && size->parameters > 0;
}

static struct left count_what_is_left(const struct model *m, const struct block_list *passing)
{
	struct left left = {0};
	for (const struct block *block = passing->first; block; block = block->facts.next)
		*(is_as_parameter(m, block) ? &left.fitting : &left.others) += 1;
	return left;
}

/* With create_graph a backward leaves not only its graph and the gradients, as many as others do, but also what those
 * are differentiated with. */
static bool is_of_second_order(struct loop *loop, const struct left *left, bool is_whole)
{
	if (!is_whole && left->fitting > loop->gradients_most)
		loop->gradients_most = left->fitting;
	return is_whole && left->others >= GRAPH_COUNT && loop->gradients_most &&
	       left->fitting * 4ull >= loop->gradients_most * 3ull;
}

static void settle_remaining(struct model *m, struct loop *loop, struct block *block, bool is_second_order)
{
	block->facts.is_gradient = is_second_order || loop->took;
	if (is_second_order && !is_as_parameter(m, block)) {
		block->facts.kind = KIND_NONE;
		relabel(m, block, LABEL_ACTIVATION);
	} else {
		become_gradient(m, loop, block);
	}
}

/* What is alive when a backward has ended is a gradient. While two loops are in backward on one
 * device nobody knows whose a block is: the later end decides. */
static void settle_passing(struct model *m, struct loop *loop, bool is_whole)
{
	struct block *block;
	uint64_t bytes = 0, count = 0;
	struct left left = count_what_is_left(m, &loop->passing);
	bool is_second_order = is_of_second_order(loop, &left, is_whole);
	while ((block = list_pop(&loop->passing))) {
		struct loop *other = block->facts.is_shared ? other_in_backward(m, loop, block->slot) : NULL;
		block->facts.is_shared = false;
		if (other) {
			list_push(&other->passing, block);
			continue;
		}
		settle_remaining(m, loop, block, is_second_order);
		bytes += block->asked_bytes;
		count++;
	}
	if (count > 1)
		loop->gradient_bytes = bytes;
}

void settle_backward(struct model *m, struct loop *loop)
{
	struct block *block;
	bool is_whole = !loop->took && loop->young_count >= GRAPH_COUNT;
	settle_passing(m, loop, is_whole);
	if (!loop->took)
		loop->whole_end = loop->backward_end;
	while ((block = list_pop(&loop->fresh)))
		list_push(&loop->young, block);
	loop->whole_backwards = is_whole ? loop->whole_backwards + 1 : 0;
	settle_old_data(m, loop);
	long_lived_age(m, loop, false);
	loop->old_count += loop->young_count;
	loop->young_count = 0;
}

/* ---------- a step ---------- */

void settle_step(struct model *m, struct loop *loop, struct stepper *stepper)
{
	struct block *block;
	(void)loop;
	while ((block = list_pop(&stepper->blocks))) {
		size_get(m, block_asked(block))->states++;
		relabel(m, block, LABEL_STATE);
	}
}
