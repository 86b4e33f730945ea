/* attribution: a training loop by hand, and what each block turns out to have been. */
#include "test_training_kit.h"

#include "trace/marks.h"

static void blocks_of_a_training_loop_get_their_categories(void **state)
{
	struct scene s;
	struct model_categories at_peak;
	struct model_step_totals totals;
	struct model_step step;
	(void)state;
	scene_open(&s);
	define_loop(&s);
	on(&s, MAIN);
	block(&s, AT, 4 * MIB, T_INIT);
	for (int i = 0; i < 3; i++)
		train_once(&s, i == 0);
	model_finish(s.m);

	assert_true(model_categories_at_peak(s.m, 0, &at_peak));
	check_bytes(at_peak.bytes, MODEL_PARAMETERS, 4 * MIB);
	check_bytes(at_peak.bytes, MODEL_INPUT, 1 * MIB);
	check_bytes(at_peak.bytes, MODEL_ACTIVATIONS, 8 * MIB);
	check_bytes(at_peak.bytes, MODEL_GRADIENTS, 4 * MIB);
	check_bytes(at_peak.bytes, MODEL_TEMPORARY, 16 * MIB + 512);
	check_bytes(at_peak.bytes, MODEL_OPTIMIZER_STATE, 8 * MIB);
	assert_int_equal(device(&s)->peak.phase, MODEL_PHASE_BACKWARD);
	assert_int_equal(device(&s)->peak.step, 2);

	model_step_totals(s.m, &totals);
	assert_int_equal(totals.steps, 3);
	assert_int_equal(totals.backwards, 3);
	assert_true(model_step(s.m, 0, &step));
	assert_int_equal(step.after[MODEL_AFTER_FORWARD].allocated_bytes, 13 * MIB);
	assert_int_equal(step.after[MODEL_AFTER_BACKWARD].allocated_bytes, 9 * MIB + 512);
	check_bytes(step.after[MODEL_AFTER_BACKWARD].categories.bytes, MODEL_GRADIENTS, 4 * MIB);
	assert_int_equal(step.after[MODEL_AFTER_OPTIMIZER].allocated_bytes, 17 * MIB);
	check_bytes(step.after[MODEL_AFTER_OPTIMIZER].categories.bytes, MODEL_OPTIMIZER_STATE, 8 * MIB);
	scene_close(&s);
}

/* What the program itself keeps, of any size: `at` is where. */
static void train_beside(struct scene *s, uint64_t at, uint64_t bytes, uint32_t stack, unsigned times)
{
	scene_open(s);
	define_loop(s);
	on(s, MAIN);
	block(s, AT, 4 * MIB, T_INIT);
	for (unsigned i = 0; i < 6; i++) {
		if (i < times)
			block(s, at + i * bytes, bytes, stack);
		train_once(s, i == 0);
	}
	model_finish(s->m);
}

static void what_the_program_keeps_is_told_apart(void **state)
{
	struct scene s;
	(void)state;
	train_beside(&s, 2 * AT, 4 * MIB, T_DEEPCOPY, 1); /* of a state_dict, not of a Parameter */
	check_at_peak(&s, MODEL_OTHER, 4 * MIB);
	train_beside(&s, 2 * AT, 4 * MIB, T_CLONE, 1);
	check_at_peak(&s, MODEL_OTHER, 4 * MIB);
	train_beside(&s, 2 * AT, 32 * MIB, T_STORE, 1); /* nothing trained has its size: data */
	check_at_peak(&s, MODEL_INPUT, 33 * MIB);
	train_beside(&s, 2 * AT, 2 * MIB, T_DATA, 6); /* one more in each step: all of them, and not the old ones */
	check_at_peak(&s, MODEL_OTHER, 12 * MIB);
}

