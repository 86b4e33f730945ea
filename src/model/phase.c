/* The phase machine: which loop an event belongs to, and when forward, backward and step begin and
 * end. Owns struct loop. A loop is a thread that trains; autograd's engine threads work for the loop
 * that is in backward on their device. Backward begins at an allocation of an engine thread, or at
 * any event of another thread inside backward: never at a free of the engine, which still takes the
 * graph apart when the call has returned. */
#include "model/model_private.h"

#define LOOP_NONE UINT8_MAX
#define IDLE_EVENTS 4096 /* after which a thread that was inside a module has lost its loop */

/* ---------- lists ---------- */

void list_push(struct block_list *list, struct block *block)
{
	struct block_facts *facts = &block->facts;
	facts->list = list;
	facts->before = list->last;
	facts->next = NULL;
	if (list->last)
		list->last->facts.next = block;
	else
		list->first = block;
	list->last = block;
}

void list_remove(struct block *block)
{
	struct block_facts *facts = &block->facts;
	struct block_list *list = facts->list;
	if (!list)
		return;
	if (facts->before)
		facts->before->facts.next = facts->next;
	else
		list->first = facts->next;
	if (facts->next)
		facts->next->facts.before = facts->before;
	else
		list->last = facts->before;
	facts->list = NULL;
	facts->before = facts->next = NULL;
}

struct block *list_pop(struct block_list *list)
{
	struct block *block = list->first;
	if (block)
		list_remove(block);
	return block;
}

/* ---------- which loop ---------- */

uint64_t loop_backwards_a_step(const struct loop *loop)
{
	uint64_t rounded = loop->steps ? (loop->backwards + loop->steps / 2) / loop->steps : 1;
	return rounded ? rounded : 1;
}

uint64_t loop_age_of_kept(const struct loop *loop)
{
	return loop->steps || loop->backwards >= 8 ? 2 * loop_backwards_a_step(loop) + 1 : 9;
}

static struct loop *loop_begin(struct attribution *a)
{
	struct loop *loop = &a->loops[a->loop_count++];
	loop->is_used = loop->window_is_open = loop->is_setting_up = true;
	return loop;
}

/* A new one, or that whose thread has been silent for longest. */
static struct loop *loop_for_trainer(struct attribution *a)
{
	struct loop *oldest = &a->loops[0];
	if (a->loop_count < LOOPS_MAX)
		return loop_begin(a);
	for (unsigned i = 1; i < LOOPS_MAX; i++)
		if (a->loops[i].last < oldest->last)
			oldest = &a->loops[i];
	return oldest;
}

static struct loop *loop_of_device(struct attribution *a, uint8_t slot)
{
	struct loop *found = &a->loops[a->loop_of_slot[slot]], *latest = NULL;
	if (a->loop_count == 1 || found->in_backward)
		return found;
	for (unsigned i = 0; i < a->loop_count; i++)
		if (a->loops[i].in_backward && a->loops[i].devices >> slot & 1 &&
		    (!latest || a->loops[i].last > latest->last))
			latest = &a->loops[i];
	return latest ? latest : found;
}

static bool is_training(const struct moment_facts *facts)
{
	return facts->is_backward || facts->marks->flags & MARK_FLAG(MARK_OPTIMIZER);
}

static bool is_of_main(const struct loop *loop, const struct event *e)
{
	return !loop->main || loop->main == e->thread;
}

static bool may_take_over(const struct loop *loop, const struct event *e)
{
	bool is_idle = !loop->in_forward || e->sequence > loop->last + IDLE_EVENTS;
	return is_of_main(loop, e) || (!loop->trains && is_idle);
}

/* The loop that the event's thread leads from now on, or the one it works for. */
static struct loop *claim(struct model *m, struct thread *thread, struct loop *loop, const struct event *e,
			  const struct moment_facts *facts)
{
	struct attribution *a = m->attribution;
	if (!may_take_over(loop, e)) {
		if (!is_training(facts))
			return loop;
		loop = loop_for_trainer(a);
	}
	loop->main = e->thread;
	loop->last = e->sequence;
	loop->trains |= is_training(facts);
	thread->loop = (uint8_t)(loop - a->loops + 1);
	return loop;
}

static bool leads(const struct moment_facts *facts)
{
	const struct stack_marks *marks = facts->marks;
	/* A Function of the program's has a frame of its own also in a forward pass, up to PyTorch 2.8. */
	bool is_forward = marks->context == MARK_FORWARD ||
			  (marks->context == MARK_FUNCTION && facts_have(facts, MARK_FORWARD));
	return marks->flags & MARK_IS_PYTHON &&
	       (is_forward || marks->context == MARK_OPTIMIZER || facts->is_backward);
}

