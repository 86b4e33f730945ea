/* What the model tells of compositions: live, at the peak, at an OOM; by stack, by stack and category,
 * by category. Owns nothing; labels are given their meaning here, at every look. */
#include "base/bytes.h"
#include "model/model_private.h"

struct look { /* at the shares of a composition: live, at its peak, or as a snapshot has them */
	const struct model *m;
	const struct composition *of; /* NULL: nothing */
	struct snapshot_row (*value)(const struct composition *, const struct share *);
	const struct snapshot *snapshot;
};

static struct snapshot_row share_now(const struct composition *c, const struct share *share)
{
	(void)c;
	return (struct snapshot_row){share->bytes, share->count};
}

static struct look look_at(const struct model *m, const struct snapshot *snapshot)
{
	return (struct look){m, snapshot->of, NULL, snapshot};
}

static struct look look_now(const struct model *m, struct device *d)
{
	if (d && m->is_frozen)
		return look_at(m, &d->frozen_stacks);
	return (struct look){m, d ? device_composition(d) : NULL, share_now, NULL};
}

static struct snapshot_row look_share(const struct look *look, uint32_t index)
{
	if (!look->snapshot)
		return look->value(look->of, &look->of->shares[index]);
	if (index < look->snapshot->count)
		return look->snapshot->rows[index];
	return (struct snapshot_row){0};
}

/* What is told of a copy in another precision first of all: that autocast made it. */
static uint8_t detail_of_cast(uint8_t detail)
{
	switch (detail) {
	case MODEL_DETAIL_NONE:
	case MODEL_DETAIL_NO_GRAD_OUTPUT:
		return MODEL_DETAIL_AUTOCAST_COPY;
	case MODEL_DETAIL_HELD:
		return MODEL_DETAIL_AUTOCAST_HELD;
	default:
		return detail;
	}
}

static struct label_meaning meaning_on_stack(const struct model *m, uint32_t stack, uint8_t label)
{
	struct label_meaning meaning = label_meaning(label, m->attribution->has_trained);
	if (attribution_known_marks(m, stack).native & MARK_CAST)
		meaning.detail = detail_of_cast((uint8_t)meaning.detail);
	return meaning;
}

/* Of the stack's shares those with the same meaning are one row, told at the first of them. */
static struct model_share look_share_row(const struct look *look, uint32_t stack, uint32_t at)
{
	const struct share *shares = look->of->shares;
	struct label_meaning meaning = meaning_on_stack(look->m, stack, shares[at].label);
	struct model_share row = {.stack = stack,
				  .category = (uint8_t)meaning.category,
				  .detail = (uint8_t)meaning.detail,
				  .is_provisional = meaning.is_provisional};
	for (uint32_t i = look->of->index_of_stack[stack]; i; i = shares[i - 1].next) {
		struct label_meaning other = meaning_on_stack(look->m, stack, shares[i - 1].label);
		if (other.category != meaning.category || other.detail != meaning.detail ||
		    other.is_provisional != meaning.is_provisional)
			continue;
		if (i - 1 < at)
			return (struct model_share){0};
		row.bytes += look_share(look, i - 1).bytes;
		row.count += look_share(look, i - 1).count;
		row.largest_bytes = bytes_larger(row.largest_bytes, shares[i - 1].largest_bytes);
	}
	return row;
}

/* All of a stack, told at the first of its shares; the category is that of the largest. */
static struct model_share look_stack_row(const struct look *look, uint32_t stack, uint32_t at)
{
	const struct share *shares = look->of->shares;
	struct model_share row = {.stack = stack};
	uint64_t largest_bytes = 0;
	for (uint32_t i = look->of->index_of_stack[stack]; i; i = shares[i - 1].next) {
		struct snapshot_row value = look_share(look, i - 1);
		if (i - 1 < at)
			return (struct model_share){0};
		row.bytes += value.bytes;
		row.count += value.count;
		row.largest_bytes = bytes_larger(row.largest_bytes, shares[i - 1].largest_bytes);
		if (value.bytes < largest_bytes)
			continue;
		largest_bytes = value.bytes;
		struct label_meaning meaning = meaning_on_stack(look->m, stack, shares[i - 1].label);
		row.category = (uint8_t)meaning.category;
		row.detail = (uint8_t)meaning.detail;
		row.is_provisional = meaning.is_provisional;
	}
	return row;
}

static size_t look_rows(const struct look *look, struct model_share *rows, size_t capacity,
			struct model_share (*row_of)(const struct look *, uint32_t, uint32_t))
{
	struct picker picker = {.rows = rows, .capacity = capacity};
	for (uint32_t i = 0; look->of && i < look->of->share_count; i++) {
		struct model_share row = row_of(look, look->of->shares[i].stack, i);
		picker_offer(&picker, &row);
	}
	return picker_finish(&picker);
}

static struct look look_peak(const struct model *m, unsigned ordinal)
{
	struct device *d = find_device(m, ordinal);
	return (struct look){m, d ? device_composition(d) : NULL, share_at_peak, NULL};
}

static struct look look_oom(const struct model *m, size_t index)
{
	if (index < m->oom_count)
		return look_at(m, &m->ooms[index]->stacks);
	return (struct look){m, NULL, NULL, NULL};
}

size_t model_stacks_at_peak(const struct model *m, unsigned ordinal, struct model_share *rows,
			    size_t capacity)
{
	struct look look = look_peak(m, ordinal);
	return look_rows(&look, rows, capacity, look_stack_row);
}

size_t model_stacks_now(const struct model *m, unsigned ordinal, struct model_share *rows,
			size_t capacity)
{
	struct look look = look_now(m, find_device(m, ordinal));
	return look_rows(&look, rows, capacity, look_stack_row);
}

size_t model_shares_at_peak(const struct model *m, unsigned ordinal, struct model_share *rows,
			    size_t capacity)
{
	struct look look = look_peak(m, ordinal);
	return look_rows(&look, rows, capacity, look_share_row);
}

size_t model_shares_now(const struct model *m, unsigned ordinal, struct model_share *rows,
			size_t capacity)
{
	struct look look = look_now(m, find_device(m, ordinal));
	return look_rows(&look, rows, capacity, look_share_row);
}

size_t model_stacks_at_oom(const struct model *m, size_t index, struct model_share *rows,
			   size_t capacity)
{
	struct look look = look_oom(m, index);
	return look_rows(&look, rows, capacity, look_stack_row);
}

size_t model_shares_at_oom(const struct model *m, size_t index, struct model_share *rows,
			   size_t capacity)
{
	struct look look = look_oom(m, index);
	return look_rows(&look, rows, capacity, look_share_row);
}

/* ---------- categories ---------- */

static bool look_categories(const struct look *look, struct model_categories *categories)
{
	const struct composition *c = look->of;
	*categories = (struct model_categories){0};
	for (uint32_t i = 0; c && i < c->share_count; i++)
		categories_add(look->m, categories, c->shares[i].label, look_share(look, i).bytes);
	return c != NULL;
}

bool model_categories_at_peak(const struct model *m, unsigned ordinal, struct model_categories *categories)
{
	struct look look = look_peak(m, ordinal);
	return look_categories(&look, categories);
}

bool model_categories_now(const struct model *m, unsigned ordinal, struct model_categories *categories)
{
	struct look look = look_now(m, find_device(m, ordinal));
	return look_categories(&look, categories);
}

bool model_categories_at_oom(const struct model *m, size_t index, struct model_categories *categories)
{
	struct look look = look_oom(m, index);
	return look_categories(&look, categories);
}
