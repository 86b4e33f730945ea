/* What is recorded of steps: for each loop and device what was allocated, by label, at the borders of
 * the phases, and the peak. Owns the records: the first STEPS_FIRST and a ring of the last; counts are
 * exact beside that. Records are in the order of their end, so a change of label looks at the newest
 * and stops at the first that ended before the block was born. */
#include <string.h>

#include "base/bytes.h"
#include "model/model_private.h"

#define RECORDS (STEPS_FIRST + STEPS_LAST)

static uint32_t place_of(uint64_t index)
{
	return index < STEPS_FIRST ? (uint32_t)index :
				     STEPS_FIRST + (uint32_t)((index - STEPS_FIRST) % STEPS_LAST);
}

static struct step_record *open_record(struct model *m, struct loop *loop, uint8_t slot,
				       const struct event *e)
{
	struct step_record *record = loop->open[slot];
	if (record)
		return record;
	record = model_new(m, sizeof *record);
	if (!record)
		return NULL;
	*record = (struct step_record){
		.step = loop->steps + 1,
		.begin_ns = e->time_ns,
		.loop = (uint8_t)(loop - m->attribution->loops),
		.slot = slot,
		.is_open = true,
	};
	loop->open[slot] = record;
	return record;
}

static void raise_peak(struct step_record *record, uint64_t bytes, enum model_phase phase)
{
	if (bytes <= record->peak_bytes)
		return;
	record->peak_bytes = bytes;
	record->peak_phase = (uint8_t)phase;
	record->is_peak_in_tail = phase == MODEL_PHASE_OTHER && record->tail_begin;
}

/* ---------- moments ---------- */

static const enum model_phase phase_before[MODEL_MOMENT_COUNT] = {
	[MODEL_AFTER_FORWARD] = MODEL_PHASE_FORWARD,
	[MODEL_AFTER_BACKWARD] = MODEL_PHASE_BACKWARD,
	[MODEL_AFTER_OPTIMIZER] = MODEL_PHASE_OPTIMIZER,
};


static void note_moment(struct model *m, struct loop *loop, uint8_t slot, enum model_moment_kind kind,
			const struct event *e)
{
	const struct composition *c = &m->devices[slot]->allocated;
	struct step_record *record = open_record(m, loop, slot, e);
	if (!record)
		return;
	struct step_moment *moment = &record->after[kind];
	moment->is_known = true;
	moment->time_ns = e->time_ns;
	moment->sequence = e->sequence ? e->sequence - 1 : 0; /* before this event */
	moment->allocated_bytes = c->meter.live_bytes;
	memcpy(moment->bytes, c->label_bytes, sizeof moment->bytes);
	record->backwards += kind == MODEL_AFTER_BACKWARD;
	if (moment->allocated_bytes > record->peak_bytes) /* another loop has taken more since */
		bytes_raise(&record->phase_peak_bytes[phase_before[kind]], moment->allocated_bytes);
	raise_peak(record, moment->allocated_bytes, phase_before[kind]);
}

static bool is_at_work(const struct model *m, const struct loop *loop, unsigned slot)
{
	bool is_used = slot < 64 ? loop->devices >> slot & 1 : slot == SLOT_UNKNOWN;
	return is_used && m->devices[slot] && m->devices[slot]->has_blocks;
}

void step_note_moment(struct model *m, struct loop *loop, enum model_moment_kind kind,
		      const struct event *e)
{
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++)
		if (is_at_work(m, loop, slot))
			note_moment(m, loop, (uint8_t)slot, kind, e);
}

void step_note_event(struct model *m, struct loop *loop, struct device *d, const struct event *e)
{
	struct step_record *record = open_record(m, loop, d->slot, e);
	uint64_t bytes = d->allocated.meter.live_bytes;
	d->has_phases = loop->main != 0;
	d->step = m->attribution->has_trained ? loop->steps + 1 : 0;
	d->phase = (uint8_t)phase_of(m, loop, e->thread);
	if (!record)
		return;
	bool is_in_tail = d->phase == MODEL_PHASE_OTHER && record->tail_begin;
	bytes_raise(is_in_tail ? &record->tail_peak_bytes : &record->phase_peak_bytes[d->phase], bytes);
	raise_peak(record, bytes, (enum model_phase)d->phase);
}

/* ---------- the end of a forward pass ---------- */

