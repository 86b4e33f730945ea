/* Which step of a device went on at an event, and which was the last before it. Owns nothing: the records of steps do.
 * Never looks at other loops than the one that a device's steps are told of. */
#include "base/bytes.h"
#include "model/model_private.h"

/* From *place on, in no order; NULL past the last. */
static const struct step_record *next_of_device(const struct model *m, unsigned ordinal, uint64_t *place)
{
	const struct attribution *a = m->attribution;
	uint64_t kept = bytes_smaller(a->steps.count, STEPS_FIRST + STEPS_LAST);
	uint8_t slot = ordinal < MODEL_DEVICES_MAX ? (uint8_t)ordinal : SLOT_UNKNOWN;
	while (a->steps.records && *place < kept) {
		const struct step_record *record = &a->steps.records[(*place)++];
		if (record->slot == slot && record->loop == a->loop_of_slot[slot])
			return record;
	}
	return NULL;
}

const struct step_record *last_step_before(const struct model *m, unsigned ordinal, uint64_t sequence)
{
	const struct step_record *record, *last = NULL;
	for (uint64_t place = 0; (record = next_of_device(m, ordinal, &place));)
		if (!record->is_open && record->end_sequence <= sequence && (!last || record->step > last->step))
			last = record;
	return last;
}

const struct step_record *step_at(const struct model *m, unsigned ordinal, uint64_t sequence)
{
	const struct attribution *a = m->attribution;
	uint8_t slot = ordinal < MODEL_DEVICES_MAX ? (uint8_t)ordinal : SLOT_UNKNOWN;
	const struct step_record *record, *found = a->loops[a->loop_of_slot[slot]].open[slot];
	for (uint64_t place = 0; (record = next_of_device(m, ordinal, &place));)
		if (record->end_sequence > sequence && (!found || record->step < found->step))
			found = record;
	return found;
}