/* saved = parameter.data.clone(); …; parameter.data = saved */
static void a_copy_that_takes_the_place_of_a_parameter_is_one(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	define_loop(&s);
	on(&s, MAIN);
	block(&s, AT, 4 * MIB, T_INIT);
	train_once(&s, true);
	block(&s, 2 * AT, 4 * MIB, T_CLONE);
	train_once(&s, false);
	train_once(&s, false);
	take_back(&s, AT, T_DATA);
	model_finish(s.m);
	check_at_peak(&s, MODEL_PARAMETERS, 8 * MIB);
}

/* ---------- a run that is cut in two ---------- */

static void train_and_leak(struct scene *s, uint64_t cut_after)
{
	scene_open(s);
	define_loop(s);
	on(s, MAIN);
	block(s, AT, 4 * MIB, T_INIT);
	for (uint64_t i = 0; i < 12; i++) {
		cut_at = i == 9 ? cut_after : cut_at;
		train_once(s, i == 0);
		block(s, AT + (20 + i) * MIB * 100, MIB, T_DATA);
	}
	put(s, MEMTRACE_BLOCK_OOM, MEMTRACE_SPACE_BLOCK, 0, 100 * MIB, 0, T_FORWARD);
}

static void compare_sizes(struct model *whole, struct model *cut)
{
	for (uint32_t i = 0; i < whole->attribution->sizes.capacity; i++) {
		const struct size_entry *a = &whole->attribution->sizes.entries[i];
		if (!a->bytes)
			continue;
		const struct size_entry *b = size_find(cut, a->bytes);
		assert_non_null(b);
		assert_memory_equal(a, b, offsetof(struct size_entry, newest));
	}
}

static void compare_loops(const struct loop *a, const struct loop *b)
{
	assert_memory_equal(a, b, offsetof(struct loop, call));
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
		assert_int_equal(!a->open[slot], !b->open[slot]);
		if (a->open[slot])
			assert_memory_equal(a->open[slot], b->open[slot], sizeof(struct step_record));
	}
}

static void compare_attribution(struct model *whole, struct model *cut)
{
	const struct attribution *a = whole->attribution, *b = cut->attribution;
	for (unsigned i = 0; i < LOOPS_MAX; i++)
		compare_loops(&a->loops[i], &b->loops[i]);
	assert_int_equal(a->steps.count, b->steps.count);
	for (uint64_t i = 0; step_kept(whole, i); i++)
		assert_memory_equal(step_kept(whole, i), step_kept(cut, i), sizeof(struct step_record));
	assert_int_equal(a->stamp, b->stamp);
	assert_int_equal(a->backwards, b->backwards);
	assert_int_equal(a->forwards, b->forwards);
	assert_int_equal(a->step_count, b->step_count);
	assert_memory_equal(a->loop_of_slot, b->loop_of_slot, sizeof a->loop_of_slot);
	compare_sizes(whole, cut);
}

static void compare_ooms(const struct suspect *a, const struct suspect *b)
{
	assert_memory_equal(&a->oom, &b->oom, sizeof a->oom);
	assert_memory_equal(a->trend, b->trend, sizeof *a->trend);
	assert_memory_equal(&a->work, &b->work, sizeof a->work);
}

/* Beyond the answers: also what later events build on. */
static void a_cut_loses_nothing_of_a_training_loop(void **state)
{
	struct scene whole, cut_one;
	(void)state;
	train_and_leak(&whole, 0);
	const struct device *a = find_device(whole.m, 0);
	assert_in_range(a->trend.steps.count, 5, TREND_WINDOWS - 1);
	for (uint64_t after = 1; after < whole.sequence; after++) {
		train_and_leak(&cut_one, after);
		cut_at = cut_one.sequence;
		cut(&cut_one); /* once more, of a run that has run out of memory */
		const struct device *b = find_device(cut_one.m, 0);
		assert_memory_equal(&a->trend, &b->trend, sizeof a->trend);
		compare_attribution(whole.m, cut_one.m);
		assert_int_equal(model_oom_count(cut_one.m), 1);
		compare_ooms(whole.m->ooms[0], cut_one.m->ooms[0]);
		scene_close(&cut_one);
	}
	scene_close(&whole);
}

