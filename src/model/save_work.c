/* Saves and loads what is known of the work: threads and what they did lately, training loops, steps, how
 * many blocks there are of each size, and how large their elements. What definitions tell (marks of stacks, owners of modules,
 * names of threads) is worked out again. */
#include <errno.h>
#include <string.h>

#include "model/save_private.h"

static const struct field trial_fields[] = {
	FIELD_BOOL(struct trial, is_active),
	FIELD(struct trial, slot),
	FIELD_BOOL(struct trial, has_obtained),
	FIELD_BOOL(struct trial, is_beyond_collection),
	FIELD(struct trial, failed_calls),
	FIELD(struct trial, driver_bytes),
	STACK_OF(struct trial, flush_stack),
	STACK_OF(struct trial, obtained_stack),
	FIELD(struct trial, pending_bytes),
	FIELD(struct trial, pending_cache_bytes),
	FIELD(struct trial, smallest_bytes),
	FIELD(struct trial, last_bytes),
	FIELD_BOOL(struct trial, free_known),
	FIELD(struct trial, free_bytes),
	FIELD(struct trial, total_bytes),
	FIELD_BOOL(struct trial, has_fitting),
	FIELD(struct trial, fitting_stream),
	FIELD_END,
};

static const struct field thread_fields[] = {
	FIELD(struct thread, event_count), FIELD(struct thread, last_block),
	FIELD_BELOW(struct thread, loop, LOOPS_MAX + 1), FIELD_END,
};

static const struct field stepper_fields[] = {
	FIELD(struct stepper, site), FIELD(struct stepper, class),
	FIELD(struct stepper, optimizer), FIELD_BOOL(struct stepper, is_stepping), FIELD_END,
};

static const struct field moment_fields[] = {
	FIELD(struct step_moment, time_ns),	    FIELD(struct step_moment, sequence),
	FIELD(struct step_moment, allocated_bytes), FIELD_ROW(struct step_moment, bytes),
	FIELD_BOOL(struct step_moment, is_known),   FIELD_END,
};

static const struct field record_fields[] = {
	FIELD(struct step_record, step),
	FIELD(struct step_record, begin_ns),
	FIELD(struct step_record, end_ns),
	FIELD(struct step_record, end_sequence),
	FIELD(struct step_record, peak_bytes),
	FIELD_ROW(struct step_record, phase_peak_bytes),
	FIELD(struct step_record, backwards),
	FIELD_BELOW(struct step_record, loop, LOOPS_MAX),
	FIELD_BELOW(struct step_record, slot, SLOT_COUNT),
	FIELD_BELOW(struct step_record, peak_phase, MODEL_PHASE_COUNT),
	FIELD_BOOL(struct step_record, is_open),
	FIELD_BOOL(struct step_record, is_peak_in_tail),
	FIELD(struct step_record, tail_begin),
	FIELD(struct step_record, tail_peak_bytes),
	FIELD_END,
};

static const struct field loop_fields[] = {
	FIELD(struct loop, main),
	FIELD(struct loop, stepping),
	FIELD(struct loop, last),
	FIELD(struct loop, call_begin),
	FIELD(struct loop, backward_end),
	FIELD(struct loop, whole_end),
	FIELD(struct loop, devices),
	FIELD_BOOL(struct loop, is_used),
	FIELD_BOOL(struct loop, trains),
	FIELD_BOOL(struct loop, in_backward),
	FIELD_BOOL(struct loop, by_grad),
	FIELD_BOOL(struct loop, fills_gradients),
	FIELD_BOOL(struct loop, in_forward),
	FIELD_BOOL(struct loop, window_is_open),
	FIELD_BOOL(struct loop, is_setting_up),
	FIELD(struct loop, aged_at),
	FIELD(struct loop, aged_count),
	FIELD(struct loop, backwards),
	FIELD(struct loop, steps),
	FIELD(struct loop, calls),
	FIELD(struct loop, passes),
	FIELD(struct loop, passes_least),
	FIELD(struct loop, call_count),
	STACK_OF(struct loop, call_stack),
	FIELD(struct loop, call_period),
	FIELD(struct loop, call_again),
	FIELD_BOOL(struct loop, call_keeps),
	FIELD(struct loop, young_count),
	FIELD(struct loop, old_count),
	FIELD(struct loop, whole_backwards),
	FIELD_BOOL(struct loop, took),
	FIELD(struct loop, gradients_most),
	FIELD(struct loop, gradient_bytes),
	FIELD(struct loop, recomputed),
	FIELD(struct loop, flat_bytes),
	FIELD(struct loop, early_copied_bytes),
	FIELD(struct loop, late_copies),
	FIELD(struct loop, late_data),
	FIELD(struct loop, graph_data),
	FIELD(struct loop, computed),
	FIELD(struct loop, latest),
	FIELD_END,
};

