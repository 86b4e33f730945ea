/* model: a state that is damaged gives an error or a model, never more than that; and what the random
 * events of test_model_random.c do not reach: a failure under suspicion, an OOM, work on a model. */
#include <stdio.h>

#include "model/verdict.h"
#include "model_state.h"
#include "test_model_kit.h"

enum { DAMAGES = 20000, EVENTS_AFTER = 30 };

static uint64_t random_state = 7;

static uint32_t any(uint32_t below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % below;
}

/* A bit of everything that a state may hold. */
static void play(struct scene *s)
{
	put(s, MEMTRACE_RESERVE, MEMTRACE_SPACE_VMM, 0x100000, 8 * MIB, 0, TORCH);
	obtain(s, MEMTRACE_SPACE_VMM, 77, 2 * MIB, TORCH);
	map(s, 0x100000, 2 * MIB, 77);
	block(s, 0x100000, MIB, TORCH);
	s->next.flags = ELEMENT_2_BYTES << MEMTRACE_ELEMENT_SHIFT;
	block(s, 0x100000 + MIB, 512, TORCH_OTHER);
	s->next.flags = 0;
	obtain(s, MEMTRACE_SPACE_VMM, 78, 2 * MIB, TORCH);
	give_back(s, MEMTRACE_SPACE_VMM, 78, TORCH); /* a zombie */
	obtain(s, MEMTRACE_SPACE_DEVICE, 0x9000000, MIB, NCCL);
	obtain(s, MEMTRACE_SPACE_PINNED, 0xa000000, MIB, PROGRAM);
	put(s, MEMTRACE_POOL_CREATE, MEMTRACE_SPACE_NONE, 5, 0, 0, PROGRAM);
	put(s, MEMTRACE_GRAPH_ALLOC, MEMTRACE_SPACE_STREAM, 0xb000000, MIB, 9, PROGRAM);
	put(s, MEMTRACE_GRAPH_EXEC, MEMTRACE_SPACE_NONE, 10, 0, 9, PROGRAM);
	block_oom(s, 100 * MIB);
	s->next.thread = 2;
	run_out(s, MEMTRACE_SPACE_DEVICE, 64 * MIB, PROGRAM);
	s->next.thread = 1;
	give_back(s, MEMTRACE_SPACE_DEVICE, 0x9000000, NCCL); /* may still fail */
}

static void save_played(struct scene *s, struct state *state)
{
	scene_open(s);
	play(s);
	assert_int_equal(state_save(state, s->m), 0);
}

static void what_was_open_at_the_cut_is_settled_after_it(void **unused)
{
	struct scene s;
	struct state state;
	int error;
	(void)unused;
	save_played(&s, &state);
	uint64_t free_sequence = s.sequence;
	model_release(s.m);
	s.m = state_load(&state, s.defs, 512, &error);
	assert_int_equal(error, 0);
	free(state.bytes);
	assert_int_equal(model_oom_count(s.m), 1);
	assert_int_equal(model_elements(s.m, TORCH_OTHER, 512).bytes[ELEMENT_2_BYTES], 512);
	assert_int_equal(model_elements(s.m, TORCH, 512).bytes[ELEMENT_UNKNOWN], 512);
	assert_int_equal(device(&s)->reserved.current_bytes, 2 * MIB);
	fail_free(&s, free_sequence);
	assert_int_equal(device(&s)->reserved.current_bytes, 3 * MIB);
	put(&s, MEMTRACE_GRAPH_LAUNCH, MEMTRACE_SPACE_NONE, 10, 0, 0, PROGRAM);
	assert_int_equal(device(&s)->reserved.current_bytes, 4 * MIB);
	put(&s, MEMTRACE_RETAIN, MEMTRACE_SPACE_VMM, 78, 0, 0, TORCH); /* the zombie lives again */
	assert_int_equal(device(&s)->reserved.current_bytes, 6 * MIB);
	model_finish(s.m);
	assert_int_equal(model_oom_count(s.m), 2); /* the suspicion was right */
	scene_close(&s);
}

