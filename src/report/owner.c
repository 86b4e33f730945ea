/* Who asked, from the module that a stack belongs to. */
#include "report/owner.h"

const char *owner_of_event(const struct defs *defs, const struct event *event,
			   char buffer[OWNER_NAME_BYTES])
{
	const struct def_stack *stack = defs_stack(defs, event->stack);
	const struct def_module *module = stack ? defs_module(defs, stack->owner) : NULL;
	if (event->space == MEMTRACE_SPACE_BLOCK)
		return "pytorch";
	if (!module || !*module->name)
		return NULL;
	return owner_name(module->name, buffer);
}
