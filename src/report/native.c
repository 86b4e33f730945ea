/* Which native frame speaks for a stack. Owns the tables of names that do and do not say something.
 * Looks at mangled names as far as it can, because `dump` asks for every event. Must never
 * allocate: it runs inside the traced program; and never name a frame that has no name. */
#include "report/native.h"

#include <string.h>

static bool begins_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* ---------- mangled names ---------- */

/* The first component in N…: behind _Z, Z of a function around it, N, const and the like. */
static const char *components(const char *symbol)
{
	if (!begins_with(symbol, "_Z"))
		return "";
	symbol += 2;
	while (*symbol == 'Z')
		symbol++;
	return *symbol == 'N' ? symbol + 1 + strspn(symbol + 1, "VKRO") : symbol;
}

/* Where the operators are. */
static const char *const speaking[] = {
	"2at6native", "2at4_ops", "5torch8autograd9generated", "4c10d", "5torch3jit",
};

/* Of these the functions that only make a tensor for another one. */
static const char *const plumbing[] = {"empty", "resize", "new_empty", "maybe_resize",
				       "set_output"};

static const char *after_speaking(const char *symbol)
{
	const char *at = components(symbol);
	for (size_t i = 0; i < sizeof speaking / sizeof *speaking; i++)
		if (begins_with(at, speaking[i]))
			return at + strlen(speaking[i]);
	return NULL;
}

static bool is_plumbing(const char *component)
{
	if (begins_with(component, "12_GLOBAL__N_1"))
		component += strlen("12_GLOBAL__N_1");
	component += strspn(component, "0123456789");
	for (size_t i = 0; i < sizeof plumbing / sizeof *plumbing; i++)
		if (begins_with(component, plumbing[i]))
			return true;
	return false;
}

/* torch::autograd::…::apply */
static bool is_backward(const char *symbol)
{
	return begins_with(components(symbol), "5torch8autograd") && strstr(symbol, "5apply");
}

/* ---------- frames ---------- */

static bool is_pytorch(const struct def_module *module)
{
	return module &&
	       (begins_with(module->name, "libc10") || begins_with(module->name, "libtorch"));
}

static bool is_cuda(const struct def_module *module)
{
	return module &&
	       (begins_with(module->name, "libcudart") || begins_with(module->name, "libcuda.so") ||
		begins_with(module->name, "libmemtrace"));
}

/* Wrappers that CUDA's headers and the C++ library put into the program itself. */
static bool is_wrapper(const char *function)
{
	static const char *const prefixes[] = {"_ZL10cudaMalloc", "cudaMalloc",   "_Z10cudaMalloc",
					       "_ZL14cuda",       "_ZNSt",        "_ZSt",
					       "_ZNKSt",          "_ZN9__gnu_cxx"};
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (begins_with(function, prefixes[i]))
			return true;
	return begins_with(function, "_Z") && strstr(function, "cudaMalloc");
}

/* The innermost function of a frame that is the program's, as far as inlining is known. */
static const struct def_place *speaking_place(const struct def_native_frame *frame)
{
	for (uint32_t i = 0; i < frame->place_count; i++)
		if (*frame->places[i].function && !is_wrapper(frame->places[i].function))
			return &frame->places[i];
	return NULL;
}

static const struct def_native_frame *frame_at(const struct defs *defs,
					       const struct def_stack *stack, uint32_t i)
{
	return i < stack->native_count ? defs_native_frame(defs, stack->native[i]) : NULL;
}

struct native_speaker native_find_backward(const struct defs *defs, const struct def_stack *stack)
{
	const struct def_native_frame *frame;
	for (uint32_t i = 0; (frame = frame_at(defs, stack, i)); i++)
		if (frame->symbol && is_backward(frame->symbol))
			return (struct native_speaker){
				.frame = frame, .is_backward = true, .is_pytorch = true};
	return (struct native_speaker){0};
}

static const char *const call_of_operator = "at::_ops::";

const struct def_native_frame *native_find_aten(const struct defs *defs, const struct def_stack *stack)
{
	for (uint32_t i = stack->native_count; i-- > 0;) {
		const struct def_native_frame *frame = frame_at(defs, stack, i);
		if (frame && frame->name && begins_with(frame->name, call_of_operator))
			return frame;
	}
	return NULL;
}

/* The operator that was called, not the kernel that it called in turn; where there is none or it only
 * makes a tensor, the innermost function that says more. */
