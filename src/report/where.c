/* Which line of the user's own code a stack stands for. Owns the rules that tell a user's file from
 * a library's and how paths are shortened. Must never allocate: it runs inside the traced program.
 * All names come from outside and are escaped on the way out, except by the two functions that say
 * otherwise. */
#include "report/where.h"

#include <string.h>

/* The part of an absolute path that lies inside the working directory, else the path as it is. */
static const char *below_cwd(const struct defs *defs, const char *file)
{
	const char *cwd = defs_info(defs, MEMTRACE_INFO_CWD, 0);
	size_t length = cwd ? strlen(cwd) : 0;
	if (length > 1 && !strncmp(file, cwd, length) && file[length] == '/')
		return file + length + 1;
	return file;
}

static const char *after(const char *file, const char *folder)
{
	const char *found = strstr(file, folder);
	return found ? found + strlen(folder) : NULL;
}

/* What follows ".../lib/python3.11/" or ".../python311.zip/"; NULL if the file is in neither. */
static const char *after_standard_library(const char *file)
{
	for (const char *at = file; (at = strstr(at, "/python3")); at++) {
		const char *end = at + strlen("/python3");
		end += strspn(end, ".0123456789t");
		if (!strncmp(end, "zip/", 4))
			return end + 4;
		bool in_lib = at - file >= 4 && (!memcmp(at - 4, "/lib", 4) ||
						 (at - file >= 6 && !memcmp(at - 6, "/lib64", 6)));
		if (*end == '/' && in_lib)
			return end + 1;
	}
	return NULL;
}

static bool is_typed_in(const char *file)
{
	return !strcmp(file, "<string>") || !strcmp(file, "<stdin>") ||
	       !strncmp(file, "<ipython", 8);
}

/* The name of a module that torch.compile generated, "de/cdefg….py": "c" and a hash of 51 letters and digits, in a
 * folder named after the letters behind the first; NULL for other files. */
static const char *generated_name(const char *file)
{
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : NULL;
	if (!name || slash - file < 3 || slash[-3] != '/' || strncmp(slash - 2, name + 1, 2))
		return NULL;
	bool is_hash = *name == 'c' && strspn(name, "abcdefghijklmnopqrstuvwxyz234567") == 52;
	return is_hash && !strcmp(name + 52, ".py") ? name : NULL;
}

/* The name of a library's file below its installation folder; NULL for a user's file. */
static const char *library_name(const struct defs *defs, const char *file)
{
	const char *name;
	if (*file == '<')
		return is_typed_in(file) ? NULL : file;
	if ((name = after(file, "/site-packages/")) || (name = after(file, "/dist-packages/")))
		return name;
	if ((name = after_standard_library(file)) || (name = generated_name(file)))
		return name;
	/* A source tree of PyTorch; a folder of that name above the working directory is the
	 * user's. */
	const char *inside = below_cwd(defs, file);
	if (!strncmp(inside, "torch/", 6))
		return inside;
	name = strstr(inside, "/torch/");
	return name ? name + 1 : NULL;
}

/* Code that was typed in (python -c, and what dataclasses generate) only counts if there is no
 * file. */
static const struct def_python_frame *find_user_frame(const struct defs *defs,
						      const struct def_stack *stack)
{
	const struct def_python_frame *typed = NULL;
	for (uint32_t i = 0; i < stack->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(defs, stack->python[i]);
		if (!frame || library_name(defs, frame->file))
			continue;
		if (*frame->file != '<')
			return frame;
		if (!typed)
			typed = frame;
	}
	return typed;
}

/* PyTorch calls a module through two functions, of which the outer one calls the inner one. */
static bool is_module_call(const struct def_python_frame *frame)
{
	static const char tail[] = "/nn/modules/module.py";
	size_t length = strlen(frame->file);
	return strstr(frame->function, "_call_impl") && length >= sizeof tail - 1 &&
	       !strcmp(frame->file + length - (sizeof tail - 1), tail);
}

