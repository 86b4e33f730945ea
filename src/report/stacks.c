/* Stacks for people. Owns what is folded: frames of libraries, and the native part, of which only
 * the function that says most is named. Must never leave out a frame without counting it. */
#include "report/stacks.h"

#include <string.h>

#include "report/layout.h"
#include "report/where.h"

#define INDENT        "      "
#define LINE_BYTES    4096
#define PACKAGES_MOST 2 /* named in a line of folded frames */

/* ---------- folded frames ---------- */

struct fold {
	uint32_t count;
	unsigned packages;
	struct {
		const char *name;
		size_t bytes;
	} named[PACKAGES_MOST];
};

static bool is_named(const struct fold *fold, const char *name, size_t bytes)
{
	for (unsigned i = 0; i < fold->packages && i < PACKAGES_MOST; i++)
		if (fold->named[i].bytes == bytes && !memcmp(fold->named[i].name, name, bytes))
			return true;
	return false;
}

static void fold_add(struct fold *fold, const char *name, size_t bytes)
{
	fold->count++;
	if (is_named(fold, name, bytes))
		return;
	if (fold->packages < PACKAGES_MOST) {
		fold->named[fold->packages].name = name;
		fold->named[fold->packages].bytes = bytes;
	}
	fold->packages++;
}

static void add_fold(struct text *line, const struct fold *fold, bool ascii)
{
	text_printf(line, "%s %u frame%s in ", ascii ? "..." : "…", fold->count,
		    fold->count == 1 ? "" : "s");
	for (unsigned i = 0; i < fold->packages && i < PACKAGES_MOST; i++) {
		text_add(line, i ? ", " : "");
		text_add_escaped_bytes(line, fold->named[i].name, fold->named[i].bytes);
	}
	if (fold->packages > PACKAGES_MOST)
		text_printf(line, " and %u more", fold->packages - PACKAGES_MOST);
}

/* ---------- lines that fit a page ---------- */

static void begin(struct text *line, char buffer[LINE_BYTES])
{
	text_init_fixed(line, buffer, LINE_BYTES);
}

static void end(struct text *out, struct text *line)
{
	text_add(out, INDENT);
	layout_cut(out, line, LAYOUT_COLUMNS - strlen(INDENT));
	text_add_char(out, '\n');
}

static void end_fold(struct text *out, struct fold *fold, bool ascii)
{
	char buffer[LINE_BYTES];
	struct text line;
	if (!fold->count)
		return;
	begin(&line, buffer);
	add_fold(&line, fold, ascii);
	end(out, &line);
	*fold = (struct fold){0};
}

/* ---------- Python ---------- */

static const struct def_python_frame *python_at(const struct defs *defs,
						const struct def_stack *stack, uint32_t i)
{
	return i < stack->python_count ? defs_python_frame(defs, stack->python[i]) : NULL;
}

/* Frames from `from` on: the user's each on a line, others counted. */
static void print_python(struct text *out, const struct defs *defs, const struct def_stack *stack,
			 uint32_t from, bool ascii)
{
	char buffer[LINE_BYTES];
	const struct def_python_frame *frame;
	struct fold fold = {0};
	struct text line;
	for (uint32_t i = from; (frame = python_at(defs, stack, i)); i++) {
		const char *name;
		size_t bytes = where_package(defs, frame->file, &name);
		if (bytes) {
			fold_add(&fold, name, bytes);
			continue;
		}
		end_fold(out, &fold, ascii);
		begin(&line, buffer);
		where_add_frame(&line, defs, frame);
		end(out, &line);
	}
	end_fold(out, &fold, ascii);
}

static struct fold fold_inner(const struct defs *defs, const struct def_stack *stack,
			      uint32_t count)
{
	const struct def_python_frame *frame;
	struct fold fold = {0};
	for (uint32_t i = 0; i < count && (frame = python_at(defs, stack, i)); i++) {
		const char *package = "the program";
		size_t bytes = where_package(defs, frame->file, &package);
		fold_add(&fold, package, bytes ? bytes : strlen(package));
	}
	return fold;
}

