/* The table of marks and how a stack is read with it. Owns every name of PyTorch that the
 * classification depends on. Must never compare a whole path: installations differ in where they
 * are. */
#include "trace/marks.h"

#include <string.h>

#define FLAG_ONLY MARK_COUNT /* in the table: no context, only a flag */

/* `file`: after the last "/torch/"; one that ends with '/' is a folder, at any place in it if `anywhere`.
 * `function`: last component of the qualified name, NULL any; "~x": x occurs in the whole of it. */
struct python_mark {
	const char *file, *function;
	uint8_t mark;
	uint32_t flag;
};

static const struct python_mark torch_marks[] = {
	{"autograd/graph.py", "_engine_run_backward", MARK_BACKWARD, 0},
	{"autograd/__init__.py", "backward", MARK_BACKWARD_CALL, 0},
	{"autograd/__init__.py", "_make_grads", MARK_BACKWARD_CALL, 0},
	{"autograd/__init__.py", "grad", MARK_GRAD_CALL, 0},
	{"autograd/function.py", "apply", MARK_FUNCTION, 0},
	{"optim/optimizer.py", "~profile_hook_step", MARK_OPTIMIZER, 0},
	{"optim/optimizer.py", "wrapper", MARK_OPTIMIZER, 0},
	{"optim/optimizer.py", "load_state_dict", MARK_OPTIMIZER_LOAD, 0},
	{"optim/optimizer.py", "_process_value_according_to_param_policy", MARK_OPTIMIZER_LOAD, 0},
	{"optim/optimizer.py", "zero_grad", FLAG_ONLY, MARK_ZERO_GRAD},
	{"optim/optimizer.py", NULL, MARK_USER, 0},
	{"optim/", "_init_group", FLAG_ONLY, MARK_INIT_GROUP},
	{"optim/", NULL, FLAG_ONLY, MARK_OPTIMIZER_FILE},
	{"nn/modules/module.py", "_apply", MARK_PARAMETER, 0},
	{"nn/modules/module.py", "to_empty", MARK_PARAMETER, 0},
	{"nn/modules/module.py", "load_state_dict", MARK_PARAMETER, 0},
	{"nn/modules/module.py", "_load_from_state_dict", MARK_PARAMETER, 0},
	{"nn/modules/module.py", "_call_impl", MARK_FORWARD, 0},
	{"nn/modules/module.py", "_wrapped_call_impl", MARK_FORWARD, 0},
	{"nn/modules/module.py", NULL, MARK_USER, 0},
	{"nn/modules/", "__init__", MARK_PARAMETER, 0},
	{"nn/modules/", "reset_parameters", MARK_PARAMETER, 0},
	{"nn/modules/", "_reset_parameters", MARK_PARAMETER, 0},
	{"nn/modules/", "flatten_parameters", MARK_PARAMETER, 0},
	{"nn/parameter.py", NULL, MARK_PARAMETER, 0},
	{"nn/utils/", "__init__", MARK_PARAMETER, 0},
	{"nn/utils/", "right_inverse", MARK_PARAMETER, 0},
	{"nn/utils/", "register_parametrization", MARK_PARAMETER, 0},
	{"nn/utils/fusion.py", NULL, MARK_PARAMETER, 0},
	{"nn/utils/prune.py", "compute_mask", MARK_PARAMETER, 0},
	{"nn/init.py", NULL, MARK_INIT, 0},
	{"_tensor.py", "__deepcopy__", MARK_COPY, 0},
	{"serialization.py", NULL, MARK_LOAD, 0},
	{"utils/checkpoint.py", NULL, FLAG_ONLY, MARK_CHECKPOINT},
	{"amp/autocast_mode.py", "__exit__", FLAG_ONLY, MARK_AUTOCAST_END},
	{"nn/parallel/distributed.py", "_ddp_init_helper", MARK_DDP_INIT, 0},
	{"distributed/fsdp/", "_init_sharded_param", MARK_PARAMETER, 0},
	{"distributed/fsdp/", "init_all_gather_outputs", MARK_PARAMETER, 0},
	{"distributed/fsdp/", "alloc_all_gather_outputs", MARK_PARAMETER, 0},
	{"distributed/fsdp/", "init_unsharded_param", MARK_PARAMETER, 0},
	{"distributed/fsdp/", "alloc_storage", MARK_PARAMETER, 0},
	{"distributed/fsdp/", "free_storage", MARK_PARAMETER, 0},
	{"distributed/fsdp/", "_free_storage", MARK_PARAMETER, 0},
	{"distributed/fsdp/", "_alloc_storage", MARK_PARAMETER, 0},
	{"distributed/fsdp/", "_init_flat_param", MARK_PARAMETER, 0},
	{"distributed/fsdp/", "flatten_tensors", MARK_PARAMETER, 0},
	{"distributed/fsdp/", "flatten_tensors_into_flat_param", MARK_PARAMETER, 0},
	{"distributed/fsdp/", "allocate", MARK_COMMUNICATION, 0},
	{"distributed/fsdp/", "foreach_all_gather", MARK_COMMUNICATION, 0},
	{"distributed/fsdp/", "foreach_reduce", MARK_COMMUNICATION, 0},
	{"distributed/fsdp/", "all_gather_copy_in", MARK_COMMUNICATION, 0},
	{"distributed/fsdp/", "_reduce_grad", MARK_COMMUNICATION, 0},
	{"distributed/fsdp/", "_all_gather_flat_param", MARK_COMMUNICATION, 0},
	{"_functorch/_aot_autograd/", NULL, FLAG_ONLY, MARK_COMPILED},
	{"_functorch/", NULL, FLAG_ONLY, MARK_TRANSFORM},
};

