/* A training loop by hand, for tests of the attribution: stacks of PyTorch's and of the program's, and one
 * iteration after the other. */
#ifndef TEST_TRAINING_KIT_H
#define TEST_TRAINING_KIT_H

#include "test_model_kit.h"

#include "model/model_private.h"
#include "model_state.h"

enum { /* stacks, by what the thread is doing */
       T_INIT = STACKS_END,
       T_DATA,
       T_FORWARD,
       T_BACKWARD_CALL,
       T_NONE,
       T_STEP,
       T_STEP_STATE, /* … of another native stack */
       T_ZERO,
       T_DEEPCOPY,
       T_LOAD,
       T_VIEW, /* lines of the program's */
       T_JOIN,
       T_RENEW,
       T_ADAM, /* two optimizers, stepped by one line */
       T_SGD,
       T_CALL, /* of a module, by the line that makes views */
       T_STACK,
       T_CLONE,
       T_STORE,
       T_DRAW,
       T_SLOW, /* zeros, made by a class that steps */
       T_END
};
enum { N_CLONE = 1, N_ZEROS, N_RANDINT, N_STACK };
enum { MAIN = 1, ENGINE = 9 };

#define AT 0x10000000ull

enum { /* frames */
       F_INIT = FRAMES_END,
       F_BATCH,
       F_CALL,
       F_BACKWARD,
       F_STEP,
       F_ZERO,
       F_DEEPCOPY,
       F_LOAD,
       F_VIEW,
       F_JOIN,
       F_RENEW,
       F_ADAM,
       F_SGD,
       F_SLOW,
       F_END
};

static const struct known_frame {
	const char *file, *function;
} known_frames[] = {
	[F_INIT] = {"/x/torch/nn/modules/linear.py", "Linear.__init__"},
	[F_BATCH] = {"/home/me/train.py", "batch"},
	[F_CALL] = {"/x/torch/nn/modules/module.py", "Module._call_impl"},
	[F_BACKWARD] = {"/x/torch/autograd/__init__.py", "backward"},
	[F_STEP] = {"/x/torch/optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper"},
	[F_ZERO] = {"/x/torch/optim/optimizer.py", "Optimizer.zero_grad"},
	[F_DEEPCOPY] = {"/x/torch/_tensor.py", "Tensor.__deepcopy__"},
	[F_LOAD] = {"/x/torch/serialization.py", "load"},
	[F_VIEW] = {"/home/me/train.py", "augment"},
	[F_JOIN] = {"/home/me/train.py", "collect"},
	[F_RENEW] = {"/home/me/train.py", "renew"},
	[F_ADAM] = {"/x/torch/optim/adam.py", "Adam.step"},
	[F_SGD] = {"/x/torch/optim/sgd.py", "SGD.step"},
	[F_SLOW] = {"/home/me/lookahead.py", "Lookahead.step"},
};

static const struct known_stack {
	uint32_t frames[3], native; /* innermost first; 0: no more */
} known_stacks[T_END] = {
	[T_INIT] = {{F_INIT}, 0},	      [T_DATA] = {{F_BATCH}, 0},
	[T_FORWARD] = {{F_CALL}, 0},	      [T_BACKWARD_CALL] = {{F_BACKWARD}, 0},
	[T_NONE] = {{0}, 0},		      [T_STEP] = {{F_STEP}, 0},
	[T_STEP_STATE] = {{F_STEP}, 0},	      [T_ZERO] = {{F_ZERO}, 0},
	[T_DEEPCOPY] = {{F_DEEPCOPY}, 0},     [T_LOAD] = {{F_LOAD}, 0},
	[T_VIEW] = {{F_VIEW}, 0},	      [T_JOIN] = {{F_JOIN}, 0},
	[T_RENEW] = {{F_RENEW}, 0},	      [T_ADAM] = {{F_ADAM, F_STEP, F_BATCH}, 0},
	[T_SGD] = {{F_SGD, F_STEP, F_BATCH}, 0}, [T_CLONE] = {{F_BATCH}, N_CLONE},
	[T_CALL] = {{F_CALL, F_VIEW}, 0},     [T_STACK] = {{F_BATCH}, N_STACK},
	[T_STORE] = {{F_BATCH}, N_ZEROS},     [T_DRAW] = {{F_BATCH}, N_RANDINT},
	[T_SLOW] = {{F_SLOW}, N_ZEROS},
};

