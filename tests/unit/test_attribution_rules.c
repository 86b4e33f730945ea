/* attribution: what replaces another block, is read, joined or computed twice, and whose step it was. */
#include "test_training_kit.h"

#include "report/peak.h"

enum { VIEW_MIB = 3 };

static void begin(struct scene *s)
{
	scene_open(s);
	define_loop(s);
	on(s, MAIN);
	block(s, AT, 4 * MIB, T_INIT);
}

/* Two passes over views of one batch, which nothing but the graph holds when they go; `gradients`: how many of
 * a view's size the backward has then. */
static void train_on_views(struct scene *s, unsigned gradients, uint32_t call)
{
	on(s, MAIN);
	for (uint64_t i = 0; i < 2; i++) {
		block(s, AT + (20 + i) * MIB * 100, VIEW_MIB * MIB, T_VIEW);
		block(s, AT + (30 + i) * MIB * 100, 8 * MIB, call);
	}
	block(s, AT + 3 * MIB * 100, 512, T_BACKWARD_CALL);
	on(s, ENGINE);
	block(s, AT + 4 * MIB * 100, 4 * MIB, T_NONE);
	block(s, AT + 6 * MIB * 100, VIEW_MIB * MIB, T_NONE); /* of something else */
	take_back(s, AT + 6 * MIB * 100, T_NONE);
	for (uint64_t i = 2; i--;) {
		take_back(s, AT + (30 + i) * MIB * 100, T_NONE);
		if (gradients)
			block(s, AT + (40 + i) * MIB * 100, VIEW_MIB * MIB, T_NONE);
		take_back(s, AT + (20 + i) * MIB * 100, T_NONE);
		if (gradients)
			take_back(s, AT + (40 + i) * MIB * 100, T_NONE);
	}
	on(s, MAIN);
	take_back(s, AT + 3 * MIB * 100, T_DATA);
	put(s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, 0, 0, 0, T_STEP);
	take_back(s, AT + 4 * MIB * 100, T_ZERO);
}

/* The first is made before a module has run, the second after. */
static void a_view_of_the_data_has_no_gradient_and_a_computed_tensor_has(void **state)
{
	struct scene s;
	(void)state;
	for (unsigned gradients = 0; gradients < 2; gradients++) {
		begin(&s);
		for (unsigned i = 0; i < 3; i++)
			train_on_views(&s, gradients, T_FORWARD);
		model_finish(s.m);
		check_at_peak(&s, gradients ? MODEL_ACTIVATIONS : MODEL_INPUT,
			      2 * (gradients ? VIEW_MIB + 8 : VIEW_MIB) * MIB);
	}
}

static void ask(struct scene *s, uint64_t address, uint64_t bytes, uint64_t asked_bytes, uint32_t stack)
{
	put(s, MEMTRACE_BLOCK_ALLOC, MEMTRACE_SPACE_BLOCK, address, bytes, asked_bytes, stack);
}

/* module(x / 255) */
static void what_the_line_of_a_call_computes_for_it_is_of_the_graph(void **state)
{
	struct scene s;
	(void)state;
	begin(&s);
	for (unsigned i = 0; i < 3; i++)
		train_on_views(&s, 0, T_CALL);
	model_finish(s.m);
	check_at_peak(&s, MODEL_ACTIVATIONS, 2 * (VIEW_MIB + 8) * MIB);
}

/* On the engine's thread: what the engine made and a hook takes is a gradient, what the hook makes for itself is not. */
static void a_hook_takes_gradients_and_has_its_own_memory(void **state)
{
	struct scene s;
	(void)state;
	begin(&s);
	train_once(&s, true);
	block(&s, AT + 3 * MIB * 100, 512, T_BACKWARD_CALL);
	on(&s, ENGINE);
	block(&s, 2 * AT, 48 * MIB, T_NONE);
	block(&s, 3 * AT, 56 * MIB, T_VIEW);
	take_back(&s, 3 * AT, T_VIEW);
	take_back(&s, 2 * AT, T_VIEW);
	on(&s, MAIN);
	take_back(&s, AT + 3 * MIB * 100, T_DATA);
	model_finish(s.m);
	struct model_categories at_peak;
	assert_true(model_categories_at_peak(s.m, 0, &at_peak));
	check_bytes(at_peak.bytes, MODEL_GRADIENTS, 48 * MIB);
	check_at_peak(&s, MODEL_TEMPORARY, 56 * MIB + 512);
}