static const struct python_mark user_marks[] = {
	{NULL, "__init__", MARK_USER_INIT, 0},
	{NULL, "from_pretrained", MARK_PARAMETER, 0},
	{NULL, "load_state_dict", MARK_PARAMETER, 0},
	{NULL, "load_weights", MARK_PARAMETER, 0},
	{NULL, "load_model", MARK_PARAMETER, 0},
	{NULL, "load_checkpoint", MARK_PARAMETER, 0},
	{NULL, "load_checkpoint_in_model", MARK_PARAMETER, 0},
	{NULL, "set_module_tensor_to_device", MARK_PARAMETER, 0},
	{NULL, "_load_state_dict_into_meta_model", MARK_PARAMETER, 0},
	{NULL, "closure", MARK_CLOSURE, 0},
	{NULL, "training_step", MARK_CLOSURE, 0},
	{NULL, "optimizer_closure", MARK_CLOSURE, 0},
};

/* Inside PyTorch's package; NULL: not in it. */
static const char *torch_path(const char *file)
{
	const char *found = NULL;
	for (const char *at = file; (at = strstr(at, "/torch/")); at += 6)
		found = at + 7;
	return found;
}

bool mark_is_torch(const char *file)
{
	return torch_path(file) != NULL;
}

static bool file_matches(const char *file, const char *pattern)
{
	size_t length = strlen(pattern);
	if (pattern[length - 1] == '/')
		return !strncmp(file, pattern, length);
	return !strcmp(file, pattern);
}

static bool function_matches(const char *function, const char *last, const char *pattern)
{
	if (!pattern)
		return true;
	return *pattern == '~' ? strstr(function, pattern + 1) != NULL : !strcmp(last, pattern);
}

static enum mark take(const struct python_mark *row, uint32_t *flags)
{
	if (row->mark != FLAG_ONLY)
		return row->mark;
	*flags |= row->flag;
	return MARK_USER;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);
	return length >= end_length && !strcmp(text + length - end_length, end);
}

static enum mark mark_of_user(const char *file, const char *last, uint32_t *flags)
{
	if (!strncmp(file, "<eval_with_key>", 15)) {
		*flags |= MARK_COMPILED;
		return MARK_USER;
	}
	for (size_t i = 0; i < sizeof user_marks / sizeof *user_marks; i++)
		if (!strcmp(last, user_marks[i].function))
			return take(&user_marks[i], flags);
	return ends_with(file, "/transformers/core_model_loading.py") ? MARK_PARAMETER : MARK_USER;
}

enum mark mark_of_python(const char *file, const char *function, uint32_t *flags)
{
	const char *dot = strrchr(function, '.'), *last = dot ? dot + 1 : function;
	const char *inside = torch_path(file);
	*flags = 0;
	if (!inside)
		return mark_of_user(file, last, flags);
	for (size_t i = 0; i < sizeof torch_marks / sizeof *torch_marks; i++)
		if (file_matches(inside, torch_marks[i].file) &&
		    function_matches(function, last, torch_marks[i].function))
			return take(&torch_marks[i], flags);
	return MARK_USER;
}

/* ---------- native ---------- */