static void add_inner(struct text *line, const struct fold *fold, uint32_t native_count, bool ascii)
{
	if (fold->count)
		add_fold(line, fold, ascii);
	else
		text_add(line, ascii ? "..." : "…");
	if (native_count)
		text_printf(line, "%s %u native", fold->count ? "," : "", native_count);
}

/* What the line above called: "in aten::addmm (… 3 frames in torch, 24 native)". The name is
 * cut, not the count. */
static void print_called(struct text *out, const struct defs *defs, const struct def_stack *stack,
			 uint32_t inner_count, bool ascii)
{
	struct native_speaker speaker = native_find_operator(defs, stack);
	struct fold fold = fold_inner(defs, stack, inner_count);
	char buffer[LINE_BYTES], inner_buffer[LINE_BYTES], name[CXX_NAME_BYTES];
	struct text line, inner;
	if (!fold.count && !stack->native_count)
		return;
	begin(&inner, inner_buffer);
	add_inner(&inner, &fold, stack->native_count, ascii);
	text_add(out, INDENT "  ");
	if (speaker.frame) {
		size_t taken = strlen(INDENT) + strlen("  in  ()") +
			       layout_width(inner.data, inner.used_bytes);
		begin(&line, buffer);
		native_name_speaker(name, &speaker);
		text_add_escaped(&line, name);
		text_add(out, "in ");
		layout_cut(out, &line, taken + 20 < LAYOUT_COLUMNS ? LAYOUT_COLUMNS - taken : 20);
		text_add(out, " (");
	}
	text_add_bytes(out, inner.data, inner.used_bytes);
	text_add(out, speaker.frame ? ")\n" : "\n");
}

static void print_where(struct text *out, const struct defs *defs, const struct where *where)
{
	char buffer[LINE_BYTES];
	struct text line;
	begin(&line, buffer);
	where_add_line(&line, defs, where);
	end(out, &line);
}

static uint32_t index_of(const struct defs *defs, const struct def_stack *stack,
			 const struct def_python_frame *frame)
{
	uint32_t i = 0;
	while (i < stack->python_count && defs_python_frame(defs, stack->python[i]) != frame)
		i++;
	return i;
}

/* ---------- native ---------- */

static bool is_of_program(const struct def_stack *stack, const struct def_native_frame *frame,
			  const struct def_module *module)
{
	return frame->module == stack->owner || (module && !strstr(module->name, ".so"));
}

static void print_function(struct text *out, const struct defs *defs,
			   const struct def_native_frame *frame, const struct def_module *module)
{
	char buffer[LINE_BYTES];
	struct text line;
	for (uint32_t i = 0; i < frame->place_count; i++) {
		begin(&line, buffer);
		where_add_place(&line, defs, &frame->places[i]);
		text_add(&line, i + 1 < frame->place_count ? ", inlined" : "");
		end(out, &line);
	}
	if (frame->place_count)
		return;
	begin(&line, buffer);
	text_add_escaped(&line, frame->name);
	text_add(&line, " (");
	text_add_escaped(&line, module ? module->name : "unknown");
	text_add_char(&line, ')');
	end(out, &line);
}

/* Of a program without Python: its own functions each on a line, others counted. */
static void print_native(struct text *out, const struct defs *defs, const struct def_stack *stack,
			 bool ascii)
{
	struct fold fold = {0};
	for (uint32_t i = 0; i < stack->native_count; i++) {
		const struct def_native_frame *frame = defs_native_frame(defs, stack->native[i]);
		const struct def_module *module = frame ? defs_module(defs, frame->module) : NULL;
		const char *name = module && *module->name ? module->name : "unknown";
		if (frame && frame->symbol && is_of_program(stack, frame, module)) {
			end_fold(out, &fold, ascii);
			print_function(out, defs, frame, module);
		} else {
			fold_add(&fold, name, strlen(name));
		}
	}
	end_fold(out, &fold, ascii);
}