/* "Mlp.__init__", and what is nested in it. */
static bool is_constructor(const struct def_python_frame *frame)
{
	return strstr(frame->function, "__init__") != NULL;
}

const struct def_python_frame *where_find_caller(const struct defs *defs, uint32_t stack_id)
{
	const struct def_stack *stack = defs_stack(defs, stack_id);
	const struct def_python_frame *caller = NULL;
	bool has_line = false, was_called = false, was_made = false;
	for (uint32_t i = 0; stack && i < stack->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(defs, stack->python[i]);
		bool is_users = frame && !library_name(defs, frame->file) && *frame->file != '<';
		bool makes = is_users && is_constructor(frame);
		if (is_users && !makes && (was_called || was_made))
			caller = frame;
		was_made = is_users ? makes && (was_made || !has_line) : was_made;
		was_called = frame && !is_users && (was_called || (has_line && is_module_call(frame)));
		has_line |= is_users;
	}
	return caller;
}

static const struct def_python_frame *find_innermost(const struct defs *defs,
						     const struct def_stack *stack)
{
	for (uint32_t i = 0; i < stack->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(defs, stack->python[i]);
		if (frame && strncmp(frame->file, "<frozen ", 8))
			return frame;
	}
	return NULL;
}

static bool is_autograd_thread(const struct def_thread *thread)
{
	return !strncmp(thread->name, "pt_autograd", 11);
}

static bool has_autograd_thread(const struct defs *defs)
{
	for (uint32_t id = 1; id <= defs_thread_count(defs); id++) {
		const struct def_thread *thread = defs_thread(defs, id);
		if (thread && is_autograd_thread(thread))
			return true;
	}
	return false;
}

static bool is_pytorch(const struct def_module *module)
{
	return !strncmp(module->name, "libc10", 6) || !strncmp(module->name, "libtorch", 8);
}

static struct native_speaker find_native(const struct defs *defs, const struct def_stack *stack)
{
	struct native_speaker backward = native_find_backward(defs, stack);
	return backward.frame ? backward : native_find_operator(defs, stack);
}

struct where where_find(const struct defs *defs, uint32_t stack_id, uint32_t thread_id)
{
	struct where where = {0};
	const struct def_stack *stack = defs_stack(defs, stack_id);
	const struct def_thread *thread = defs_thread(defs, thread_id);
	if (stack) {
		const struct def_python_frame *innermost = find_innermost(defs, stack);
		where.line = find_user_frame(defs, stack);
		where.is_library = !where.line && innermost;
		where.inner = where.line && innermost != where.line ? innermost : NULL;
		where.line = where.line ? where.line : innermost;
		where.module = defs_module(defs, stack->owner);
		where.is_cut = stack->flags & MEMTRACE_STACK_TRUNCATED;
	}
	if (stack && !where.line)
		where.native = find_native(defs, stack);
	bool is_dark = !where.line && !where.native.frame;
	where.is_autograd = is_dark && thread && is_autograd_thread(thread);
	where.may_be_autograd = is_dark && !thread && where.module && is_pytorch(where.module) &&
				has_autograd_thread(defs);
	return where;
}

static bool is_same_native(const struct native_speaker *a, const struct native_speaker *b)
{
	if (!a->frame || !b->frame || !a->place != !b->place)
		return a->frame == b->frame;
	if (a->place)
		return a->place->line == b->place->line && !strcmp(a->place->file, b->place->file);
	return a->frame->module == b->frame->module && !strcmp(a->frame->symbol, b->frame->symbol);
}

bool where_is_same(const struct where *a, const struct where *b)
{
	if (a->line && b->line)
		return a->line->line == b->line->line && !strcmp(a->line->file, b->line->file);
	if (a->line || b->line || a->is_autograd != b->is_autograd ||
	    !is_same_native(&a->native, &b->native))
		return false;
	return a->is_autograd || a->native.frame || a->module == b->module;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
	return hash;
}