static struct loop *find_loop(struct model *m, const struct event *e, const struct moment_facts *facts)
{
	struct attribution *a = m->attribution;
	struct thread *thread = thread_of(m, e->thread);
	uint8_t slot = device_slot(e->device);
	if (slot >= SLOT_COUNT)
		slot = SLOT_UNKNOWN;
	struct loop *loop = thread->loop && !facts->is_engine ? &a->loops[thread->loop - 1] :
								loop_of_device(a, slot);
	if (facts->is_engine)
		return loop;
	if (leads(facts))
		loop = claim(m, thread, loop, e, facts);
	if (loop->main == e->thread) {
		loop->last = e->sequence;
		a->loop_of_slot[slot] = (uint8_t)(loop - a->loops);
	}
	loop->devices |= slot < 64 ? 1ull << slot : 0;
	return loop;
}

/* ---------- the phases of a loop ---------- */

static void end_forward(struct model *m, struct loop *loop)
{
	if (!loop->in_forward)
		return;
	loop->in_forward = false;
	loop->passes++;
	m->attribution->forwards++;
	settle_call(m, loop);
}

static void count_passes(struct loop *loop)
{
	if (loop->passes && (!loop->passes_least || loop->passes < loop->passes_least))
		loop->passes_least = loop->passes;
	loop->passes = 0;
}

static void begin_backward(struct model *m, struct loop *loop, const struct event *e)
{
	struct attribution *a = m->attribution;
	step_take_tail(m, loop);
	step_note_moment(m, loop, MODEL_AFTER_FORWARD, e);
	loop->in_backward = true;
	loop->by_grad = loop->took = false;
	a->has_trained = true;
	a->stamp++;
	end_forward(m, loop);
	count_passes(loop);
	settle_recent(m, loop, false);
}

static void end_backward(struct model *m, struct loop *loop, const struct event *e)
{
	step_note_moment(m, loop, MODEL_AFTER_BACKWARD, e);
	loop->in_backward = false;
	loop->backward_end = e->sequence;
	loop->backwards++;
	m->attribution->backwards++;
	loop->window_is_open |= !loop->by_grad;
	loop->fills_gradients |= !loop->by_grad;
	settle_backward(m, loop);
}

static struct stepper *stepper_of(struct model *m, struct thread *thread)
{
	if (!thread->stepper)
		thread->stepper = model_new(m, sizeof *thread->stepper);
	return thread->stepper;
}

static void end_step(struct model *m, struct loop *loop, struct stepper *stepper, const struct event *e)
{
	stepper->is_stepping = false;
	step_note_moment(m, loop, MODEL_AFTER_OPTIMIZER, e);
	loop->steps++;
	m->attribution->step_count++;
	loop->window_is_open = true;
	settle_step(m, loop, stepper);
	step_end(m, loop, e);
	if (m->attribution->step_observer)
		m->attribution->step_observer->ended(m->attribution->step_observer, e->sequence);
}

/* An optimizer that is called as soon as there is a gradient: what the engine does next may be in the next backward. */
static void end_engine_step(struct model *m, struct loop *loop, const struct event *e)
{
	struct stepper *stepper = loop->stepping < m->thread_capacity ? m->threads[loop->stepping].stepper : NULL;
	if (loop->stepping && stepper && stepper->is_stepping)
		end_step(m, loop, stepper, e);
	loop->stepping = 0;
}

static void note_backward(struct model *m, const struct event *e, const struct moment_facts *facts)
{
	struct loop *loop = facts->loop;
	if (!facts->is_backward) {
		if (loop->in_backward && is_of_main(loop, e)) {
			end_engine_step(m, loop, e);
			end_backward(m, loop, e);
		}
		return;
	}
	if (!loop->in_backward && (e->what == MEMTRACE_BLOCK_ALLOC || !facts->is_engine))
		begin_backward(m, loop, e);
	if (facts->marks->flags & MARK_FLAG(MARK_GRAD_CALL) && !facts->is_engine)
		loop->by_grad = true;
}

/* The optimizer that an event names, 0 none. */
static uint64_t optimizer_of(const struct event *e)
{
	return e->what == MEMTRACE_PHASE ? e->address : 0;
}

static bool is_same_optimizer(const struct stepper *stepper, const struct stack_marks *marks, uint64_t optimizer)
{
	if (stepper->optimizer) /* a trace tells of every other one: functions named "step" do not matter */
		return !optimizer || stepper->optimizer == optimizer;
	return !stepper->class || !marks->step_class || stepper->class == marks->step_class;
}

/* Two optimizers in a row, with nothing between their steps, are told apart by who calls them, and by what they
 * are, or by their classes where that is not known. */