/* ---------- damage ---------- */

static struct event any_event(uint64_t sequence)
{
	static const uint64_t addresses[] = {0x100000, 0x100000 + MIB, 77,	  78,
					     0x9000000, 0xa000000,     0xb000000, 9};
	return (struct event){.what = (enum memtrace_what)(1 + any(MEMTRACE_WHAT_COUNT - 1)),
			      .space = (enum memtrace_space)any(MEMTRACE_SPACE_COUNT),
			      .address = addresses[any(8)],
			      .bytes = any(3) * MIB,
			      .extra = any(2) ? 77 + any(2) : any(12),
			      .stack = any(STACKS_END),
			      .thread = any(THREADS_END),
			      .flags = (uint8_t)(any(8) << MEMTRACE_ELEMENT_SHIFT),
			      .sequence = sequence,
			      .time_ns = sequence};
}

static void use(struct model *m)
{
	struct model_share rows[8];
	struct model_step step;
	for (uint64_t i = 0; i < EVENTS_AFTER; i++) {
		struct event e = any_event(1000 + i);
		model_apply(m, &e);
	}
	model_finish(m);
	for (unsigned i = 0; model_device(m, i); i++) {
		unsigned ordinal = model_device(m, i)->ordinal;
		model_shares_at_peak(m, ordinal, rows, 8);
		model_shares_now(m, ordinal, rows, 8);
		for (unsigned k = 0; model_owner(m, ordinal, k); k++)
			assert_non_null(model_owner(m, ordinal, k)->name);
	}
	for (size_t i = 0; i < model_oom_count(m); i++)
		model_shares_at_oom(m, i, rows, 8);
	for (size_t i = 0; model_step(m, i, &step); i++)
		continue;
	struct verdict verdicts[4];
	for (size_t i = 0; i < model_oom_count(m); i++)
		model_verdict(m, i, verdicts);
	model_findings(m, verdicts, 4);
}

static void damage(struct state *state)
{
	for (uint32_t i = 1 + any(3); i; i--) {
		size_t at = any((uint32_t)state->used_bytes);
		state->bytes[at] = (uint8_t)(any(2) ? any(256) : state->bytes[at] ^ 1u << any(8));
	}
	if (!any(10))
		state->used_bytes = any((uint32_t)state->used_bytes);
}

static void a_damaged_state_does_no_harm(void **unused)
{
	struct scene s;
	struct state state;
	unsigned loaded = 0;
	int error;
	(void)unused;
	save_played(&s, &state);
	size_t bytes = state.used_bytes;
	uint8_t *sound = malloc(bytes);
	memcpy(sound, state.bytes, bytes);
	for (int i = 0; i < DAMAGES; i++) {
		memcpy(state.bytes, sound, bytes);
		state.used_bytes = bytes;
		damage(&state);
		struct model *m = state_load(&state, s.defs, 512, &error);
		assert_true(m || error == -EINVAL || error == -ENODATA || error == -ENOTSUP);
		if (!m)
			continue;
		use(m);
		model_release(m);
		loaded++;
	}
	assert_in_range(loaded, 1, DAMAGES - 1); /* of both kinds */
	free(sound);
	free(state.bytes);
	scene_close(&s);
}

/* Its first number is the version. */
static void a_state_of_another_version_is_told_from_a_damaged_one(void **unused)
{
	struct scene s;
	struct state state;
	int error;
	(void)unused;
	save_played(&s, &state);
	for (int by = -1; by <= 1; by += 2) {
		state.bytes[0] = (uint8_t)(state.bytes[0] + by);
		assert_null(state_load(&state, s.defs, 512, &error));
		assert_int_equal(error, -ENOTSUP);
		state.bytes[0] = (uint8_t)(state.bytes[0] - by);
	}
	free(state.bytes);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_open_at_the_cut_is_settled_after_it),
		cmocka_unit_test(a_damaged_state_does_no_harm),
		cmocka_unit_test(a_state_of_another_version_is_told_from_a_damaged_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