static const struct field attribution_fields[] = {
	FIELD_BOOL(struct attribution, has_trained),
	FIELD_BELOW(struct attribution, loop_count, LOOPS_MAX + 1),
	FIELD_ROW_BELOW(struct attribution, loop_of_slot, LOOPS_MAX),
	FIELD_BOOL(struct attribution, is_loading),
	FIELD(struct attribution, loaded_runs),
	FIELD(struct attribution, stamp),
	FIELD(struct attribution, backwards),
	FIELD(struct attribution, forwards),
	FIELD(struct attribution, step_count),
	FIELD(struct attribution, steps.count),
	FIELD(struct attribution, tombstones_lost),
	FIELD(struct attribution, gone_sequence),
	FIELD(struct attribution, gone_bytes),
	FIELD_ROW(struct attribution, parameter_sites),
	FIELD(struct attribution, parameter_site_count),
	FIELD_ROW(struct attribution, store_sites),
	FIELD(struct attribution, store_site_count),
	FIELD_ROW(struct attribution, entered),
	FIELD_END,
};

static const struct field place_fields[] = {
	FIELD(struct place_seen, function),
	FIELD(struct place_seen, line),
	FIELD(struct place_seen, since),
	FIELD_END,
};

static const struct field growth_fields[] = {
	FIELD(struct growth, line),
	FIELD(struct growth, bytes),
	FIELD(struct growth, by),
	FIELD_END,
};

static const struct field size_fields[] = {
	FIELD(struct size_entry, bytes),
	FIELD(struct size_entry, parameters),
	FIELD(struct size_entry, gradients),
	FIELD(struct size_entry, states),
	FIELD(struct size_entry, parameters_most),
	FIELD(struct size_entry, gradients_most),
	FIELD(struct size_entry, counted),
	FIELD(struct size_entry, predicted),
	FIELD(struct size_entry, stamp),
	FIELD(struct size_entry, loaded),
	FIELD(struct size_entry, loaded_run),
	FIELD(struct size_entry, loaded_in_run),
	FIELD(struct size_entry, keeper),
	FIELD(struct size_entry, joiner),
	FIELD(struct size_entry, copied),
	FIELD(struct size_entry, passed),
	FIELD(struct size_entry, passing),
	FIELD(struct size_entry, data_site),
	FIELD(struct size_entry, argument_site),
	FIELD_BOOL(struct size_entry, is_part),
	FIELD_END,
};

SAVED_SIZE(trial, 96);
SAVED_SIZE(thread, 208);
SAVED_SIZE(stepper, 40);
SAVED_SIZE(step_moment, 264);
SAVED_SIZE(step_record, 896);
SAVED_SIZE(loop, 848);
SAVED_SIZE(attribution, 11384);
SAVED_SIZE(place_seen, 16);
SAVED_SIZE(growth, 24);
SAVED_SIZE(size_entry, 88);
SAVED_SIZE(element_units, 24);

/* ---------- steps ---------- */

static void save_record(struct archive *a, struct step_record *record)
{
	archive_fields(a, record, record_fields);
	for (unsigned i = 0; i < MODEL_MOMENT_COUNT; i++)
		archive_fields(a, &record->after[i], moment_fields);
}

static void save_kept_records(struct model *m, struct archive *a)
{
	struct step_record *record;
	for (uint64_t i = 0; !a->error && (record = step_kept(m, i)); i++)
		save_record(a, record);
}

static void save_open_records(struct model *m, struct archive *a, struct loop *loop)
{
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
		if (!save_has_item(a, loop->open[slot] != NULL))
			continue;
		if (a->is_loading)
			loop->open[slot] = save_new(m, a, sizeof(struct step_record));
		if (loop->open[slot])
			save_record(a, loop->open[slot]);
	}
}

void save_attribution(struct model *m, struct archive *a)
{
	archive_fields(a, m->attribution, attribution_fields);
	for (unsigned i = 0; i < PLACES_SEEN; i++)
		archive_fields(a, &m->attribution->places[i], place_fields);
	for (unsigned i = 0; i < GROWTHS; i++)
		archive_fields(a, &m->attribution->growths[i], growth_fields);
	for (unsigned i = 0; i < LOOPS_MAX; i++) {
		archive_fields(a, &m->attribution->loops[i], loop_fields);
		save_open_records(m, a, &m->attribution->loops[i]);
	}
	save_kept_records(m, a);
}

