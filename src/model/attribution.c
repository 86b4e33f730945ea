/* The door of the attribution: what blocks, copies and phase events are brought to, and what is told
 * of categories. Owns the marks of stacks, each worked out once. Must never let an event of a program
 * that is not PyTorch's start a phase. */
#include <string.h>

#include "model/model_private.h"

int attribution_init(struct model *m)
{
	m->attribution = model_new(m, sizeof *m->attribution);
	return m->attribution ? 0 : -1;
}

/* ---------- what is known of stacks and threads ---------- */

const struct stack_marks *attribution_marks(struct model *m, uint32_t stack)
{
	static const struct stack_marks nothing;
	struct attribution *a = m->attribution;
	if (stack >= a->marks_capacity && model_grow(m, &a->marks, &a->marks_capacity, stack, sizeof *a->marks))
		return &nothing;
	struct known_marks *known = &a->marks[stack];
	if (!known->is_known && stack && stack <= defs_stack_count(m->defs)) {
		marks_of_stack(m->defs, stack, &known->marks);
		known->is_known = true;
	}
	return &known->marks;
}

struct stack_marks attribution_known_marks(const struct model *m, uint32_t stack)
{
	const struct attribution *a = m->attribution;
	struct stack_marks marks = {0};
	if (stack < a->marks_capacity && a->marks[stack].is_known)
		return a->marks[stack].marks;
	if (stack && stack <= defs_stack_count(m->defs))
		marks_of_stack(m->defs, stack, &marks);
	return marks;
}

enum { ENGINE_NOT_LOOKED_AT, ENGINE_NO, ENGINE_YES };

bool attribution_is_engine(struct model *m, uint32_t id)
{
	struct thread *thread = thread_of(m, id);
	const struct def_thread *definition;
	if (thread->engine == ENGINE_NOT_LOOKED_AT) {
		definition = defs_thread(m->defs, id);
		thread->engine = definition && !strncmp(definition->name, "pt_autograd", 11) ? ENGINE_YES :
											       ENGINE_NO;
	}
	return thread->engine == ENGINE_YES;
}

enum label attribution_of_owner(const char *owner)
{
	if (!strcmp(owner, "nccl"))
		return LABEL_COMMUNICATION;
	if (!strncmp(owner, "cublas", 6) || !strncmp(owner, "cudnn", 5))
		return LABEL_WORKSPACE;
	return LABEL_UNKNOWN;
}

/* ---------- events ---------- */

void attribution_note_alloc(struct model *m, struct block *block, const struct event *e)
{
	struct moment_facts facts;
	phase_note(m, e, &facts);
	classify_alloc(m, block, e, &facts);
}

void attribution_counted(struct model *m, const struct block *block, struct device *d, const struct event *e)
{
	step_note_event(m, &m->attribution->loops[block->facts.loop], d, e);
}

void attribution_note_free(struct model *m, struct block *block, const struct event *e)
{
	struct moment_facts facts;
	phase_note(m, e, &facts);
	if (block)
		classify_free(m, block, e, &facts);
}

void attribution_note_phase(struct model *m, const struct event *e)
{
	struct moment_facts facts;
	if (m->attribution->loop_count)
		phase_note(m, e, &facts);
}

void attribution_observe(struct model *m, uint64_t born, uint8_t label)
{
	struct model_observer *observer = m->attribution->observer;
	if (observer)
		observer->labelled(observer, born, label);
}

void model_observe(struct model *m, struct model_observer *observer)
{
	m->attribution->observer = observer;
}

void model_observe_steps(struct model *m, struct model_step_observer *observer)
{
	m->attribution->step_observer = observer;
}

/* ---------- what is told ---------- */

/* Of a backward without a module before it, the pass began after the one before. */
static uint64_t call_begin(const struct loop *loop)
{
	uint64_t begin = loop->call_begin;
	if (!loop->in_forward && !loop->in_backward)
		return UINT64_MAX;
	if (loop->in_backward && loop->backward_end > begin)
		begin = loop->backward_end;
	return begin ? begin : UINT64_MAX;
}

static bool is_without_grad(const struct loop *loop)
{
	uint32_t left = 0;
	for (const struct block *block = loop->call.first; block; block = block->facts.next)
		left++;
	return loop->in_forward && loop->call_count >= 8 && left * 4 < loop->call_count;
}

void attribution_describe_work(const struct model *m, uint8_t slot, struct work *work)
{
	const struct attribution *a = m->attribution;
	const struct loop *loop = a->loop_count ? &a->loops[a->loop_of_slot[slot]] : NULL;
	*work = (struct work){
		.steps = a->step_count,
		.backwards = a->backwards,
		.call_begin = loop ? call_begin(loop) : UINT64_MAX,
		.backward_end = loop ? loop->backward_end : 0,
		.step_most_bytes = step_most_bytes(m, slot),
		.passes = loop ? loop->passes : 0,
		.passes_least = loop ? loop->passes_least : 0,
		.has_trained = a->has_trained,
		.is_without_grad = loop && is_without_grad(loop),
	};
}

void categories_add(const struct model *m, struct model_categories *categories, uint8_t label, uint64_t bytes)
{
	struct label_meaning meaning = label_meaning(label, m->attribution->has_trained);
	categories->bytes[meaning.category] += bytes;
	if (meaning.is_provisional)
		categories->provisional_bytes[meaning.category] += bytes;
}