/* stack(observations) after calls without grad, trained on for several steps; of other sizes it is what the program keeps. */
static void what_inputs_were_joined_to_is_input(void **state)
{
	struct scene s;
	(void)state;
	for (uint64_t part = 16; part <= 24; part += 8) {
		begin(&s);
		train_once(&s, true);
		for (uint64_t i = 0; i < 4; i++) {
			ask(&s, (2 + i) * AT, part * MIB, part * MIB, T_DATA);
			put(&s, MEMTRACE_COPY, MEMTRACE_SPACE_NONE, (2 + i) * AT, part * MIB, 0, 0);
			block(&s, 8 * AT, 512, T_FORWARD);
			take_back(&s, 8 * AT, T_DATA);
		}
		ask(&s, 9 * AT, 64 * MIB, 64 * MIB, T_STACK);
		for (uint64_t i = 0; i < 4; i++)
			take_back(&s, (2 + i) * AT, T_DATA);
		for (unsigned i = 0; i < 6; i++)
			train_once(&s, false);
		take_back(&s, 9 * AT, T_DATA);
		model_finish(s.m);
		check_at_peak(&s, MODEL_INPUT, (4 * part + (part == 16 ? 64 : 0)) * MIB);
	}
}

/* x = cat([x, more]) after each step; with `more` of one size, or of another each time. */
static void grow(struct scene *s, bool is_even, unsigned times)
{
	uint64_t bytes = 0, address = 0;
	begin(s);
	for (uint64_t i = 0; i < times; i++) {
		train_once(s, i == 0);
		cut_at = i == 2 ? s->sequence : 0; /* what is known of the line has to be saved */
		bytes += (is_even ? 64 : 64 + 3 * (i & 1) + i) * MIB;
		block(s, (4 + i) * AT, bytes, T_JOIN);
		if (address)
			take_back(s, address, T_JOIN);
		address = (4 + i) * AT;
	}
	model_finish(s->m);
}

static void what_grows_by_as_much_each_time_is_kept(void **state)
{
	struct scene s;
	(void)state;
	grow(&s, true, 3);
	check_at_peak(&s, MODEL_OTHER, (2 + 3) * 64 * MIB);
	grow(&s, true, 8);
	check_at_peak(&s, MODEL_OTHER, (7 + 8) * 64 * MIB);
	grow(&s, false, 8); /* a batch of another length each time */
	check_at_peak(&s, MODEL_OTHER, 0);
}

/* Moments that the program joins with more of them. */
static void what_replaces_a_state_is_a_state(void **state)
{
	struct scene s;
	(void)state;
	begin(&s);
	train_once(&s, true);
	block(&s, 2 * AT, 64 * MIB, T_RENEW);
	take_back(&s, AT + 6 * MIB * 100, T_RENEW);
	train_once(&s, false);
	model_finish(s.m);
	check_at_peak(&s, MODEL_OPTIMIZER_STATE, 64 * MIB);
}

static uint32_t steps_of(struct scene *s)
{
	struct model_step_totals totals;
	model_step_totals(s->m, &totals);
	return (uint32_t)totals.steps;
}

/* By the functions named "step", unless it is known to be one optimizer. */
static void steps_of_two_classes_in_one_line_are_two(void **state)
{
	struct scene s;
	(void)state;
	begin(&s);
	train_once(&s, true);
	for (unsigned i = 0; i < 4; i++) { /* the second launches twice */
		put(&s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, 0, 0, 0, T_ADAM);
		put(&s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, 0, 0, 0, T_SGD);
		put(&s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, 0, 0, 0, T_SGD);
	}
	put(&s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, 0, 0, 0, T_DATA);
	assert_int_equal(steps_of(&s), 1 + 8);
	put(&s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, AT, 0, 0, T_ADAM);
	put(&s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, AT, 0, 0, T_SGD);
	put(&s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, 0, 0, 0, T_DATA);
	assert_int_equal(steps_of(&s), 1 + 9);
	scene_close(&s);
}