static void note_step(struct model *m, const struct event *e, const struct moment_facts *facts)
{
	struct thread *thread = thread_of(m, e->thread);
	bool is_stepping = facts->marks->flags & MARK_FLAG(MARK_OPTIMIZER);
	struct stepper *stepper = is_stepping ? stepper_of(m, thread) : thread->stepper;
	if (!stepper)
		return;
	if (stepper->is_stepping && (!is_stepping || stepper->site != facts->marks->step_site ||
				     !is_same_optimizer(stepper, facts->marks, optimizer_of(e))))
		end_step(m, facts->loop, stepper, e);
	if (is_stepping) {
		stepper->class = stepper->is_stepping && !facts->marks->step_class ? stepper->class :
										     facts->marks->step_class;
		stepper->is_stepping = true;
		facts->loop->stepping = facts->is_engine ? e->thread : facts->loop->stepping;
		stepper->site = facts->marks->step_site;
		stepper->optimizer = optimizer_of(e) ? optimizer_of(e) : stepper->optimizer;
	}
}

static void note_forward(struct model *m, const struct event *e, const struct moment_facts *facts)
{
	struct loop *loop = facts->loop;
	uint32_t flags = facts->marks->flags;
	if (facts->is_backward || loop->main != e->thread ||
	    (flags & MARK_FLAG(MARK_OPTIMIZER) && !(flags & MARK_FLAG(MARK_CLOSURE))))
		return;
	if (!(flags & MARK_FLAG(MARK_FORWARD))) {
		if (loop->in_forward)
			step_begin_tail(loop, e->sequence);
		end_forward(m, loop);
		return;
	}
	if (loop->window_is_open)
		settle_data(m, loop, facts->marks);
	if (!loop->in_forward) {
		step_drop_tail(loop);
		loop->call_begin = e->sequence;
	}
	loop->in_forward = true;
	loop->is_setting_up &= !m->attribution->has_trained;
}

static bool has_place(const struct stack_marks *marks, uint32_t function)
{
	for (unsigned i = 0; i < MARKS_PLACES; i++)
		if (marks->places[i].function == function)
			return true;
	return false;
}

struct place_seen *place_of_function(struct attribution *a, uint32_t function)
{
	for (uint32_t i = 0; i < PLACES_TRIED; i++) {
		struct place_seen *place = &a->places[(function + i) % PLACES_SEEN];
		if (!place->function || place->function == function)
			return place;
	}
	return &a->places[function % PLACES_SEEN];
}

static void set_place(struct attribution *a, const struct code_place *place, const struct event *e)
{
	struct place_seen *seen = place_of_function(a, place->function);
	if (seen->function != place->function || seen->line != place->line)
		*seen = (struct place_seen){place->function, place->line, e->sequence};
}

/* Where the functions of the program on the stack are; those that were on it and are no more have been left. */
static void note_places(struct attribution *a, const struct event *e, const struct stack_marks *marks)
{
	for (unsigned i = 0; i < MARKS_PLACES && a->entered[i]; i++)
		if (!has_place(marks, a->entered[i]))
			set_place(a, &(struct code_place){.function = a->entered[i]}, e);
	for (unsigned i = 0; i < MARKS_PLACES; i++)
		a->entered[i] = marks->places[i].function;
	for (unsigned i = 0; i < MARKS_PLACES && marks->places[i].line; i++)
		set_place(a, &marks->places[i], e);
}

void phase_note(struct model *m, const struct event *e, struct moment_facts *facts)
{
	struct attribution *a = m->attribution;
	if (!a->loop_count)
		loop_begin(a);
	facts->marks = attribution_marks(m, e->stack);
	if (!a->has_trained && facts->marks->places[0].line)
		note_places(a, e, facts->marks);
	facts->is_engine = attribution_is_engine(m, e->thread) || facts->marks->native & MARK_ENGINE;
	facts->is_backward = facts->is_engine || facts->marks->flags & MARK_FLAG(MARK_BACKWARD) ||
			     facts->marks->context == MARK_BACKWARD_CALL ||
			     facts->marks->context == MARK_GRAD_CALL;
	facts->loop = find_loop(m, e, facts);
	facts->is_main = facts->loop->main == e->thread;
	note_backward(m, e, facts);
	note_step(m, e, facts);
	note_forward(m, e, facts);
}

enum model_phase phase_of(const struct model *m, const struct loop *loop, uint32_t thread)
{
	const struct stepper *own = m->threads[thread].stepper;
	const struct stepper *main = loop->main < m->thread_capacity ? m->threads[loop->main].stepper : NULL;
	if ((own && own->is_stepping) || (main && main->is_stepping))
		return MODEL_PHASE_OPTIMIZER;
	if (loop->in_backward)
		return MODEL_PHASE_BACKWARD;
	return loop->in_forward ? MODEL_PHASE_FORWARD : MODEL_PHASE_OTHER;
}