static void end_tail(struct step_record *record, enum model_phase phase)
{
	bytes_raise(&record->phase_peak_bytes[phase], record->tail_peak_bytes);
	if (record->is_peak_in_tail)
		record->peak_phase = (uint8_t)phase;
	record->tail_begin = record->tail_peak_bytes = 0;
	record->is_peak_in_tail = false;
}

void step_begin_tail(struct loop *loop, uint64_t sequence)
{
	step_drop_tail(loop);
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++)
		if (loop->open[slot])
			loop->open[slot]->tail_begin = sequence;
}

void step_drop_tail(struct loop *loop)
{
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++)
		if (loop->open[slot] && loop->open[slot]->tail_begin)
			end_tail(loop->open[slot], MODEL_PHASE_OTHER);
}

void step_take_tail(struct model *m, struct loop *loop)
{
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
		struct step_record *record = loop->open[slot];
		struct model_peak *peak = m->devices[slot] ? &m->devices[slot]->allocated.peak : NULL;
		if (!record || !record->tail_begin)
			continue;
		if (peak && peak->phase == MODEL_PHASE_OTHER && peak->sequence >= record->tail_begin)
			peak->phase = MODEL_PHASE_FORWARD;
		end_tail(record, MODEL_PHASE_FORWARD);
	}
}

/* ---------- the end ---------- */

static struct step_record *records_of(struct model *m)
{
	struct steps *steps = &m->attribution->steps;
	if (!steps->records)
		steps->records = model_new(m, RECORDS * sizeof *steps->records);
	return steps->records;
}

static void keep(struct model *m, const struct step_record *record)
{
	struct step_record *records = records_of(m);
	if (records)
		records[place_of(m->attribution->steps.count++)] = *record;
}

struct step_record *step_kept(struct model *m, uint64_t place)
{
	bool is_kept = place < RECORDS && place < m->attribution->steps.count;
	struct step_record *records = is_kept ? records_of(m) : NULL;
	return records ? &records[place] : NULL;
}

uint64_t step_most_bytes(const struct model *m, uint8_t slot)
{
	const struct steps *steps = &m->attribution->steps;
	uint64_t most = 0;
	for (uint64_t i = 0; steps->records && i < steps->count && i < RECORDS; i++)
		if (steps->records[i].slot == slot && steps->records[i].peak_bytes > most)
			most = steps->records[i].peak_bytes;
	return most;
}

void step_end(struct model *m, struct loop *loop, const struct event *e)
{
	step_drop_tail(loop);
	for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
		struct step_record *record = loop->open[slot];
		if (!record)
			continue;
		if (m->devices[slot])
			trend_end_step(&m->devices[slot]->trend, m->devices[slot]->now.pytorch_allocated.live_bytes,
				       e->sequence);
		record->end_ns = e->time_ns;
		record->end_sequence = e->sequence;
		record->is_open = false;
		keep(m, record);
		*record = (struct step_record){
			.step = loop->steps + 1,
			.begin_ns = e->time_ns,
			.loop = record->loop,
			.slot = record->slot,
			.peak_bytes = m->devices[slot] ? m->devices[slot]->allocated.meter.live_bytes : 0,
			.is_open = true,
		};
	}
}

/* ---------- changes of labels ---------- */

static bool holds(const struct step_moment *moment, uint64_t born, uint64_t died)
{
	return moment->is_known && born <= moment->sequence && moment->sequence < died;
}

struct step_change {
	uint64_t born, died, bytes;
	uint8_t slot, from, to;
};

static void change_record(struct step_record *record, const struct step_change *change)
{
	for (unsigned i = 0; i < MODEL_MOMENT_COUNT; i++) {
		struct step_moment *moment = &record->after[i];
		if (!holds(moment, change->born, change->died))
			continue;
		moment->bytes[change->from] -= change->bytes;
		moment->bytes[change->to] += change->bytes;
	}
}

/* The oldest record of those that are kept; from `count` down to it. */
static uint64_t first_kept(const struct steps *steps)
{
	return steps->count > RECORDS ? steps->count - STEPS_LAST : STEPS_FIRST;
}

/* The index before `index` among the records kept; UINT64_MAX: none. */
static uint64_t kept_before(const struct steps *steps, uint64_t index)
{
	if (!index)
		return UINT64_MAX;
	return index > first_kept(steps) || index <= STEPS_FIRST ? index - 1 : STEPS_FIRST - 1;
}