/* ---------- threads ---------- */

static void save_stepper(struct model *m, struct archive *a, struct thread *thread)
{
	if (!save_has_item(a, thread->stepper != NULL))
		return;
	if (a->is_loading)
		thread->stepper = save_new(m, a, sizeof *thread->stepper);
	if (thread->stepper)
		archive_fields(a, thread->stepper, stepper_fields);
}

static uint32_t next_thread(const struct model *m, uint32_t id)
{
	while (id < m->thread_capacity && !m->threads[id].event_count)
		id++;
	return id;
}

static void save_thread(struct model *m, struct archive *a, uint64_t id)
{
	if (a->is_loading && threads_reserve(m, (uint32_t)id)) {
		archive_fail(a, -ENOMEM);
		return;
	}
	struct thread *thread = thread_of(m, (uint32_t)id);
	if (a->is_loading && thread->event_count) {
		archive_fail(a, -EINVAL);
		return;
	}
	archive_fields(a, thread, thread_fields);
	archive_fields(a, &thread->trial, trial_fields);
	save_suspect(m, a, &thread->suspect);
	save_undo(m, a, &thread->undo);
	save_stepper(m, a, thread);
}

/* Of those that had an event; only such a thread has anything. */
void save_threads(struct model *m, struct archive *a)
{
	uint64_t id = a->is_loading ? 0 : next_thread(m, 0);
	while (save_has_item(a, !a->is_loading && id < m->thread_capacity)) {
		archive_number_below(a, &id, a->bounds[BOUND_THREADS]);
		if (!a->error)
			save_thread(m, a, id);
		if (!a->is_loading)
			id = next_thread(m, (uint32_t)id + 1);
	}
}

/* ---------- sizes ---------- */

static uint32_t next_size(const struct sizes *sizes, uint32_t at)
{
	while (at < sizes->capacity && !sizes->entries[at].bytes)
		at++;
	return at;
}

/* The newest block of a size has that size: what it is kept for relies on it. */
static void save_newest(struct model *m, struct archive *a, struct size_entry *entry)
{
	uint64_t address = entry->newest ? entry->newest->address : 0;
	if (!save_has_item(a, entry->newest != NULL))
		return;
	archive_number(a, &address);
	struct block *block = block_find(m, address);
	if (block && block_asked(block) == entry->bytes)
		entry->newest = block;
	else
		archive_fail(a, -EINVAL);
}

static void load_size(struct model *m, struct archive *a, const struct size_entry *saved)
{
	if (a->error || !saved->bytes || size_find(m, saved->bytes) || sizes_are_full(m)) {
		archive_fail(a, -EINVAL);
		return;
	}
	struct size_entry *entry = size_get(m, saved->bytes);
	*entry = *saved;
}

void save_sizes(struct model *m, struct archive *a)
{
	struct sizes *sizes = &m->attribution->sizes;
	uint32_t at = a->is_loading ? 0 : next_size(sizes, 0);
	while (save_has_item(a, !a->is_loading && at < sizes->capacity)) {
		struct size_entry entry = {0};
		if (!a->is_loading)
			entry = sizes->entries[at];
		archive_fields(a, &entry, size_fields);
		save_newest(m, a, &entry);
		if (a->is_loading)
			load_size(m, a, &entry);
		else
			at = next_size(sizes, at + 1);
	}
}

/* ---------- elements ---------- */

static uint32_t next_elements(const struct model *m, uint32_t stack)
{
	static const struct element_units none;
	while (stack < m->element_capacity && !memcmp(&m->elements[stack], &none, sizeof none))
		stack++;
	return stack;
}

static void save_element_units(struct model *m, struct archive *a, uint64_t stack)
{
	static const struct field fields[] = {FIELD_ROW(struct element_units, units), FIELD_END};
	struct element_units *row = elements_of(m, (uint32_t)stack);
	if (row)
		archive_fields(a, row, fields);
	else
		archive_fail(a, -ENOMEM);
}

void save_elements(struct model *m, struct archive *a)
{
	uint64_t stack = a->is_loading ? 0 : next_elements(m, 0);
	while (save_has_item(a, !a->is_loading && stack < m->element_capacity)) {
		archive_number_below(a, &stack, a->bounds[BOUND_STACKS]);
		if (!a->error)
			save_element_units(m, a, stack);
		if (!a->is_loading)
			stack = next_elements(m, (uint32_t)stack + 1);
	}
}