static void what_was_frozen_is_saved(void **state)
{
	struct scene s;
	(void)state;
	train_and_leak(&s, 0);
	s.next.flags = MEMTRACE_AT_EXIT;
	put(&s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, 0, 0, 0, 0);
	struct device *d = find_device(s.m, 0);
	struct trend trend = *d->frozen_trend;
	struct work work = d->frozen_work;
	assert_int_equal(work.steps, 12);
	cut_at = s.sequence;
	cut(&s);
	d = find_device(s.m, 0);
	assert_memory_equal(&trend, d->frozen_trend, sizeof trend);
	assert_memory_equal(&work, &d->frozen_work, sizeof work);
	scene_close(&s);
}

/* 32 MiB in a module, 16 by what the program computes from it; all gone before `next`. */
static void drop_graph(struct scene *s, uint32_t next, bool computed_goes_first)
{
	scene_open(s);
	define_loop(s);
	on(s, MAIN);
	block(s, AT, 4 * MIB, T_INIT);
	train_once(s, true);
	block(s, 2 * AT, 16 * MIB, T_FORWARD);
	block(s, 3 * AT, 16 * MIB, T_FORWARD);
	block(s, 4 * AT, 16 * MIB, T_DATA);
	if (computed_goes_first)
		take_back(s, 4 * AT, T_DATA);
	for (uint64_t at = 2; at <= (computed_goes_first ? 3 : 4); at++)
		take_back(s, at * AT, T_DATA);
	block(s, 5 * AT, 512, next);
	model_finish(s->m);
}

static void a_graph_that_is_dropped_held_activations(void **state)
{
	struct scene s;
	(void)state;
	drop_graph(&s, T_FORWARD, false);
	check_at_peak(&s, MODEL_ACTIVATIONS, 48 * MIB);
	drop_graph(&s, T_FORWARD, true); /* by its own line, which needed it for itself */
	check_at_peak(&s, MODEL_ACTIVATIONS, 32 * MIB);
	drop_graph(&s, T_BACKWARD_CALL, false); /* what is saved for it must be elsewhere */
	check_at_peak(&s, MODEL_TEMPORARY, 48 * MIB);
}

/* The first pass runs out; what it has made goes with the exception. */
static void check_undecided_at_oom(const struct scene *s, uint64_t expected)
{
	struct model_categories at_oom;
	assert_true(model_categories_at_oom(s->m, 0, &at_oom));
	assert_int_equal(at_oom.provisional_bytes[MODEL_TEMPORARY] + at_oom.provisional_bytes[MODEL_OTHER], expected);
}

static void what_an_exception_takes_back_is_told_as_before(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	define_loop(&s);
	on(&s, MAIN);
	block(&s, AT, 4 * MIB, T_INIT);
	for (uint64_t at = 2; at <= 4; at++)
		block(&s, at * AT, 16 * MIB, T_FORWARD);
	block_oom(&s, 16 * MIB);
	check_undecided_at_oom(&s, 48 * MIB);
	for (uint64_t at = 4; at >= 2; at--)
		take_back(&s, at * AT, T_DATA);
	model_finish(s.m);
	check_undecided_at_oom(&s, 48 * MIB);
	scene_close(&s);
}

/* rows = randint(…); x = store[rows], after a call of a module that left no graph */
static void rows_that_are_drawn_are_input(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	define_loop(&s);
	on(&s, MAIN);
	block(&s, AT, 4 * MIB, T_INIT);
	train_once(&s, true);
	block(&s, 2 * AT, 512, T_FORWARD);
	take_back(&s, 2 * AT, T_DATA);
	block(&s, 3 * AT, 1 * MIB, T_DRAW);
	block(&s, 4 * AT, 64 * MIB, T_DATA);
	train_once(&s, false);
	model_finish(s.m);
	check_at_peak(&s, MODEL_INPUT, 66 * MIB);
}