static void print_folded(struct text *out, const struct defs *defs, uint32_t id,
			 const struct def_stack *stack, bool ascii)
{
	struct where where = where_find(defs, id, 0);
	if (where.native.frame && !where.native.is_pytorch) {
		print_native(out, defs, stack, ascii);
		return;
	}
	uint32_t line = where.line ? index_of(defs, stack, where.line) : 0;
	print_where(out, defs, &where);
	print_called(out, defs, stack, line, ascii);
	if (where.line)
		print_python(out, defs, stack, line + 1, ascii);
}

/* ---------- in full ---------- */

static void end_line(struct text *out, const char *indent, const struct text *line)
{
	text_add(out, indent);
	text_add_escaped_bytes(out, line->data, line->used_bytes);
	text_add_char(out, '\n');
}

static void add_symbol(struct text *line, const struct defs *defs,
		       const struct def_native_frame *frame, const struct stacks_style *style)
{
	const struct def_module *module = defs_module(defs, frame->module);
	const char *whole =
		style->demangle && frame->symbol ? style->demangle(frame->symbol) : NULL;
	if (!whole) {
		native_add_frame(line, defs, frame);
		return;
	}
	text_add(line, module && *module->name ? module->name : "unknown");
	text_printf(line, "!%s+0x%llx", whole, (unsigned long long)frame->symbol_offset);
}

static void print_whole_native(struct text *out, const struct defs *defs,
			       const struct def_native_frame *frame, const char *indent,
			       const struct stacks_style *style)
{
	char buffer[LINE_BYTES];
	struct text line;
	for (uint32_t i = 0; i < frame->place_count; i++) {
		text_init_fixed(&line, buffer, sizeof buffer);
		native_add_place(&line, &frame->places[i]);
		text_add(&line, i + 1 < frame->place_count ? ", inlined" : "");
		end_line(out, indent, &line);
	}
	if (frame->place_count)
		return;
	text_init_fixed(&line, buffer, sizeof buffer);
	add_symbol(&line, defs, frame, style);
	end_line(out, indent, &line);
}

void stacks_print_all(struct text *out, const struct defs *defs, uint32_t id, const char *indent,
		      const struct stacks_style *style)
{
	const struct def_stack *stack = defs_stack(defs, id);
	char buffer[LINE_BYTES];
	struct text line;
	for (uint32_t i = 0; stack && i < stack->native_count; i++) {
		const struct def_native_frame *frame = defs_native_frame(defs, stack->native[i]);
		if (frame)
			print_whole_native(out, defs, frame, indent, style);
	}
	for (uint32_t i = 0; stack && i < stack->python_count; i++) {
		const struct def_python_frame *frame = python_at(defs, stack, i);
		text_init_fixed(&line, buffer, sizeof buffer);
		if (frame)
			where_add_python_frame(&line, frame);
		end_line(out, indent, &line);
	}
}

static void print_full(struct text *out, const struct defs *defs, uint32_t id,
		       const struct stacks_style *style)
{
	struct where where = where_find(defs, id, 0);
	bool has_title = where.line || where.native.is_backward;
	if (has_title)
		print_where(out, defs, &where);
	stacks_print_all(out, defs, id, has_title ? INDENT "  " : INDENT, style);
}

void stacks_print(struct text *out, const struct defs *defs, uint32_t id,
		  const struct stacks_style *style)
{
	const struct def_stack *stack = defs_stack(defs, id);
	if (!stack)
		text_add(out, INDENT "unknown\n");
	else if (style->full)
		print_full(out, defs, id, style);
	else
		print_folded(out, defs, id, stack, style->ascii);
	if (stack && stack->flags & (MEMTRACE_STACK_TRUNCATED | MEMTRACE_STACK_NATIVE_TRUNCATED))
		text_add(out, INDENT "(cut: it was deeper)\n");
}
