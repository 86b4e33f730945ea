/* model: thousands of events at random, sensible and not, against the reference that does
 * everything the slow way. */
#include <stdio.h>

#include "model_state.h"
#include "test_model_reference.h"

enum { EVENTS = 4000, PLACES = 48 };

#define PLACE 0x10000ull
#define BASE  0x1000000ull
#define HOST  0x9000000ull

static uint64_t random_state;

static uint32_t any(uint32_t below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % below;
}

struct world {
	struct scene s;
	struct reference r;
	struct {
		bool is_set, was_unknown;
		uint64_t sequence;
	} last_free[4];       /* by thread */
	uint64_t last_region; /* address */
};

/* ---------- comparing ---------- */

static void check_meter(const struct model_counter *c, uint64_t current, uint64_t peak,
			uint64_t total, uint64_t allocations, uint64_t live)
{
	check_counter(c, current, peak, allocations, allocations - live);
	assert_int_equal(c->total_bytes, total);
}

static void check_rows(const struct ref_sums *sums, const struct model_share *rows, size_t count)
{
	size_t expected = 0;
	for (uint32_t stack = 0; stack < STACKS_END; stack++)
		expected += sums->bytes[stack] > 0;
	assert_int_equal(count, expected);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(rows[i].bytes, sums->bytes[rows[i].stack]);
		assert_int_equal(rows[i].count, sums->count[rows[i].stack]);
		assert_true(
			!i || rows[i - 1].bytes > rows[i].bytes ||
			(rows[i - 1].bytes == rows[i].bytes && rows[i - 1].stack < rows[i].stack));
	}
}

static const char *const owner_names[REF_OWNERS] = {"unknown", "pytorch", "nccl",
						    "program", "cublas",  "librmm.so"};

static void check_owners(struct world *w, unsigned device, const struct ref_sums *now,
			 const struct ref_sums *peak)
{
	const struct model_owner *o;
	uint64_t held = 0, previous = UINT64_MAX;
	for (unsigned i = 0; (o = model_owner(w->s.m, device, i)); i++) {
		int owner = 0;
		while (strcmp(owner_names[owner], o->name))
			owner++;
		assert_int_equal(o->current_bytes, now->owners[owner]);
		assert_int_equal(o->at_peak_bytes, peak->owners[owner]);
		assert_int_equal(o->peak_bytes, w->r.devices[device].owner_peak[owner]);
		assert_true(o->at_peak_bytes <= previous);
		previous = o->at_peak_bytes;
		held += o->current_bytes;
	}
	assert_int_equal(held, now->reserved);
}

static uint64_t count_live(const struct reference *r, unsigned device,
			   bool (*is)(const struct ref_memory *))
{
	uint64_t count = 0;
	for (int i = 0; i < REF_MEMORY; i++)
		count += r->memory[i].used && r->memory[i].live && r->memory[i].device == device &&
			 is(&r->memory[i]);
	return count;
}

static bool is_any(const struct ref_memory *memory)
{
	return memory->used;
}

static bool is_cache_region(const struct ref_memory *memory)
{
	return memory->tensor || (memory->cache && !memory->is_handle);
}

static uint64_t count_rows(const struct ref_sums *sums)
{
	uint64_t count = 0;
	for (uint32_t stack = 0; stack < STACKS_END; stack++)
		count += sums->count[stack];
	return count;
}

static uint64_t count_cache_mappings(struct reference *r, unsigned device)
{
	uint64_t count = 0;
	for (int i = 0; i < REF_MAPPINGS; i++) {
		const struct ref_memory *m = ref_mapped(r, &r->mappings[i]);
		count += m && m->cache && m->device == device;
	}
	return count;
}

static void check_device(struct world *w, const struct model_device *shown)
{
	struct reference *r = &w->r;
	struct ref_device *d = &r->devices[shown->ordinal];
	const struct ref_composition *c = &d->composition[d->has_blocks];
	struct ref_sums now;
	struct model_share rows[STACKS_END];
	uint64_t tensors;
	ref_sum(r, shown->ordinal, !d->has_blocks, &now);
	check_meter(&shown->allocated, now.allocated, c->peak.allocated, c->total, c->allocations,
		    count_rows(&now));
	check_meter(&shown->reserved, now.reserved, d->reserved_peak, d->reserved_total,
		    d->reserved_allocations, count_live(r, shown->ordinal, is_any));
	uint64_t allocated = ref_pytorch_allocated(r, shown->ordinal, &tensors);
	check_meter(&shown->pytorch_allocated, allocated, d->block_peak, d->block_total,
		    d->block_allocations, tensors);
	check_meter(&shown->pytorch_reserved, now.pytorch_reserved, d->cache_peak, d->cache_total,
		    d->cache_allocations,
		    count_live(r, shown->ordinal, is_cache_region) +
			    count_cache_mappings(r, shown->ordinal));
	assert_int_equal(shown->pytorch_segments, ref_segments(r, shown->ordinal));
	assert_int_equal(shown->peak.allocated_bytes, c->peak.allocated);
	assert_int_equal(shown->peak.reserved_bytes, c->peak.reserved);
	assert_int_equal(shown->peak.pytorch_reserved_bytes, c->peak.pytorch_reserved);
	assert_int_equal(shown->peak.sequence, c->peak.sequence);
	check_rows(&now, rows, model_stacks_now(w->s.m, shown->ordinal, rows, STACKS_END));
	check_rows(&c->peak, rows, model_stacks_at_peak(w->s.m, shown->ordinal, rows, STACKS_END));
	check_owners(w, shown->ordinal, &now, &c->peak);
}