struct symbol_mark {
	const char *prefix; /* of the mangled name */
	uint32_t flags;
};

static const struct symbol_mark symbol_marks[] = {
	{"_ZN2at4cuda24getCurrentCUDABlasHandle", MARK_WORKSPACE},
	{"_ZN2at4cuda25allocateCUDABlasWorkspace", MARK_WORKSPACE},
	{"_ZN2at4cuda22getCUDABlasLtWorkspace", MARK_WORKSPACE},
	{"_ZN4c10d7Reducer", MARK_REDUCER},
	{"_ZN2at8autocast11cached_cast", MARK_CAST},
	{"_ZN5torch8autograd12VariableType", MARK_RECORDED},
	{"_ZN5torch8autograd6Engine11thread_main", MARK_ENGINE},
	{"_ZN5torch8autograd6Engine17evaluate_function", MARK_ENGINE},
};

#define OPERATORS "_ZN2at4_ops"

static const char *const zeros[] = {"zeros",     "zeros_like", "ones",	   "ones_like", "full",
				    "full_like", "new_zeros",  "new_ones", "new_full"};
static const char *const empties[] = {"empty", "empty_like", "new_empty"};
static const char *const factories[] = {"randn",    "rand",   "arange", "randn_like", "rand_like",
					"linspace", "eye",    "normal", "scalar_tensor",
					"bernoulli", "empty_strided"};
static const char *const joins[] = {"cat", "concat", "stack", "hstack", "vstack"};
static const char *const draws[] = {"randint", "randint_like", "randperm"};

/* `name` without overload suffixes: cut at '_' from the right. Longest first. */
static bool is_listed(const char *const *list, size_t count, const char *name, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == length && !memcmp(list[i], name, length))
			return true;
	return false;
}

static uint32_t mark_of_operator(const char *name, size_t length)
{
	if (length == 5 && !memcmp(name, "clone", 5))
		return MARK_CLONE;
	while (length) {
		if (is_listed(zeros, sizeof zeros / sizeof *zeros, name, length))
			return MARK_FACTORY | MARK_ZEROS;
		if (is_listed(empties, sizeof empties / sizeof *empties, name, length))
			return MARK_FACTORY | MARK_ZEROS | MARK_EMPTY;
		if (is_listed(draws, sizeof draws / sizeof *draws, name, length))
			return MARK_FACTORY | MARK_DRAW;
		if (is_listed(factories, sizeof factories / sizeof *factories, name, length))
			return MARK_FACTORY;
		if (is_listed(joins, sizeof joins / sizeof *joins, name, length))
			return MARK_JOIN;
		while (length && name[length - 1] != '_')
			length--;
		if (length)
			length--;
	}
	return 0;
}

/* at::_ops::X::call: the length of X and where it is. */
static size_t operator_name(const char *symbol, const char **name)
{
	size_t length = 0, prefix = sizeof OPERATORS - 1;
	if (strncmp(symbol, OPERATORS, prefix))
		return 0;
	const char *at = symbol + prefix;
	for (; *at >= '0' && *at <= '9' && length < 1000; at++)
		length = length * 10 + (size_t)(*at - '0');
	*name = at;
	if (strnlen(at, length + 5) < length + 5 || memcmp(at + length, "4call", 5))
		return 0;
	return length;
}

bool mark_is_operator(const char *symbol)
{
	const char *name;
	return operator_name(symbol, &name) > 0;
}

uint32_t mark_of_symbol(const char *symbol)
{
	const char *name;
	size_t length = operator_name(symbol, &name);
	if (length)
		return mark_of_operator(name, length);
	for (size_t i = 0; i < sizeof symbol_marks / sizeof *symbol_marks; i++)
		if (!strncmp(symbol, symbol_marks[i].prefix, strlen(symbol_marks[i].prefix)))
			return symbol_marks[i].flags;
	return 0;
}

/* ---------- stacks ---------- */

static bool is_installed(const char *file)
{
	return strstr(file, "site-packages") || strstr(file, "dist-packages");
}

static uint32_t hash_function(const char *file, const char *function, uint32_t line)
{
	uint32_t hash = 2166136261u ^ line;
	for (; *file; file++)
		hash = (hash ^ (uint8_t)*file) * 16777619u;
	for (; *function; function++)
		hash = (hash ^ (uint8_t)*function) * 16777619u;
	return hash | 1;
}

uint32_t mark_step_class(const char *file, const char *function)
{
	size_t length = strlen(function);
	bool is_step = length >= 4 && !strcmp(function + length - 4, "step");
	return is_step ? hash_function(file, function, 0) : 0;
}

