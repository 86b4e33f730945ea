/* Stacks as lines for flame graphs. Owns the order of the frames and what is escaped. Must never
 * write a semicolon or a newline that comes from a name: each would be a frame or a stack that is
 * not there. */
#include "report/flame.h"

#include "report/where.h"

#define FRAME_BYTES 4096

static void add_name(struct text *out, const struct text *name, bool is_first)
{
	if (!is_first)
		text_add_char(out, ';');
	for (size_t i = 0; i < name->used_bytes; i++) {
		unsigned char c = (unsigned char)name->data[i];
		if (c == ';')
			text_add(out, "\\x3b");
		else
			text_add_char(out, (char)c);
	}
}

static void native_name(struct text *name, const struct defs *defs,
			const struct def_native_frame *frame)
{
	const struct def_module *module = defs_module(defs, frame->module);
	if (frame->name) {
		text_add_escaped(name, frame->name);
		return;
	}
	text_add_escaped(name, module && *module->name ? module->name : "unknown");
	text_printf(name, "+0x%llx", (unsigned long long)frame->offset);
}

/* With debug information a frame is as many as were inlined into it. */
static void add_native(struct text *out, const struct defs *defs,
		       const struct def_native_frame *frame, bool is_first)
{
	char buffer[FRAME_BYTES];
	struct text name;
	for (uint32_t i = frame->place_count; i-- > 0; is_first = false) {
		text_init_fixed(&name, buffer, sizeof buffer);
		where_add_place(&name, defs, &frame->places[i]);
		add_name(out, &name, is_first);
	}
	if (frame->place_count)
		return;
	text_init_fixed(&name, buffer, sizeof buffer);
	native_name(&name, defs, frame);
	add_name(out, &name, is_first);
}

static bool add_frames(struct text *out, const struct defs *defs, const struct def_stack *stack)
{
	char buffer[FRAME_BYTES];
	struct text name;
	bool is_first = true;
	for (uint32_t i = stack->python_count; i-- > 0; is_first = false) {
		const struct def_python_frame *frame = defs_python_frame(defs, stack->python[i]);
		text_init_fixed(&name, buffer, sizeof buffer);
		where_add_frame(&name, defs, frame);
		add_name(out, &name, is_first);
	}
	for (uint32_t i = stack->native_count; i-- > 0; is_first = false)
		add_native(out, defs, defs_native_frame(defs, stack->native[i]), is_first);
	return !is_first;
}

void flame_add(struct text *out, const struct defs *defs, uint32_t id, uint64_t bytes)
{
	const struct def_stack *stack = defs_stack(defs, id);
	if (!stack || !add_frames(out, defs, stack))
		text_add(out, "unknown");
	text_printf(out, " %llu\n", (unsigned long long)bytes);
}
