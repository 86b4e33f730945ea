/* model: the timeline of a whole run, against a list of all that ever was: the highest of each stretch of time, however
 * often its stretches were doubled, and however often the model was saved and loaded on the way. */
#include <stdio.h>

#include "model_state.h"
#include "test_model_kit.h"

enum { CHANGES_MAX = 1 << 15, ADDRESSES = 64 };

struct change_of_truth {
	uint64_t time_ns, allocated_bytes, reserved_bytes;
};

static struct truth { /* of one device */
	struct change_of_truth changes[CHANGES_MAX];
	uint32_t count;
	uint64_t memory[ADDRESSES], blocks[ADDRESSES];
	bool is_cache[ADDRESSES]; /* a block was in it: it is not allocated itself */
	unsigned last_obtained;	  /* plus one; 0: something else was last */
} truths[2];

static uint64_t random_state = 11;

static uint32_t any(uint32_t below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % below;
}

static void note_truth(struct truth *truth, uint64_t time_ns)
{
	struct change_of_truth now = {.time_ns = time_ns};
	for (unsigned i = 0; i < ADDRESSES; i++) {
		now.allocated_bytes += truth->blocks[i] + (truth->is_cache[i] ? 0 : truth->memory[i]);
		now.reserved_bytes += truth->memory[i];
	}
	assert_true(truth->count < CHANGES_MAX);
	truth->changes[truth->count++] = now;
}

/* It is the allocator's: if that is seen at once, it was never allocated. */
static void become_cache(struct truth *truth, unsigned i)
{
	if (!truth->is_cache[i] && truth->last_obtained == i + 1)
		truth->changes[truth->count - 1].allocated_bytes -= truth->memory[i];
	truth->is_cache[i] = true;
}

/* Memory i stands at (i + 1) GiB, of the second device behind those, a block at the beginning of it. */
static struct event next_event(struct truth *truth, unsigned i)
{
	uint64_t *bytes = &truth->memory[i], *block = &truth->blocks[i];
	struct event e = {.space = MEMTRACE_SPACE_BLOCK, .address = (i + 1ull) << 30,
			  .device = (uint8_t)(truth - truths),
			  .stack = i % 2 ? TORCH : RMM, .thread = 1};
	e.address += (uint64_t)ADDRESSES * e.device << 30;
	unsigned last_obtained = *bytes ? 0 : i + 1;
	if (!*bytes) {
		e.what = MEMTRACE_ALLOC;
		e.space = MEMTRACE_SPACE_DEVICE;
		e.bytes = *bytes = (1 + any(1000)) * KIB;
		truth->is_cache[i] = e.stack == TORCH;
	} else if (*block) {
		e.what = MEMTRACE_BLOCK_FREE;
		*block = 0;
	} else if (any(2)) {
		e.what = MEMTRACE_BLOCK_ALLOC;
		e.bytes = *block = 1 + any((uint32_t)*bytes);
		become_cache(truth, i);
	} else {
		e.what = MEMTRACE_FREE;
		e.space = MEMTRACE_SPACE_DEVICE;
		*bytes = truth->is_cache[i] = 0;
	}
	truth->last_obtained = last_obtained;
	return e;
}

/* What was there at its start, and after each change in it. */
static void highest_of(const struct truth *truth, uint64_t from_ns, uint64_t width_ns, uint64_t *allocated_bytes,
		       uint64_t *reserved_bytes)
{
	*allocated_bytes = *reserved_bytes = 0;
	for (uint32_t i = 0; i < truth->count && truth->changes[i].time_ns < from_ns + width_ns; i++) {
		const struct change_of_truth *change = &truth->changes[i];
		if (i + 1 < truth->count && truth->changes[i + 1].time_ns < from_ns)
			continue;
		if (change->allocated_bytes > *allocated_bytes)
			*allocated_bytes = change->allocated_bytes;
		if (change->reserved_bytes > *reserved_bytes)
			*reserved_bytes = change->reserved_bytes;
	}
}