void step_move(struct model *m, uint8_t slot, uint64_t born, uint64_t died, uint64_t bytes, enum label from,
	       enum label to)
{
	struct attribution *a = m->attribution;
	const struct step_change change = {born, died, bytes, slot, (uint8_t)from, (uint8_t)to};
	for (unsigned i = 0; i < a->loop_count; i++)
		if (a->loops[i].open[slot])
			change_record(a->loops[i].open[slot], &change);
	for (uint64_t i = kept_before(&a->steps, a->steps.count); i != UINT64_MAX;
	     i = kept_before(&a->steps, i)) {
		struct step_record *record = &a->steps.records[place_of(i)];
		if (record->end_sequence < born)
			return;
		if (record->slot == slot)
			change_record(record, &change);
	}
}

static bool record_holds(const struct step_record *record, uint64_t born, uint64_t died)
{
	for (unsigned i = 0; i < MODEL_MOMENT_COUNT; i++)
		if (holds(&record->after[i], born, died))
			return true;
	return false;
}

bool step_reaches(const struct model *m, uint8_t slot, uint64_t born, uint64_t died)
{
	const struct attribution *a = m->attribution;
	for (unsigned i = 0; i < a->loop_count; i++)
		if (a->loops[i].open[slot] && record_holds(a->loops[i].open[slot], born, died))
			return true;
	for (uint64_t i = kept_before(&a->steps, a->steps.count); i != UINT64_MAX;
	     i = kept_before(&a->steps, i)) {
		const struct step_record *record = &a->steps.records[place_of(i)];
		if (record->end_sequence < born)
			return false;
		if (record->slot == slot && record_holds(record, born, died))
			return true;
	}
	return false;
}

/* ---------- what is told ---------- */

static void describe_moment(const struct model *m, const struct step_moment *moment,
			    struct model_moment *shown)
{
	*shown = (struct model_moment){
		.is_known = moment->is_known,
		.time_ns = moment->time_ns,
		.sequence = moment->sequence,
		.allocated_bytes = moment->allocated_bytes,
	};
	for (unsigned label = 0; label < LABEL_COUNT; label++)
		categories_add(m, &shown->categories, (uint8_t)label, moment->bytes[label]);
}

static void describe(const struct model *m, const struct step_record *record, struct model_step *shown)
{
	*shown = (struct model_step){
		.step = record->step,
		.loop = record->loop,
		.device = slot_ordinal(record->slot),
		.thread = m->attribution->loops[record->loop].main,
		.is_open = record->is_open,
		.begin_ns = record->begin_ns,
		.end_ns = record->is_open ? m->totals.last_time_ns : record->end_ns,
		.backwards = record->backwards,
		.peak_bytes = record->peak_bytes,
		.peak_phase = record->peak_phase,
	};
	memcpy(shown->phase_peak_bytes, record->phase_peak_bytes, sizeof shown->phase_peak_bytes);
	bytes_raise(&shown->phase_peak_bytes[MODEL_PHASE_OTHER], record->tail_peak_bytes);
	for (unsigned i = 0; i < MODEL_MOMENT_COUNT; i++)
		describe_moment(m, &record->after[i], &shown->after[i]);
}

static const struct step_record *open_at(const struct attribution *a, size_t index)
{
	for (unsigned i = 0; i < a->loop_count; i++)
		for (unsigned slot = 0; slot < SLOT_COUNT; slot++)
			if (a->loops[i].open[slot] && a->loops[i].main && !index--)
				return a->loops[i].open[slot];
	return NULL;
}

bool model_step(const struct model *m, size_t index, struct model_step *shown)
{
	const struct attribution *a = m->attribution;
	const struct steps *steps = &a->steps;
	uint64_t kept = steps->count < RECORDS ? steps->count : RECORDS;
	const struct step_record *record;
	if (index >= kept)
		record = open_at(a, index - kept);
	else if (index < STEPS_FIRST)
		record = &steps->records[index];
	else
		record = &steps->records[place_of(first_kept(steps) + index - STEPS_FIRST)];
	if (record)
		describe(m, record, shown);
	return record != NULL;
}

void model_step_totals(const struct model *m, struct model_step_totals *totals)
{
	const struct attribution *a = m->attribution;
	*totals = (struct model_step_totals){a->step_count, a->backwards, a->forwards};
}