static void add_mark(struct marks_walk *walk, enum mark mark)
{
	struct stack_marks *marks = &walk->marks;
	if (!mark)
		return;
	marks->flags |= MARK_FLAG(mark);
	if (!marks->context)
		marks->context = (uint8_t)mark;
	else if (marks->context == MARK_CLOSURE && !walk->beyond_closure && mark != MARK_CLOSURE)
		walk->beyond_closure = (uint8_t)mark;
}

/* `self.forward(x)`: a module is run without being called. That of a Function runs where it is applied. */
static void end_forward(struct marks_walk *walk, enum mark caller)
{
	if (walk->is_forward && caller != MARK_FUNCTION)
		add_mark(walk, MARK_FORWARD);
	walk->is_forward = false;
}

static bool is_method(const char *function, const char *name)
{
	const char *dot = strrchr(function, '.');
	return dot && !strcmp(dot + 1, name);
}

void marks_walk_python(struct marks_walk *walk, const char *file, const char *function, uint32_t frame)
{
	struct stack_marks *marks = &walk->marks;
	uint32_t flags = 0;
	enum mark mark = mark_of_python(file, function, &flags);
	bool is_torch = torch_path(file) != NULL;
	end_forward(walk, mark);
	if (!walk->count++)
		marks->flags |= MARK_IS_PYTHON | (is_installed(file) ? MARK_LIBRARY : 0);
	if (!marks->site && !is_torch)
		marks->site = frame;
	if (walk->is_site_next && !is_torch) {
		marks->step_site = frame;
		walk->is_site_next = false;
	}
	uint32_t class = mark_step_class(file, function);
	walk->step_class = class ? class : walk->step_class;
	if (mark == MARK_OPTIMIZER) {
		walk->is_site_next = true;
		marks->step_class = walk->step_class;
	}
	walk->has_user |= !is_torch && !mark && !flags;
	/* The program's code called by an optimizer. */
	if (flags & MARK_OPTIMIZER_FILE && !marks->context && walk->has_user)
		mark = MARK_CLOSURE;
	marks->flags |= flags | (!is_torch && is_method(function, "step") ? MARK_STEP_METHOD : 0);
	add_mark(walk, mark);
	walk->is_forward = !is_torch && is_method(function, "forward");
	walk->is_outermost_torch = is_torch; /* of the outermost frame so far */
}

void marks_walk_end(struct marks_walk *walk)
{
	end_forward(walk, MARK_USER);
	if (walk->count && !walk->is_outermost_torch)
		walk->marks.flags |= MARK_USER_BASE;
	if (walk->marks.context == MARK_CLOSURE && !(walk->marks.flags & MARK_FLAG(MARK_OPTIMIZER)))
		walk->marks.context = walk->beyond_closure;
}

/* Of operators only the outermost counts: what Python called. */
static uint16_t native_marks(const struct defs *defs, const struct def_stack *stack)
{
	uint32_t flags = 0, operator_flags = 0;
	for (uint32_t i = 0; i < stack->native_count; i++) {
		const struct def_native_frame *frame = defs_native_frame(defs, stack->native[i]);
		if (!frame || !frame->symbol)
			continue;
		if (mark_is_operator(frame->symbol))
			operator_flags = mark_of_symbol(frame->symbol);
		else
			flags |= mark_of_symbol(frame->symbol);
	}
	return (uint16_t)(flags | operator_flags);
}

static struct code_place place_of(const struct def_python_frame *frame)
{
	return (struct code_place){
		.function = hash_function(frame->file, frame->function, 0),
		.line = hash_function(frame->file, frame->function, (uint32_t)frame->line),
	};
}

void marks_of_stack(const struct defs *defs, uint32_t id, struct stack_marks *marks)
{
	const struct def_stack *stack = defs_stack(defs, id);
	struct marks_walk walk = {0};
	unsigned places = 0;
	for (uint32_t i = 0; stack && i < stack->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(defs, stack->python[i]);
		if (!frame)
			continue;
		marks_walk_python(&walk, frame->file, frame->function, stack->python[i]);
		if (places < MARKS_PLACES && !mark_is_torch(frame->file))
			walk.marks.places[places++] = place_of(frame);
	}
	marks_walk_end(&walk);
	if (stack)
		walk.marks.native = native_marks(defs, stack);
	*marks = walk.marks;
}