uint64_t where_hash(const struct where *where)
{
	const struct native_speaker *native = &where->native;
	uint64_t hash = where->is_autograd;
	if (where->line)
		hash = hash_text((uint64_t)where->line->line, where->line->file);
	else if (native->place)
		hash = hash_text(native->place->line, native->place->file);
	else if (native->frame)
		hash = hash_text(native->frame->module, native->frame->symbol);
	else if (!where->is_autograd)
		hash ^= (uintptr_t)where->module;
	hash *= 0x9E3779B97F4A7C15u;
	return hash ^ hash >> 32;
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* A user's file outside the working directory: its name and the folder that it is in. */
static const char *last_two_components(const char *path)
{
	const char *name = last_component(path);
	const char *at = name > path ? name - 1 : path;
	while (at > path && at[-1] != '/')
		at--;
	return at;
}

static void add_function(struct text *out, const char *function)
{
	if (!*function || !strcmp(function, "<module>"))
		return;
	text_add_char(out, ' ');
	text_add_escaped(out, function);
}

/* A library's file below its folder, the user's own as short as it can be told. */
static void add_file(struct text *out, const struct defs *defs, const char *file, long line)
{
	const char *name = library_name(defs, file);
	if (!name)
		name = below_cwd(defs, file);
	if (*name == '/')
		name = last_two_components(name);
	text_add_escaped(out, name);
	if (line > 0)
		text_printf(out, ":%ld", line);
}

void where_add_frame(struct text *out, const struct defs *defs,
		     const struct def_python_frame *frame)
{
	add_file(out, defs, frame->file, frame->line);
	add_function(out, frame->function);
}

void where_add_place(struct text *out, const struct defs *defs, const struct def_place *place)
{
	char name[CXX_NAME_BYTES];
	cxx_name(name, place->function);
	add_file(out, defs, *place->file ? place->file : "unknown", (long)place->line);
	add_function(out, name);
}

static void add_native(struct text *out, const struct defs *defs,
		       const struct native_speaker *native)
{
	const struct def_module *module = defs_module(defs, native->frame->module);
	char name[CXX_NAME_BYTES];
	if (native->place) {
		where_add_place(out, defs, native->place);
		return;
	}
	native_name_speaker(name, native);
	text_add(out, native->is_backward ? "(backward) " : "");
	text_add_escaped(out, name);
	if (native->is_pytorch || !module)
		return;
	text_add(out, " (");
	text_add_escaped(out, module->name);
	text_add_char(out, ')');
}

void where_add_line(struct text *out, const struct defs *defs, const struct where *where)
{
	if (where->line)
		where_add_frame(out, defs, where->line);
	else if (where->native.frame)
		add_native(out, defs, &where->native);
	else if (where->is_autograd)
		text_add(out, "(autograd thread)");
	else if (where->may_be_autograd)
		text_add(out, "(autograd or other C++ thread)");
	else if (where->module && *where->module->name)
		text_add_escaped(out, where->module->name);
	else
		text_add(out, "unknown");
	if (where->is_library && where->is_cut)
		text_add(out, " (deeper stack, cut)");
}

void where_add_inner(struct text *out, const struct where *where)
{
	if (!where->inner)
		return;
	text_add_escaped(out, last_component(where->inner->file));
	add_function(out, where->inner->function);
}

void where_add(struct text *out, const struct defs *defs, const struct where *where, bool ascii)
{
	where_add_line(out, defs, where);
	if (where->inner) {
		text_add(out, ascii ? " > " : " › ");
		where_add_inner(out, where);
	}
}

void where_add_python_frame(struct text *out, const struct def_python_frame *frame)
{
	text_add(out, frame->file);
	text_printf(out, ":%d ", frame->line);
	text_add(out, frame->function);
}

size_t where_package(const struct defs *defs, const char *file, const char **name)
{
	const char *library = library_name(defs, file);
	if (!library)
		return 0;
	*name = *file == '<' || library == after_standard_library(file) ? "Python" : library;
	return strcspn(*name, "/.");
}