static void say_optimizer(struct scene *s, uint64_t optimizer)
{
	cut(s);
	put(s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, optimizer, 0, 0, T_STEP);
}

/* One line of one class: only by the object itself. One that is not known is no other. */
static void steps_of_two_optimizers_in_a_row_are_two(void **state)
{
	struct scene s;
	(void)state;
	begin(&s);
	train_once(&s, true);
	for (unsigned i = 0; i < 4; i++) {
		say_optimizer(&s, AT);
		say_optimizer(&s, 0);
		say_optimizer(&s, AT);
		say_optimizer(&s, 2 * AT);
		block(&s, 3 * AT + i * MIB * 100, MIB, T_STEP);
		say_optimizer(&s, 2 * AT);
	}
	assert_int_equal(steps_of(&s), 1 + 7); /* the last one goes on */
	put(&s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, 0, 0, 0, T_DATA);
	assert_int_equal(steps_of(&s), 1 + 8);
	say_optimizer(&s, AT); /* another than the last, in a step of its own */
	put(&s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, 0, 0, 0, T_DATA);
	assert_int_equal(steps_of(&s), 1 + 9);
	scene_close(&s);
}

static void a_step_of_the_engine_ends_with_the_backward(void **state)
{
	struct scene s;
	(void)state;
	begin(&s);
	train_once(&s, true);
	block(&s, AT, 512, T_BACKWARD_CALL);
	on(&s, ENGINE);
	say_optimizer(&s, AT);
	say_optimizer(&s, 2 * AT);
	assert_int_equal(steps_of(&s), 1 + 1);
	on(&s, MAIN);
	take_back(&s, AT, T_DATA);
	assert_int_equal(steps_of(&s), 1 + 2);
	scene_close(&s);
}

/* ---------- torch.load ---------- */

static void load(struct scene *s, const uint64_t *mib)
{
	for (uint64_t i = 0; mib[i]; i++)
		block(s, (2 + i) * AT, mib[i] * MIB, T_LOAD);
}

/* A model of 4 and 6 MiB goes on from what was read, in that order; the optimizer makes no state. */
static void resume(struct scene *s, const uint64_t *mib)
{
	begin(s);
	block(s, AT + 10 * MIB * 100, 6 * MIB, T_INIT);
	load(s, mib);
	for (unsigned i = 0; i < 3; i++)
		train_once(s, false);
	model_finish(s->m);
}

static void what_was_read_is_told_by_its_order(void **state)
{
	static const uint64_t momentum[] = {4, 6, 4, 6, 0}, moments[] = {4, 6, 4, 4, 6, 6, 0};
	struct scene s;
	(void)state;
	resume(&s, momentum);
	check_at_peak(&s, MODEL_OPTIMIZER_STATE, 10 * MIB);
	resume(&s, moments);
	check_at_peak(&s, MODEL_OPTIMIZER_STATE, 20 * MIB);
	resume(&s, moments);
	check_at_peak(&s, MODEL_OTHER, 10 * MIB); /* the weights, which the model has copied */
}

static void what_was_read_is_no_state_where_the_optimizer_makes_its_own(void **state)
{
	struct scene s;
	(void)state;
	begin(&s);
	block(&s, 2 * AT, 4 * MIB, T_LOAD);
	train_once(&s, false);
	block(&s, 3 * AT, 4 * MIB, T_STEP_STATE);
	train_once(&s, false);
	train_once(&s, false);
	model_finish(s.m);
	check_at_peak(&s, MODEL_OTHER, 4 * MIB);
}

