/* Whose a stack is, worked out once a stack: a name for the first module on it that is not CUDA's
 * own. Owns the table of names, whose indices the rest of the model uses. Must never trust an id
 * beyond what the definitions hold. */
#include <string.h>

#include "model/model_private.h"

#define OWNERS_MAX 256 /* modules that obtain GPU memory themselves; beyond that: unknown */

static const struct known_library {
	const char *part, *owner;
} known_libraries[] = {
	{"libc10_cuda", "pytorch"}, {"libnccl", "nccl"},         {"libcublas", "cublas"},
	{"libcudnn", "cudnn"},      {"libcusparse", "cusparse"}, {"libcusolver", "cusolver"},
	{"libcufft", "cufft"},      {"libcurand", "curand"},
};

/* Bytes of `file` that name its owner: without a version suffix. 0: take "program". */
static size_t name_bytes(const char *file)
{
	const char *suffix = strstr(file, ".so");
	if (suffix)
		return (size_t)(suffix - file) + strlen(".so");
	return strncmp(file, "lib", 3) ? 0 : strlen(file);
}

static const char *name_of(const char *file, size_t *bytes)
{
	for (size_t i = 0; i < sizeof known_libraries / sizeof *known_libraries; i++)
		if (strstr(file, known_libraries[i].part)) {
			*bytes = strlen(known_libraries[i].owner);
			return known_libraries[i].owner;
		}
	*bytes = name_bytes(file);
	if (*bytes)
		return file;
	*bytes = strlen("program");
	return "program";
}

static uint16_t owner_add(struct model *m, const char *name, size_t bytes)
{
	if (m->owner_count == OWNERS_MAX)
		return OWNER_UNKNOWN;
	char *copy = model_new(m, bytes + 1);
	if (!copy || model_grow(m, &m->owner_names, &m->owner_capacity, m->owner_count,
				sizeof *m->owner_names))
		return OWNER_UNKNOWN;
	memcpy(copy, name, bytes);
	m->owner_names[m->owner_count] = copy;
	return (uint16_t)m->owner_count++;
}

static uint16_t owner_intern(struct model *m, const char *name, size_t bytes)
{
	for (uint32_t i = 0; i < m->owner_count; i++)
		if (!strncmp(m->owner_names[i], name, bytes) && !m->owner_names[i][bytes])
			return (uint16_t)i;
	return owner_add(m, name, bytes);
}

int owners_init(struct model *m)
{
	owner_add(m, "unknown", strlen("unknown"));
	owner_add(m, "pytorch", strlen("pytorch"));
	return m->failed ? -1 : 0;
}

static uint16_t owner_of_module(struct model *m, uint32_t id)
{
	const struct def_module *module = id ? defs_module(m->defs, id) : NULL;
	if (!module || !*module->name)
		return OWNER_UNKNOWN;
	if (model_grow(m, &m->owner_of_module, &m->module_capacity, id, sizeof *m->owner_of_module))
		return OWNER_UNKNOWN;
	if (!m->owner_of_module[id]) {
		size_t bytes;
		const char *name = name_of(module->name, &bytes);
		m->owner_of_module[id] = (uint16_t)(owner_intern(m, name, bytes) + 1);
	}
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