/* Four blocks of a module and one that the program computes for it, none of which is ever taken back. */
static void train_and_retain(struct scene *s, uint64_t at)
{
	on(s, MAIN);
	block(s, at, 2 * MIB, T_DATA);
	for (unsigned i = 1; i <= 4; i++)
		block(s, at + i * 16 * MIB, 1 * MIB, T_FORWARD);
	block(s, AT + 3 * MIB * 100, 512, T_BACKWARD_CALL);
	on(s, ENGINE);
	block(s, AT + 5 * MIB * 100, 16 * MIB, T_NONE);
	take_back(s, AT + 5 * MIB * 100, T_NONE);
	on(s, MAIN);
	take_back(s, AT + 3 * MIB * 100, T_DATA);
}

static void what_a_whole_graph_keeps_is_no_input(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	define_loop(&s);
	on(&s, MAIN);
	block(&s, AT, 4 * MIB, T_INIT);
	for (unsigned i = 2; i < 8; i++)
		train_and_retain(&s, i * 16 * AT);
	model_finish(s.m);
	check_at_peak(&s, MODEL_ACTIVATIONS, 6 * (2 + 4) * MIB);
}

/* A cache made before the first of three calls; it goes when the interpreter ends, which tells nothing. */
static void without_training_what_is_made_of_zeros_is_a_cache(void **state)
{
	struct scene s;
	(void)state;
	scene_open(&s);
	define_loop(&s);
	on(&s, MAIN);
	block(&s, AT, 4 * MIB, T_INIT);
	block(&s, 2 * AT, 32 * MIB, T_STORE);
	block(&s, 3 * AT, 8 * MIB, T_STORE); /* copied to from the host: weights, or a batch */
	put(&s, MEMTRACE_COPY, MEMTRACE_SPACE_NONE, 3 * AT, 8 * MIB, 0, 0);
	for (unsigned i = 0; i < 3; i++) {
		block(&s, 4 * AT, 1 * MIB, T_FORWARD);
		take_back(&s, 4 * AT, T_DATA);
	}
	s.next.flags = MEMTRACE_AT_EXIT;
	take_back(&s, AT, T_DATA);
	take_back(&s, 2 * AT, T_DATA);
	model_finish(s.m);
	struct model_categories at_peak;
	assert_true(model_categories_at_peak(s.m, 0, &at_peak));
	check_bytes(at_peak.bytes, MODEL_PARAMETERS, 4 * MIB);
	check_at_peak(&s, MODEL_OTHER, 33 * MIB); /* with what the call returned */
}

static void check_mark(const char *file, const char *function, enum mark expected)
{
	uint32_t flags;
	assert_int_equal(mark_of_python(file, function, &flags), expected);
}

static void frames_are_known_by_the_end_of_their_path(void **state)
{
	(void)state;
	check_mark("/a/torch/x/torch/autograd/graph.py", "_engine_run_backward", MARK_BACKWARD);
	check_mark("/a/autograd/graph.py", "_engine_run_backward", MARK_USER);
	check_mark("/a/torch/optim/optimizer.py", "wrapper", MARK_OPTIMIZER);
	check_mark("/home/me/model.py", "Net.__init__", MARK_USER_INIT);
	check_mark("/a/torch/nn/modules/conv.py", "Conv2d.forward", MARK_USER);
	check_mark("/a/torch/nn/utils/prune.py", "L1Unstructured.compute_mask", MARK_PARAMETER);
	check_mark("/a/torch/nn/utils/prune.py", "BasePruningMethod.apply_mask", MARK_USER);
}

static struct stack_marks walked(const char *const (*frames)[2])
{
	struct marks_walk walk = {0};
	for (; (*frames)[0]; frames++)
		marks_walk_python(&walk, (*frames)[0], (*frames)[1], 1);
	marks_walk_end(&walk);
	return walk.marks;
}

