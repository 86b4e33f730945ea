/* A model whose figures a test sets by hand, with the functions of model/model.h: printers are
 * tested for what they make of figures, not for how these come about. To be included by one .c file
 * of a test program. */
#ifndef TEST_FAKE_MODEL_H
#define TEST_FAKE_MODEL_H

#include "model/attribution.h"
#include "model/model.h"
#include "model/segments.h"
#include "model/verdict.h"

#define FAKE_ROWS 256

struct fake_rows {
	struct model_share rows[FAKE_ROWS];
	size_t count;
};

struct model {
	struct model_totals totals;
	struct model_device devices[MODEL_DEVICES_MAX];
	unsigned device_count;
	struct model_owner owners[8]; /* the same for all devices */
	unsigned owner_count;
	struct fake_rows at_peak, now, at_oom;
	struct model_oom ooms[MODEL_OOMS_MAX];
	size_t oom_count;
	struct model_step steps[8];
	size_t step_count;
	struct model_step_totals step_totals;
	struct verdict finding; /* UNKNOWN: there is none */
	struct model_timeline timeline; /* the same for all devices */
	struct model_witness witness;
	struct model_missed missed[MEMTRACE_SPACE_COUNT];
	size_t missed_count;
	bool failed;
};

static inline void fake_share(struct fake_rows *to, uint64_t bytes, uint64_t count, uint32_t stack)
{
	to->rows[to->count++] =
		(struct model_share){.bytes = bytes, .count = count, .stack = stack};
}

static size_t fake_copy(const struct fake_rows *from, struct model_share *rows, size_t capacity)
{
	for (size_t i = 0; i < from->count && i < capacity; i++)
		rows[i] = from->rows[i];
	return from->count;
}

const struct model_totals *model_totals(const struct model *model)
{
	return &model->totals;
}

bool model_failed(const struct model *model)
{
	return model->failed;
}

struct model_witness model_witness(const struct model *model)
{
	return model->witness;
}

size_t model_missed(const struct model *model, struct model_missed *rows, size_t capacity)
{
	for (size_t i = 0; i < model->missed_count && i < capacity; i++)
		rows[i] = model->missed[i];
	return model->missed_count;
}

const struct model_device *model_device(const struct model *model, unsigned index)
{
	return index < model->device_count ? &model->devices[index] : NULL;
}

/* As the model may: one row for all looks. */
const struct model_owner *model_owner(const struct model *model, unsigned ordinal, unsigned index)
{
	static struct model_owner shown;
	(void)ordinal;
	if (index >= model->owner_count)
		return NULL;
	shown = model->owners[index];
	return &shown;
}

bool model_timeline(const struct model *model, unsigned ordinal, struct model_timeline *timeline)
{
	(void)ordinal;
	*timeline = model->timeline;
	return model->timeline.count > 0;
}

uint64_t model_reserved_live_bytes(const struct model *model, unsigned ordinal)
{
	(void)model;
	(void)ordinal;
	return 0;
}

size_t model_stacks_at_peak(const struct model *model, unsigned ordinal, struct model_share *rows,
			    size_t capacity)
{
	(void)ordinal;
	return fake_copy(&model->at_peak, rows, capacity);
}

size_t model_stacks_now(const struct model *model, unsigned ordinal, struct model_share *rows,
			size_t capacity)
{
	(void)ordinal;
	return fake_copy(&model->now, rows, capacity);
}

size_t model_stacks_at_oom(const struct model *model, size_t index, struct model_share *rows,
			   size_t capacity)
{
	(void)index;
	return fake_copy(&model->at_oom, rows, capacity);
}

size_t model_shares_at_peak(const struct model *model, unsigned ordinal, struct model_share *rows,
			    size_t capacity)
{
	return model_stacks_at_peak(model, ordinal, rows, capacity);
}

size_t model_shares_now(const struct model *model, unsigned ordinal, struct model_share *rows,
			size_t capacity)
{
	return model_stacks_now(model, ordinal, rows, capacity);
}

size_t model_shares_at_oom(const struct model *model, size_t index, struct model_share *rows,
			   size_t capacity)
{
	return model_stacks_at_oom(model, index, rows, capacity);
}

static bool fake_categories(const struct fake_rows *rows, struct model_categories *categories)
{
	*categories = (struct model_categories){0};
	for (size_t i = 0; i < rows->count; i++)
		categories->bytes[rows->rows[i].category] += rows->rows[i].bytes;
	return true;
}

bool model_categories_at_peak(const struct model *model, unsigned ordinal,
			      struct model_categories *categories)
{
	(void)ordinal;
	return fake_categories(&model->at_peak, categories);
}

bool model_categories_now(const struct model *model, unsigned ordinal,
			  struct model_categories *categories)
{
	(void)ordinal;
	return fake_categories(&model->now, categories);
}

bool model_categories_at_oom(const struct model *model, size_t index,
			     struct model_categories *categories)
{
	(void)index;
	return fake_categories(&model->at_oom, categories);
}

bool model_verdict(const struct model *model, size_t index, struct verdict *verdict)
{
	*verdict = (struct verdict){.cause = VERDICT_UNKNOWN};
	return index < model->oom_count;
}

size_t model_findings(const struct model *model, struct verdict *found, size_t capacity)
{
	if (model->finding.cause == VERDICT_UNKNOWN || !capacity)
		return 0;
	*found = model->finding;
	return 1;
}

const struct segment_map *model_segments_now(const struct model *model, unsigned ordinal)
{
	(void)model;
	(void)ordinal;
	return NULL;
}

const struct segment_map *model_segments_at_oom(const struct model *model, size_t index)
{
	(void)model;
	(void)index;
	return NULL;
}

uint64_t model_steps_before(const struct model *model, unsigned ordinal, uint64_t sequence)
{
	(void)model;
	(void)ordinal;
	(void)sequence;
	return 0;
}

size_t model_lows_at_oom(const struct model *model, size_t index, uint64_t *lows, size_t capacity, uint64_t *steps_each)
{
	(void)model;
	(void)index;
	(void)lows;
	(void)capacity;
	*steps_each = 0;
	return 0;
}

bool model_step(const struct model *model, size_t index, struct model_step *step)
{
	if (index < model->step_count)
		*step = model->steps[index];
	return index < model->step_count;
}

void model_step_totals(const struct model *model, struct model_step_totals *totals)
{
	*totals = model->step_totals;
}

uint64_t model_parameters_of_size(const struct model *model, uint64_t bytes)
{
	(void)model;
	(void)bytes;
	return 0;
}

bool model_has_parameter_of(const struct model *model, uint64_t least_bytes, uint64_t most_bytes)
{
	(void)model;
	(void)least_bytes;
	(void)most_bytes;
	return false;
}

struct model_elements model_elements(const struct model *model, uint32_t stack, uint64_t bytes)
{
	(void)model, (void)stack;
	return (struct model_elements){.bytes = {bytes}};
}

size_t model_oom_count(const struct model *model)
{
	return model->oom_count;
}

const struct model_oom *model_oom(const struct model *model, size_t index)
{
	return index < model->oom_count ? &model->ooms[index] : NULL;
}

#endif
