/* Whose a stack is, worked out once a stack: a name for the first module on it that is not CUDA's
 * own. Owns the table of names, whose indices the rest of the model uses. Must never trust an id
 * beyond what the definitions hold. */
#include <string.h>

#include "model/model_private.h"
#include "model/owner_name.h"

#define OWNERS_MAX 256 /* modules that obtain GPU memory themselves; beyond that: unknown */

static uint16_t owner_add(struct model *m, const char *name)
{
	size_t bytes = strlen(name) + 1;
	if (m->owner_count == OWNERS_MAX)
		return OWNER_UNKNOWN;
	char *copy = model_new(m, bytes);
	if (!copy || model_grow(m, &m->owner_names, &m->owner_capacity, m->owner_count,
				sizeof *m->owner_names))
		return OWNER_UNKNOWN;
	memcpy(copy, name, bytes);
	m->owner_names[m->owner_count] = copy;
	return (uint16_t)m->owner_count++;
}

static uint16_t owner_intern(struct model *m, const char *name)
{
	for (uint32_t i = 0; i < m->owner_count; i++)
		if (!strcmp(m->owner_names[i], name))
			return (uint16_t)i;
	return owner_add(m, name);
}

uint16_t owner_restore(struct model *m, const char *name)
{
	return owner_add(m, name);
}

int owners_init(struct model *m)
{
	owner_add(m, "unknown");
	owner_add(m, "pytorch");
	return m->failed ? -1 : 0;
}

static uint16_t owner_of_module(struct model *m, uint32_t id)
{
	char buffer[OWNER_NAME_BYTES];
	const struct def_module *module = id ? defs_module(m->defs, id) : NULL;
	if (!module || !*module->name)
		return OWNER_UNKNOWN;
	if (model_grow(m, &m->owner_of_module, &m->module_capacity, id, sizeof *m->owner_of_module))
		return OWNER_UNKNOWN;
	if (!m->owner_of_module[id])
		m->owner_of_module[id] = (uint16_t)(owner_intern(m, owner_name(module->name, buffer)) + 1);
	return (uint16_t)(m->owner_of_module[id] - 1);
}

static bool has_python_function(const struct model *m, const struct def_stack *stack,
				const char *name)
{
	for (uint32_t i = 0; i < stack->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(m->defs, stack->python[i]);
		if (frame && !strcmp(frame->function, name))
			return true;
	}
	return false;
}

const struct stack_facts *stack_facts(struct model *m, uint32_t id)
{
	static const struct stack_facts unknown;
	if (id >= m->stack_capacity &&
	    model_grow(m, &m->stack_facts, &m->stack_capacity, id, sizeof *m->stack_facts))
		return &unknown;
	struct stack_facts *facts = &m->stack_facts[id];
	const struct def_stack *stack = facts->known ? NULL : defs_stack(m->defs, id);
	m->has_gaps |= !facts->known && !stack && id;
	if (!stack)
		return facts;
	facts->known = true;
	facts->owner = owner_of_module(m, stack->owner);
	facts->has_empty_cache = has_python_function(m, stack, "empty_cache");
	return facts;
}

bool stacks_have_same_python(const struct model *m, uint32_t id, uint32_t other_id)
{
	const struct def_stack *stack = defs_stack(m->defs, id);
	const struct def_stack *other = defs_stack(m->defs, other_id);
	if (!stack || !other)
		return true;
	return stack->python_count == other->python_count &&
	       !memcmp(stack->python, other->python, stack->python_count * sizeof *stack->python);
}