/* Returns the first string that is free. */
static inline uint32_t define_frames(struct records *r, uint32_t string)
{
	for (uint32_t id = F_INIT; id < F_END; id++) {
		put_string(r, string, known_frames[id].file);
		put_string(r, string + 1, known_frames[id].function);
		put_python_frame(r, id, string, string + 1, 1);
		string += 2;
	}
	return string;
}

static inline void define_native(struct records *r, uint32_t string)
{
	static const char *const symbols[] = {"_ZN2at4_ops5clone4callE", "_ZN2at4_ops5zeros4callE",
					      "_ZN2at4_ops7randint4callE", "_ZN2at4_ops5stack4callE"};
	for (uint32_t native = N_CLONE; native <= N_STACK; native++) {
		put_string(r, string + native, symbols[native - N_CLONE]);
		put_native_frame(r, native, MODULE_TORCH, native * 16);
		put_symbol(r, native, string + native, 0);
	}
}

static inline void define_known_stack(struct records *r, uint32_t id)
{
	const struct known_stack *stack = &known_stacks[id];
	uint32_t frames[4], count = 0;
	while (count < 3 && stack->frames[count]) {
		frames[count] = stack->frames[count];
		count++;
	}
	frames[count] = stack->native;
	put_stack(r, id, MODULE_TORCH, count, stack->native != 0, frames);
}

static inline void define_loop(struct scene *s)
{
	static struct records r;
	memset(&r, 0, sizeof r);
	uint32_t string = define_frames(&r, 11);
	put_string(&r, string, "pt_autograd_0");
	put_thread(&r, ENGINE, 200, string);
	define_native(&r, string);
	for (uint32_t id = T_INIT; id < T_END; id++)
		define_known_stack(&r, id);
	assert_int_equal(defs_add(s->defs, r.data, r.used_bytes, NULL), 0);
}

static uint64_t cut_at; /* after this event a scene is saved and goes on from what is loaded; 0: never */

static inline void cut(struct scene *s)
{
	struct state state;
	int error;
	if (!cut_at || s->sequence < cut_at)
		return;
	cut_at = 0;
	assert_int_equal(state_save(&state, s->m), 0);
	model_release(s->m);
	s->m = state_load(&state, s->defs, 512, &error);
	assert_int_equal(error, 0);
	free(state.bytes);
}

static inline void on(struct scene *s, uint32_t thread)
{
	cut(s);
	s->next.thread = thread;
}

static inline void take_back(struct scene *s, uint64_t address, uint32_t stack)
{
	cut(s);
	put(s, MEMTRACE_BLOCK_FREE, MEMTRACE_SPACE_BLOCK, address, 0, 0, stack);
}

static inline void check_bytes(const uint64_t *bytes, enum model_category category, uint64_t expected)
{
	assert_int_equal(bytes[category], expected);
}

/* Parameter 4, batch 1, activations 8, gradient 4, scratch of backward 16, state 8 MiB. */
static inline void train_once(struct scene *s, bool first)
{
	on(s, MAIN);
	block(s, AT + 1 * MIB * 100, 1 * MIB, T_DATA);
	put(s, MEMTRACE_COPY, MEMTRACE_SPACE_NONE, AT + 1 * MIB * 100, 1 * MIB, 0, 0);
	block(s, AT + 2 * MIB * 100, 8 * MIB, T_FORWARD);
	cut(s);
	block(s, AT + 3 * MIB * 100, 512, T_BACKWARD_CALL);
	on(s, ENGINE);
	block(s, AT + 4 * MIB * 100, 4 * MIB, T_NONE);
	block(s, AT + 5 * MIB * 100, 16 * MIB, T_NONE);
	take_back(s, AT + 5 * MIB * 100, T_NONE);
	take_back(s, AT + 2 * MIB * 100, T_NONE);
	on(s, MAIN);
	take_back(s, AT + 3 * MIB * 100, T_DATA);
	if (first)
		block(s, AT + 6 * MIB * 100, 8 * MIB, T_STEP_STATE);
	else
		put(s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, 0, 0, 0, T_STEP);
	take_back(s, AT + 4 * MIB * 100, T_ZERO);
	take_back(s, AT + 1 * MIB * 100, T_DATA);
}

static inline void check_at_peak(struct scene *s, enum model_category category, uint64_t expected)
{
	struct model_categories at_peak;
	assert_true(model_categories_at_peak(s->m, 0, &at_peak));
	check_bytes(at_peak.bytes, category, expected);
	scene_close(s);
}

#endif