static void a_module_may_be_run_without_being_called(void **state)
{
	static const char *const by_hand[][2] = {{"/me/net.py", "Layer.forward"}, {"/me/net.py", "Layer.fit"}, {0}};
	static const char *const outermost[][2] = {{"/me/net.py", "Layer.forward"}, {0}};
	static const char *const of_function[][2] = {{"/me/op.py", "Square.forward"},
						     {"/x/torch/autograd/function.py", "Function.apply"},
						     {"/me/op.py", "main"},
						     {0}};
	static const char *const no_method[][2] = {{"/me/net.py", "forward"}, {"/me/net.py", "main"}, {0}};
	(void)state;
	assert_int_equal(walked(by_hand).context, MARK_FORWARD);
	assert_int_equal(walked(outermost).context, MARK_FORWARD);
	assert_int_equal(walked(of_function).context, MARK_FUNCTION);
	assert_false(walked(of_function).flags & MARK_FLAG(MARK_FORWARD));
	assert_int_equal(walked(no_method).context, MARK_USER);
}

static void operators_are_known_by_their_mangled_names(void **state)
{
	(void)state;
	assert_int_equal(mark_of_symbol("_ZN2at4_ops5zeros4callEN3c108ArrayRef"), MARK_FACTORY | MARK_ZEROS);
	assert_int_equal(mark_of_symbol("_ZN2at4_ops19empty_memory_format4callEN3c108ArrayRef"),
			 MARK_FACTORY | MARK_ZEROS | MARK_EMPTY);
	assert_int_equal(mark_of_symbol("_ZN2at4_ops15randint_low_out4callE"), MARK_FACTORY | MARK_DRAW);
	assert_int_equal(mark_of_symbol("_ZN2at4_ops5clone4callE"), MARK_CLONE);
	assert_int_equal(mark_of_symbol("_ZN2at4_ops5stack4callE"), MARK_JOIN);
	assert_int_equal(mark_of_symbol("_ZN2at4_ops6linear4callE"), 0);
	assert_int_equal(mark_of_symbol("_ZN5torch8autograd12VariableType12_GLOBAL__N_15addmmE"), MARK_RECORDED);
	assert_true(mark_is_operator("_ZN2at4_ops6linear4callE"));
	assert_int_equal(mark_of_symbol("_ZN2at4_ops99zeros"), 0);
	assert_int_equal(mark_of_symbol("_ZN2at4cuda24getCurrentCUDABlasHandleEb"), MARK_WORKSPACE);
}

/* As often as the list is long: looked at after each call, it would take this test longer than it may. */
static void many_weights_cost_a_short_call_nothing(void **unused)
{
	enum { WEIGHTS = 300000, CALLS = 300000 };
	struct scene s;
	struct model_step_totals totals;
	(void)unused;
	scene_open(&s);
	define_loop(&s);
	on(&s, MAIN);
	s.is_long = true;
	for (uint64_t i = 0; i < WEIGHTS; i++)
		block(&s, AT + i * 4096, 4096, T_LOAD);
	for (uint64_t i = 0; i < CALLS; i++) {
		block(&s, AT - 4096, 4096, T_FORWARD);
		take_back(&s, AT - 4096, T_DATA);
	}
	model_step_totals(s.m, &totals);
	assert_int_equal(totals.backwards, 0);
	check_at_peak(&s, MODEL_PARAMETERS, WEIGHTS * 4096ull);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_of_a_training_loop_get_their_categories),
		cmocka_unit_test(what_the_program_keeps_is_told_apart),
		cmocka_unit_test(a_copy_that_takes_the_place_of_a_parameter_is_one),
		cmocka_unit_test(a_cut_loses_nothing_of_a_training_loop),
		cmocka_unit_test(what_was_frozen_is_saved),
		cmocka_unit_test(a_graph_that_is_dropped_held_activations),
		cmocka_unit_test(what_an_exception_takes_back_is_told_as_before),
		cmocka_unit_test(rows_that_are_drawn_are_input),
		cmocka_unit_test(what_a_whole_graph_keeps_is_no_input),
		cmocka_unit_test(without_training_what_is_made_of_zeros_is_a_cache),
		cmocka_unit_test(frames_are_known_by_the_end_of_their_path),
		cmocka_unit_test(a_module_may_be_run_without_being_called),
		cmocka_unit_test(operators_are_known_by_their_mangled_names),
		cmocka_unit_test(many_weights_cost_a_short_call_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
