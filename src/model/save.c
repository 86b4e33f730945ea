/* The door of saving and loading. Owns the order of the parts, the version, and the totals. Must never
 * let what was read be used as an index, a size or a pointer before it was checked: by the limit of its
 * field, or by what the part's own file says. */
#include "model/save.h"

#include <errno.h>
#include <string.h>

#include "model/owner_name.h"
#include "model/save_private.h"

#define STATE_VERSION 30
#define STATE_END     0x5a

bool save_has_item(struct archive *a, bool has_item)
{
	archive_bool(a, &has_item);
	return has_item && !a->error;
}

void *save_new(struct model *m, struct archive *a, size_t bytes)
{
	void *at = model_new(m, bytes);
	if (!at)
		archive_fail(a, -ENOMEM);
	return at;
}

static const struct field totals_fields[] = {
	FIELD(struct model_totals, events),
	FIELD(struct model_totals, block_events),
	FIELD(struct model_totals, unknown_frees),
	FIELD(struct model_totals, double_allocations),
	FIELD(struct model_totals, impossible_sizes),
	FIELD(struct model_totals, pinned_current_bytes),
	FIELD(struct model_totals, pinned_peak_bytes),
	FIELD(struct model_totals, managed_current_bytes),
	FIELD(struct model_totals, managed_peak_bytes),
	FIELD(struct model_totals, last_time_ns),
	FIELD(struct model_totals, live_blocks),
	FIELD(struct model_totals, live_regions),
	FIELD_END,
};

SAVED_SIZE(model_totals, 96);
SAVED_SIZE(model, 3432);

/* Numbers whose meaning is not written beside them: those of another version are not guessed at. */
static void save_version(struct archive *a)
{
	const uint64_t expected[] = {STATE_VERSION,	  LABEL_COUNT, KIND_FORWARD,
				     MARK_COUNT,	  LOOPS_MAX,   MODEL_DEVICES_MAX,
				     STEPS_FIRST + STEPS_LAST};
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		uint64_t number = expected[i];
		archive_number(a, &number);
		if (number != expected[i])
			archive_fail(a, -ENOTSUP);
	}
}

/* Names of owners keep their index; the first two every model has. */
static void save_owner(struct model *m, struct archive *a, uint32_t index)
{
	char name[OWNER_NAME_BYTES] = "";
	uint64_t length = 0;
	if (!a->is_loading) {
		length = strnlen(m->owner_names[index], sizeof name - 1);
		memcpy(name, m->owner_names[index], length);
	}
	archive_number_below(a, &length, sizeof name);
	archive_bytes(a, name, length);
	if (a->is_loading && !a->error && owner_restore(m, name) != index)
		archive_fail(a, m->failed ? -ENOMEM : -EINVAL);
}

static void save_owners(struct model *m, struct archive *a)
{
	for (uint32_t i = 2; save_has_item(a, i < m->owner_count); i++)
		save_owner(m, a, i);
	a->bounds[BOUND_OWNERS] = m->owner_count;
}

static void save_ooms(struct model *m, struct archive *a)
{
	uint64_t count = m->oom_count;
	archive_number_below(a, &count, MODEL_OOMS_MAX + 1);
	for (uint32_t i = 0; i < count && !a->error; i++) {
		save_suspect(m, a, &m->ooms[i]);
		if (!m->ooms[i])
			archive_fail(a, -EINVAL);
		else if (a->is_loading)
			m->oom_count++;
	}
}

static void save_end(struct archive *a)
{
	uint64_t end = STATE_END;
	archive_number(a, &end);
	if (end != STATE_END)
		archive_fail(a, -EINVAL);
}

static int save_or_load(struct model *m, struct archive *a)
{
	a->error = 0;
	a->bounds[BOUND_STACKS] = (uint64_t)defs_stack_count(m->defs) + 1;
	a->bounds[BOUND_THREADS] = (uint64_t)defs_thread_count(m->defs) + 1;
	save_version(a);
	archive_fields(a, &m->totals, totals_fields);
	archive_fields(a, &m->frozen_totals, totals_fields);
	archive_bool(a, &m->is_frozen);
	save_owners(m, a);
	save_devices(m, a);
	save_ooms(m, a);
	save_memory(m, a);
	save_attribution(m, a);
	save_threads(m, a);
	save_blocks(m, a);
	save_sizes(m, a);
	save_elements(m, a);
	save_causes(m, a);
	save_witness(m, a);
	save_end(a);
	if (a->is_loading && m->failed)
		archive_fail(a, -ENOMEM);
	return a->error;
}

int model_save(struct model *m, struct archive *archive)
{
	archive->is_loading = false;
	return m->failed ? -ENOMEM : save_or_load(m, archive);
}

int model_load(struct model *m, struct archive *archive)
{
	archive->is_loading = true;
	return save_or_load(m, archive);
}
