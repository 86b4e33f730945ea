/* Where a block was born, as a program sees it: its line, whichever stacks that has; whether what is born there is each
 * thread's own, or of a function that autograd calls. Owns these. Must never take threads that add to one list or queue
 * for owners. */
#include <string.h>

#include "model/verdict_private.h"

#define DECORATORS_MAX 3

/* The node of the graph that ran, by its outermost frame; 0: none. */
static uint32_t node_of(const struct situation *at, const struct def_stack *stack)
{
	static const char node[] = "_ZN5torch8autograd9generated";
	uint32_t found = 0;
	for (uint32_t i = 0; i < stack->native_count; i++) {
		const struct def_native_frame *frame = defs_native_frame(at->m->defs, stack->native[i]);
		if (frame && frame->symbol && !strncmp(frame->symbol, node, sizeof node - 1))
			found = stack->native[i];
	}
	return found;
}

/* Of text that a notebook or exec() compiles, whose name may be another each time: <ipython-input-7-...>, <string>. */
static bool is_of_text(const struct def_python_frame *frame)
{
	return frame && (frame->file[0] == '<' || strstr(frame->file, "/ipython-input-"));
}

/* The Python frames of a stack; without any, the node of the graph, or the stack. A line has several stacks in the
 * course of a run: the interpreter adapts to what the line does, and its native frames with it; a node takes other
 * ways through the allocator. */
uint64_t verdict_place(const struct situation *at, uint32_t id)
{
	const struct def_stack *stack = defs_stack(at->m->defs, id);
	uint32_t node = stack && !stack->python_count ? node_of(at, stack) : 0;
	uint64_t place = stack && stack->python_count ? 0x9E3779B97F4A7C15u : node ? (uint64_t)node << 32 : id;
	for (uint32_t i = 0; stack && i < stack->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(at->m->defs, stack->python[i]);
		place = (place ^ (is_of_text(frame) ? (uint32_t)frame->line : stack->python[i])) * 0x100000001B3u;
	}
	return place;
}

static bool is_forward(const struct def_python_frame *frame)
{
	const char *dot = frame ? strrchr(frame->function, '.') : NULL;
	return dot && !strcmp(dot, ".forward");
}

/* Who called what stands at `from`: decorators of a forward() may stand between. */
static const struct def_python_frame *caller_of(const struct situation *at, const struct def_stack *stack, uint32_t from)
{
	const struct def_python_frame *first = NULL;
	for (uint32_t i = from + 1; i < stack->python_count && i <= from + 1 + DECORATORS_MAX; i++) {
		const struct def_python_frame *frame = defs_python_frame(at->m->defs, stack->python[i]);
		first = first ? first : frame;
		if (!frame || is_forward(frame))
			break;
		if (strstr(frame->file, "torch/nn/modules/module.py"))
			return frame;
	}
	return first;
}

bool is_in_function(const struct situation *at, uint32_t id)
{
	const struct def_stack *stack = defs_stack(at->m->defs, id);
	for (uint32_t i = 0; stack && i + 1 < stack->python_count; i++) {
		if (!is_forward(defs_python_frame(at->m->defs, stack->python[i])))
			continue;
		const struct def_python_frame *caller = caller_of(at, stack, i);
		return caller && (!mark_is_torch(caller->file) || strstr(caller->file, "autograd/function.py"));
	}
	return false;
}

/* ---------- threads ---------- */

struct lifetime { /* of a thread, at that place: windows of the growth; count 0: none */
	uint32_t count, first, last;
};

static void add_birth(struct lifetime *lifetime, uint32_t window)
{
	if (!lifetime->count++)
		lifetime->first = lifetime->last = window;
	lifetime->first = window < lifetime->first ? window : lifetime->first;
	lifetime->last = window > lifetime->last ? window : lifetime->last;
}

/* What a thread keeps for itself it makes once, when it begins. One that goes on making it adds to something. */
static bool are_of_beginnings(const struct lifetime *lifetimes, uint32_t windows)
{
	uint32_t threads = 0, brief = 0;
	for (uint32_t i = 0; i <= UINT16_MAX; i++) {
		const struct lifetime *lifetime = &lifetimes[i];
		threads += lifetime->count > 0;
		brief += lifetime->count && (lifetime->last - lifetime->first) * 4 <= windows;
	}
	return threads >= THREADS_LEAST && brief * 2 > threads;
}

/* … and no other thread takes it. */
static bool is_handed_over(const struct situation *at, uint32_t stack)
{
	const struct device *d = find_device(at->m, at->verdict->device);
	return d && bursts_were_handed(d, marks_at(at, stack).site, at->end);
}

bool is_a_threads_own(const struct situation *at, const struct trend_growth *growth, uint32_t stack)
{
	uint64_t place = verdict_place(at, stack);
	size_t bytes = ((size_t)UINT16_MAX + 1) * sizeof(struct lifetime);
	struct lifetime *lifetimes = is_handed_over(at, stack) ? NULL : arena_alloc(at->arena, bytes);
	if (!lifetimes)
		return false;
	for (size_t i = 0; i < at->map->block_count; i++) {
		const struct segment_block *block = &at->map->blocks[i];
		uint32_t window = trend_window_of(growth, block->born);
		if (block->thread && window != UINT32_MAX && verdict_place(at, block->stack) == place)
			add_birth(&lifetimes[block->thread], window);
	}
	bool is_own = are_of_beginnings(lifetimes, growth->windows);
	arena_free(at->arena, lifetimes, bytes);
	return is_own;
}