/* The weights were read first and are gone before the momentum is. */
static void a_momentum_is_told_from_weights_that_are_gone(void **state)
{
	static const uint64_t weights[] = {4, 6, 0};
	struct scene s;
	(void)state;
	begin(&s);
	block(&s, AT + 10 * MIB * 100, 6 * MIB, T_INIT);
	load(&s, weights);
	block(&s, 8 * AT, 4 * MIB, T_LOAD);
	block(&s, 9 * AT, 6 * MIB, T_LOAD);
	take_back(&s, 2 * AT, T_DATA);
	take_back(&s, 3 * AT, T_DATA);
	for (unsigned i = 0; i < 3; i++)
		train_once(&s, false);
	model_finish(s.m);
	check_at_peak(&s, MODEL_OPTIMIZER_STATE, 10 * MIB);
}

/* ---------- gradients ---------- */

/* Two gradients; `joined` of them were asked for the vector. */
static void join(struct scene *s, uint64_t joined_bytes)
{
	begin(s);
	for (unsigned i = 0; i < 3; i++) {
		on(s, MAIN);
		block(s, AT + 2 * MIB * 100, 8 * MIB, T_FORWARD);
		block(s, AT + 3 * MIB * 100, 512, T_BACKWARD_CALL);
		on(s, ENGINE);
		ask(s, AT + 4 * MIB * 100, 4 * MIB, 4 * MIB, T_NONE);
		ask(s, AT + 5 * MIB * 100, 2 * MIB, 2 * MIB - 100, T_NONE);
		take_back(s, AT + 2 * MIB * 100, T_NONE);
		on(s, MAIN);
		take_back(s, AT + 3 * MIB * 100, T_DATA);
		ask(s, AT + 6 * MIB * 100, 32 * MIB, joined_bytes, T_RENEW);
		put(s, MEMTRACE_PHASE, MEMTRACE_SPACE_NONE, 0, 0, 0, T_STEP);
		take_back(s, AT + 4 * MIB * 100, T_ZERO);
		take_back(s, AT + 5 * MIB * 100, T_ZERO);
		block(s, AT + 7 * MIB * 100, 512, T_FORWARD);
		take_back(s, AT + 7 * MIB * 100, T_DATA);
		take_back(s, AT + 6 * MIB * 100, T_DATA);
	}
	model_finish(s->m);
}

static void gradients_joined_to_one_vector_are_gradients(void **state)
{
	struct scene s;
	(void)state;
	join(&s, 6 * MIB - 100);
	check_at_peak(&s, MODEL_GRADIENTS, (32 + 6) * MIB);
	join(&s, 6 * MIB - 612); /* as long as nothing that trains */
	check_at_peak(&s, MODEL_GRADIENTS, 6 * MIB);
}

/* ---------- a pass that has not ended ---------- */

static void check_words(struct scene *s, const char *there, const char *not_there)
{
	struct text text;
	text_init(&text);
	peak_print_categories(&text, s->m, device(s), true);
	assert_non_null(strstr(text_string(&text), there));
	assert_null(strstr(text_string(&text), not_there));
	text_release(&text);
}

static void what_an_open_pass_has_made_is_a_row_of_its_own(void **state)
{
	struct scene s;
	(void)state;
	begin(&s);
	for (uint64_t at = 2; at <= 4; at++)
		block(&s, at * AT, 16 * MIB, T_FORWARD);
	check_words(&s, "of this pass", "temporary");
	check_words(&s, "48 MiB", "activations  ");
	for (uint64_t at = 4; at >= 2; at--) /* without a backward: none were activations */
		take_back(&s, at * AT, T_DATA);
	block(&s, 2 * AT, 512, T_DATA);
	check_words(&s, "48 MiB", "of this pass");
	scene_close(&s);
	begin(&s);
	train_once(&s, true);
	check_words(&s, "activations", "of this pass");
	scene_close(&s);
}

