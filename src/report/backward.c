/* The line of a backward pass. Autograd's threads have no Python frames, so it is that of the call of backward() that
 * was going on. Owns how that call is found; must never name one of several. No malloc, stdio or locale: see
 * summary.c. */
#include "report/backward.h"

#include "trace/marks.h"

#define CALLS_LOOKED_AT 4096 /* stacks; of more it takes too long */

static bool is_call_of_backward(const struct defs *defs, uint32_t stack)
{
	struct stack_marks marks;
	marks_of_stack(defs, stack, &marks);
	return marks.flags & MARK_FLAG(MARK_BACKWARD_CALL);
}

/* Takes the line of a stack that calls backward(); false: it is another than that which was found. */
static bool take_call(struct where *found, const struct defs *defs, uint32_t stack)
{
	struct where where = is_call_of_backward(defs, stack) ? where_find(defs, stack, 0) : (struct where){0};
	if (!where.line || where.is_library)
		return true;
	bool is_same = !found->line || where_is_same(found, &where);
	*found = is_same ? where : (struct where){0};
	return is_same;
}

/* Of the program's calls, if all are on one line. */
static struct where find_only_call(const struct defs *defs)
{
	struct where found = {0};
	uint32_t count = defs_stack_count(defs);
	for (uint32_t id = 1; id <= count && count <= CALLS_LOOKED_AT; id++)
		if (!take_call(&found, defs, id))
			break;
	return found;
}

/* The call that was going on: it holds the gradient of the loss, which it made, to its end. */
static struct where find_live_call(const struct model *model, const struct defs *defs, struct composition of)
{
	struct where found = {0};
	size_t count = 0;
	struct arena *arena = arena_create();
	const struct model_share *shares = arena ? composition_shares(arena, model, of, &count) : NULL;
	for (size_t i = 0; shares && i < count; i++)
		if (!take_call(&found, defs, shares[i].stack))
			break;
	if (arena)
		arena_release(arena);
	return found;
}

/* The line that called backward(): autograd's threads do not know it. */
static struct where find_call_of_backward(const struct model *model, const struct defs *defs, struct composition of)
{
	struct where live = find_live_call(model, defs, of);
	return live.line ? live : find_only_call(defs);
}

bool backward_has_made(const struct defs *defs, uint32_t stack, const struct where *where)
{
	struct stack_marks marks = {0};
	if (stack && stack <= defs_stack_count(defs))
		marks_of_stack(defs, stack, &marks);
	return !where->line && (where->is_autograd || marks.native & MARK_ENGINE);
}

void backward_add_place(struct text *out, const struct model *model, const struct defs *defs, const struct where *where,
			struct composition of, bool ascii)
{
	struct where call = {0};
	if (!where->line)
		call = find_call_of_backward(model, defs, of);
	if (!call.line) {
		where_add(out, defs, where, ascii);
		return;
	}
	where_add_line(out, defs, &call);
	if (where->native.frame) {
		char name[CXX_NAME_BYTES];
		native_name_speaker(name, &where->native);
		text_add(out, ascii ? " > " : " › ");
		text_add_escaped(out, name);
	}
}