static void check_world(struct world *w)
{
	const struct model_device *shown;
	const struct model_totals *totals = model_totals(w->s.m);
	for (unsigned i = 0; (shown = model_device(w->s.m, i)); i++)
		check_device(w, shown);
	assert_int_equal(totals->unknown_frees, w->r.unknown_frees);
	assert_int_equal(totals->double_allocations, w->r.double_allocations);
	assert_int_equal(totals->pinned_current_bytes, ref_pinned(&w->r));
	assert_int_equal(totals->pinned_peak_bytes, w->r.pinned_peak);
}

/* ---------- making ---------- */

static uint64_t place(void)
{
	return BASE + any(PLACES) * PLACE;
}

static struct event any_alloc(struct world *w)
{
	static const enum memtrace_space spaces[] = {MEMTRACE_SPACE_DEVICE, MEMTRACE_SPACE_DEVICE,
						     MEMTRACE_SPACE_DEVICE, MEMTRACE_SPACE_STREAM,
						     MEMTRACE_SPACE_VMM,    MEMTRACE_SPACE_VMM,
						     MEMTRACE_SPACE_VMM,    MEMTRACE_SPACE_MANAGED,
						     MEMTRACE_SPACE_ARRAY,  MEMTRACE_SPACE_PINNED};
	struct event e = {.what = MEMTRACE_ALLOC, .space = spaces[any(10)]};
	e.address = place();
	e.bytes = (1 + any(3)) * PLACE - any(2) * 100;
	if (e.space == MEMTRACE_SPACE_VMM || e.space == MEMTRACE_SPACE_ARRAY) {
		e.address = 1 + any(20);
		e.bytes = (1 + any(2)) * PLACE;
	} else if (e.space == MEMTRACE_SPACE_PINNED) {
		e.address += HOST;
	} else {
		w->last_region = e.address;
	}
	if (e.space != MEMTRACE_SPACE_STREAM && e.space != MEMTRACE_SPACE_VMM)
		e.stream = any(3); /* the context */
	if (!any(20))
		e.device = MEMTRACE_DEVICE_HOST;
	return e;
}

static struct event any_context_end(void)
{
	return (struct event){.what = MEMTRACE_CONTEXT_END, .address = 1 + any(2), .extra = any(3)};
}

static struct event any_free(void)
{
	struct event e = {
		.what = MEMTRACE_FREE, .space = MEMTRACE_SPACE_DEVICE, .address = place()};
	switch (any(6)) {
	case 0:
		e.space = MEMTRACE_SPACE_PINNED;
		e.address += HOST;
		break;
	case 1:
		e.space = MEMTRACE_SPACE_ARRAY;
		e.address = 1 + any(20);
		break;
	case 2:
	case 3:
		e.space = MEMTRACE_SPACE_VMM;
		e.address = 1 + any(20);
		break;
	}
	return e;
}

static struct event any_event(struct world *w)
{
	struct event e = {0};
	uint32_t kind = any(100);
	if (!any(100))
		return any_context_end();
	if (kind < 20)
		return any_alloc(w);
	if (kind < 34)
		return any_free();
	e.address = place();
	if (kind < 44) {
		e = (struct event){.what = MEMTRACE_MAP,
				   .space = MEMTRACE_SPACE_VMM,
				   .address = place(),
				   .bytes = (1 + any(2)) * PLACE,
				   .extra = 1 + any(20)};
	} else if (kind < 50) {
		e.what = MEMTRACE_UNMAP;
		e.bytes = (1 + any(4)) * PLACE;
	} else if (kind < 52) {
		e.what = MEMTRACE_RETAIN;
		e.address = 1 + any(20);
	} else if (kind < 75) {
		e.what = MEMTRACE_BLOCK_ALLOC;
		e.address = (any(3) ? place() : w->last_region) + 512 * any(4);
		e.bytes = 512 * (1 + any(50));
	} else {
		e.what = MEMTRACE_BLOCK_FREE;
		e.address += 512 * any(4);
	}
	return e;
}