static const struct def_native_frame *find_operator(const struct defs *defs,
						    const struct def_stack *stack)
{
	const struct def_native_frame *frame, *maker = native_find_aten(defs, stack);
	const char *called = maker ? after_speaking(maker->symbol) : NULL;
	if (called && !is_plumbing(called))
		return maker;
	for (uint32_t i = 0; (frame = frame_at(defs, stack, i)); i++) {
		const char *rest = frame->symbol ? after_speaking(frame->symbol) : NULL;
		if (rest && !is_plumbing(rest))
			return frame;
		if (rest && !maker)
			maker = frame;
	}
	return maker;
}

static struct native_speaker find_function(const struct defs *defs, const struct def_stack *stack)
{
	const struct def_native_frame *frame;
	for (uint32_t i = 0; (frame = frame_at(defs, stack, i)); i++) {
		const struct def_module *module = defs_module(defs, frame->module);
		const struct def_place *place = speaking_place(frame);
		bool is_own = !is_cuda(module) && frame->symbol;
		if (is_own && (place || (!frame->place_count && !is_wrapper(frame->symbol))))
			return (struct native_speaker){
				.frame = frame, .place = place, .is_pytorch = is_pytorch(module)};
	}
	return (struct native_speaker){0};
}

static bool has_pytorch(const struct defs *defs, const struct def_stack *stack)
{
	const struct def_native_frame *frame;
	for (uint32_t i = 0; (frame = frame_at(defs, stack, i)); i++)
		if (is_pytorch(defs_module(defs, frame->module)))
			return true;
	return false;
}

struct native_speaker native_find_operator(const struct defs *defs, const struct def_stack *stack)
{
	if (!has_pytorch(defs, stack))
		return find_function(defs, stack);
	const struct def_native_frame *frame = find_operator(defs, stack);
	return frame ? (struct native_speaker){.frame = frame, .is_pytorch = true}
		     : find_function(defs, stack);
}

/* ---------- words ---------- */

static void drop_prefix(char *name, const char *prefix)
{
	size_t bytes = strlen(prefix);
	if (!strncmp(name, prefix, bytes))
		memmove(name, name + bytes, strlen(name + bytes) + 1);
}

static void drop_suffix(char *name, const char *suffix)
{
	size_t bytes = strlen(suffix), all = strlen(name);
	if (all > bytes && !strcmp(name + all - bytes, suffix))
		name[all - bytes] = 0;
}

/* Which lambda of it, or in which file's own namespace, does not matter here. */
static void drop_noise(char *name)
{
	static const char anonymous[] = "(anonymous namespace)::";
	for (char *at; (at = strstr(name, anonymous));)
		drop_prefix(at, anonymous);
	drop_suffix(name, "::{lambda}");
}

/* "at::_ops::mm::call" is "aten::mm". */
static void name_as_profiler(char *name)
{
	static const char space[] = "aten::"; /* shorter */
	const char *function = name + strlen(call_of_operator);
	if (!begins_with(name, call_of_operator))
		return;
	size_t bytes = strcspn(function, ":");
	memmove(name + strlen(space), function, bytes);
	memcpy(name, space, strlen(space));
	name[strlen(space) + bytes] = 0;
}

void native_name_speaker(char name[CXX_NAME_BYTES], const struct native_speaker *speaker)
{
	if (speaker->place)
		cxx_name(name, speaker->place->function);
	else
		memcpy(name, speaker->frame->name, strlen(speaker->frame->name) + 1);
	drop_noise(name);
	if (speaker->is_backward) {
		drop_prefix(name, "torch::autograd::");
		drop_prefix(name, "generated::");
		drop_suffix(name, "::apply");
	} else {
		name_as_profiler(name);
	}
}

void native_add_frame(struct text *out, const struct defs *defs,
		      const struct def_native_frame *frame)
{
	const struct def_module *module = defs_module(defs, frame->module);
	text_add(out, module && *module->name ? module->name : "unknown");
	if (frame->name) {
		text_add_char(out, '!');
		text_add(out, frame->name);
	}
	text_printf(out, "+0x%llx",
		    (unsigned long long)(frame->symbol ? frame->symbol_offset : frame->offset));
}

void native_add_place(struct text *out, const struct def_place *place)
{
	char name[CXX_NAME_BYTES];
	cxx_name(name, place->function);
	text_add(out, *place->file ? place->file : "unknown");
	if (place->line)
		text_printf(out, ":%u", place->line);
	text_add_char(out, ' ');
	text_add(out, *name ? name : "unknown");
}