static void check_device(struct scene *s, unsigned ordinal, uint64_t last_ns)
{
	static struct model_timeline timeline;
	uint64_t allocated_bytes, reserved_bytes;
	assert_true(model_timeline(s->m, ordinal, &timeline));
	assert_true(timeline.count <= TIMELINE_BUCKETS && timeline.count == last_ns / timeline.width_ns + 1);
	assert_true(timeline.width_ns == 1 << 20 || timeline.count > TIMELINE_BUCKETS / 2);
	for (uint32_t i = 0; i < timeline.count; i++) {
		highest_of(&truths[ordinal], i * timeline.width_ns, timeline.width_ns, &allocated_bytes, &reserved_bytes);
		assert_int_equal(timeline.allocated_bytes[i], allocated_bytes);
		assert_int_equal(timeline.reserved_bytes[i], reserved_bytes);
	}
}

static void save_and_load(struct scene *s)
{
	struct state state;
	int error;
	assert_int_equal(state_save(&state, s->m), 0);
	model_release(s->m);
	s->m = state_load(&state, s->defs, 512, &error);
	assert_int_equal(error, 0);
	free(state.bytes);
}

/* `pause_ns`: the longest between two events. */
static void play(uint32_t events, uint64_t pause_ns, bool with_cuts)
{
	struct scene s;
	uint64_t time_ns = 0;
	scene_open(&s);
	memset(truths, 0, sizeof truths);
	for (uint32_t i = 0; i < events; i++) {
		unsigned ordinal = any(8) == 0;
		time_ns += any(16) ? any(1000) : any(1000) * (pause_ns / 1000);
		struct event e = next_event(&truths[ordinal], any(3) ? any(ADDRESSES) : i % 7);
		e.sequence = i;
		e.time_ns = time_ns;
		assert_int_equal(model_apply(s.m, &e), 0);
		note_truth(&truths[ordinal], time_ns);
		if (with_cuts && any(500) == 0)
			save_and_load(&s);
	}
	assert_true(model_is_consistent(s.m));
	for (unsigned ordinal = 0; ordinal < 2; ordinal++)
		check_device(&s, ordinal, time_ns);
	scene_close(&s);
}

static void each_stretch_has_its_highest(void **unused)
{
	static const uint64_t pauses_ns[] = {1000, 1000000, 40000000, 7000000000, 900000000000, 1ull << 50};
	(void)unused;
	for (unsigned i = 0; i < sizeof pauses_ns / sizeof *pauses_ns; i++) {
		play(3000, pauses_ns[i], false);
		play(3000, pauses_ns[i], true);
	}
}

static void a_pause_has_what_was_there_all_the_time(void **unused)
{
	static struct model_timeline timeline;
	struct scene s;
	(void)unused;
	scene_open(&s);
	struct event e = {.what = MEMTRACE_ALLOC, .space = MEMTRACE_SPACE_DEVICE, .address = MIB, .bytes = 77,
			  .stack = PROGRAM, .thread = 1};
	model_apply(s.m, &e);
	e = (struct event){.what = MEMTRACE_MARK, .thread = 1, .time_ns = 10ull << 20};
	model_apply(s.m, &e);
	assert_true(model_timeline(s.m, 0, &timeline));
	assert_int_equal(timeline.count, 11);
	for (unsigned i = 0; i < timeline.count; i++) {
		assert_int_equal(timeline.allocated_bytes[i], 77); /* without PyTorch the same */
		assert_int_equal(timeline.reserved_bytes[i], 77);
	}
	assert_false(model_timeline(s.m, 1, &timeline));
	scene_close(&s);
}

/* It is not yet known to be PyTorch's when it is obtained. */
static void a_segment_is_never_allocated(void **unused)
{
	static struct model_timeline timeline;
	struct scene s;
	(void)unused;
	scene_open(&s);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 64 * MIB, 2 * MIB, TORCH);
	block(&s, 64 * MIB, 512, TORCH);
	obtain(&s, MEMTRACE_SPACE_DEVICE, 128 * MIB, 20 * MIB, RMM);
	block(&s, 128 * MIB, 1024, TORCH);
	assert_true(model_timeline(s.m, 0, &timeline));
	assert_int_equal(timeline.count, 1);
	assert_int_equal(timeline.allocated_bytes[0], device(&s)->peak.allocated_bytes);
	assert_int_equal(timeline.allocated_bytes[0], 1536);
	assert_int_equal(timeline.reserved_bytes[0], 22 * MIB);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_stretch_has_its_highest),
		cmocka_unit_test(a_pause_has_what_was_there_all_the_time),
		cmocka_unit_test(a_segment_is_never_allocated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