static void refer(struct reference *r, const struct event *e)
{
	r->sequence = e->sequence;
	if (e->what == MEMTRACE_ALLOC)
		ref_alloc(r, e);
	else if (e->what == MEMTRACE_FREE)
		ref_free(r, e);
	else if (e->what == MEMTRACE_CONTEXT_END)
		ref_end_context(r, e);
	else if (e->what == MEMTRACE_MAP)
		ref_map(r, e);
	else if (e->what == MEMTRACE_UNMAP)
		ref_unmap(r, e);
	else if (e->what == MEMTRACE_RETAIN)
		ref_retain(r, e);
	else if (e->what == MEMTRACE_BLOCK_ALLOC)
		ref_block_alloc(r, e);
	else if (e->what == MEMTRACE_BLOCK_FREE)
		ref_block_free(r, e);
}

static void step(struct world *w, struct event e)
{
	uint64_t unknown_frees = w->r.unknown_frees;
	bool is_free = e.what == MEMTRACE_FREE || e.what == MEMTRACE_UNMAP;
	e.stack = any(STACKS_END);
	e.thread = any(4);
	if (e.device != MEMTRACE_DEVICE_HOST)
		e.device = (uint8_t)any(REF_DEVICES);
	if (is_free && w->last_free[e.thread].is_set)
		ref_forget(&w->r, w->last_free[e.thread].sequence);
	e.sequence = w->s.sequence + 1;
	refer(&w->r, &e);
	apply(&w->s, e);
	if (is_free) {
		w->last_free[e.thread].is_set = true;
		w->last_free[e.thread].sequence = e.sequence;
		w->last_free[e.thread].was_unknown = w->r.unknown_frees > unknown_frees;
	}
}

static void step_undo(struct world *w)
{
	uint32_t thread = any(4);
	if (!w->last_free[thread].is_set)
		return;
	struct event e = {.what = MEMTRACE_FREE_FAILED,
			  .thread = thread,
			  .extra = w->last_free[thread].sequence};
	w->r.sequence = w->s.sequence + 1;
	ref_undo(&w->r, w->last_free[thread].sequence, w->last_free[thread].was_unknown);
	w->last_free[thread].is_set = false;
	apply(&w->s, e);
}

/* The rest of the run is another model's, which knows only what this one has saved. Saved again, it
 * gives the same bytes. */
static void cut(struct world *w)
{
	struct state state, again;
	int error;
	assert_int_equal(state_save(&state, w->s.m), 0);
	struct model *m = state_load(&state, w->s.defs, 1 + any(512), &error);
	assert_int_equal(error, 0);
	assert_int_equal(state_save(&again, m), 0);
	assert_int_equal(again.used_bytes, state.used_bytes);
	assert_memory_equal(again.bytes, state.bytes, state.used_bytes);
	model_release(w->s.m);
	w->s.m = m;
	assert_true(model_is_consistent(m));
	free(state.bytes);
	free(again.bytes);
}

static void run_world(uint64_t seed, bool with_blocks, uint32_t events_a_cut)
{
	static struct world w;
	memset(&w, 0, sizeof w);
	scene_open(&w.s);
	random_state = seed;
	for (int i = 0; i < 4; i++) {
		w.r.boundary[i] = place();
		put(&w.s, MEMTRACE_RESERVE, MEMTRACE_SPACE_VMM, w.r.boundary[i], 4 * PLACE, 0,
		    TORCH);
	}
	w.r.double_allocations = model_totals(w.s.m)->double_allocations;
	for (int i = 0; i < EVENTS; i++) {
		struct event e = any_event(&w);
		if (!any(25))
			step_undo(&w);
		else if (with_blocks ||
			 (e.what != MEMTRACE_BLOCK_ALLOC && e.what != MEMTRACE_BLOCK_FREE))
			step(&w, e);
		if (events_a_cut && !any(events_a_cut))
			cut(&w);
		check_world(&w);
	}
	model_finish(w.s.m);
	scene_close(&w.s);
}

static void random_events_agree_with_the_reference(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++)
		run_world(seed, true, 0);
}

static void random_events_without_blocks_agree_with_the_reference(void **state)
{
	(void)state;
	run_world(11, false, 0);
}

static void a_model_that_was_saved_goes_on_like_it(void **state)
{
	(void)state;
	for (uint64_t seed = 21; seed <= 24; seed++)
		run_world(seed, true, seed % 2 ? 3 : 200);
	run_world(31, false, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_events_agree_with_the_reference),
		cmocka_unit_test(random_events_without_blocks_agree_with_the_reference),
		cmocka_unit_test(a_model_that_was_saved_goes_on_like_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