/* `others`: of 16 MiB, that a backward which leaves its graph has left beside the gradient. */
static void differentiate_twice(struct scene *s, uint64_t others)
{
	on(s, MAIN);
	for (uint64_t i = 0; i < 4; i++)
		block(s, AT + (20 + i) * MIB * 100, 8 * MIB, T_FORWARD);
	block(s, AT + 3 * MIB * 100, 512, T_BACKWARD_CALL);
	on(s, ENGINE);
	block(s, AT + 4 * MIB * 100, 4 * MIB, T_NONE);
	for (uint64_t i = 0; i < others; i++)
		block(s, AT + (30 + i) * MIB * 100, 16 * MIB, T_NONE);
	on(s, MAIN);
	take_back(s, AT + 3 * MIB * 100, T_DATA);
	for (uint64_t i = 0; i < others; i++)
		take_back(s, AT + (30 + i) * MIB * 100, T_DATA);
	for (uint64_t i = 0; i < 4; i++)
		take_back(s, AT + (20 + i) * MIB * 100, T_DATA);
	take_back(s, AT + 4 * MIB * 100, T_ZERO);
	model_finish(s->m);
}

static void what_gradients_are_differentiated_with_is_of_a_graph(void **state)
{
	struct scene s;
	(void)state;
	for (uint64_t others = 3; others <= 4; others++) {
		begin(&s);
		train_once(&s, true);
		differentiate_twice(&s, others);
		check_at_peak(&s, MODEL_GRADIENTS, (others == 3 ? 4 + 3 * 16 : 4) * MIB);
	}
}

static void what_is_made_from_nothing_when_training_has_begun_is_no_data(void **state)
{
	struct scene s;
	(void)state;
	for (unsigned is_late = 0; is_late < 2; is_late++) {
		begin(&s);
		if (is_late)
			train_once(&s, true);
		block(&s, 2 * AT, 256 * MIB, T_STORE);
		for (unsigned i = is_late; i < 8; i++)
			train_once(&s, !i);
		model_finish(s.m);
		check_at_peak(&s, is_late ? MODEL_OTHER : MODEL_INPUT, (is_late ? 256 : 257) * MIB);
	}
}

static void what_a_class_makes_of_zeros_as_it_steps_is_its_state(void **state)
{
	struct scene s;
	(void)state;
	for (unsigned steps = 0; steps < 2; steps++) {
		begin(&s);
		train_once(&s, true);
		block(&s, 2 * AT, 4 * MIB, steps ? T_SLOW : T_STORE);
		for (unsigned i = 0; i < 5; i++)
			train_once(&s, false);
		model_finish(s.m);
		check_at_peak(&s, MODEL_OPTIMIZER_STATE, (steps ? 12 : 8) * MIB);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_view_of_the_data_has_no_gradient_and_a_computed_tensor_has),
		cmocka_unit_test(what_the_line_of_a_call_computes_for_it_is_of_the_graph),
		cmocka_unit_test(a_hook_takes_gradients_and_has_its_own_memory),
		cmocka_unit_test(what_inputs_were_joined_to_is_input),
		cmocka_unit_test(what_grows_by_as_much_each_time_is_kept),
		cmocka_unit_test(what_replaces_a_state_is_a_state),
		cmocka_unit_test(steps_of_two_classes_in_one_line_are_two),
		cmocka_unit_test(steps_of_two_optimizers_in_a_row_are_two),
		cmocka_unit_test(a_step_of_the_engine_ends_with_the_backward),
		cmocka_unit_test(what_was_read_is_told_by_its_order),
		cmocka_unit_test(what_was_read_is_no_state_where_the_optimizer_makes_its_own),
		cmocka_unit_test(a_momentum_is_told_from_weights_that_are_gone),
		cmocka_unit_test(gradients_joined_to_one_vector_are_gradients),
		cmocka_unit_test(what_an_open_pass_has_made_is_a_row_of_its_own),
		cmocka_unit_test(what_gradients_are_differentiated_with_is_of_a_graph),
		cmocka_unit_test(what_is_made_from_nothing_when_training_has_begun_is_no_data),
		cmocka_unit_test(what_a_class_makes_of_zeros_as_it_steps_is_its_state),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
