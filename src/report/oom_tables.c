/* What is shown of an OOM beside its verdict: what was live by line, with its category and age in steps; how the least
 * live memory moved; the holes and who keeps them. Owns these tables. No malloc: see sites.c. */
#include "base/units.h"
#include "report/ages.h"
#include "report/category.h"
#include "report/layout.h"
#include "report/oom_tables.h"
#include "report/sites.h"

#define LIVE_SHOWN    15
#define PINNERS_SHOWN 5

/* Where the columns of the pinners end. */
enum { NAME_COLUMNS = 37, KEPT_COLUMN = 46, LIVE_COLUMN = 54, SEGMENTS_COLUMN = 64, AGE_COLUMN = 79 };

/* ---------- what was live ---------- */

static bool knows_categories(const struct model *model, size_t index)
{
	struct model_categories categories;
	if (!model_categories_at_oom(model, index, &categories))
		return false;
	for (unsigned i = 0; i < MODEL_CATEGORY_COUNT; i++)
		if (i != MODEL_UNKNOWN && categories.bytes[i])
			return true;
	return false;
}

/* What becomes of a block later can tell what it was. */
static void add_moment(struct text *out, const struct summary_facts *facts)
{
	text_add(out, facts->ended == SUMMARY_RUNNING ?
			      "(categories as of that moment; memtrace oom tells them after the whole run)\n" :
			      "(categories as the whole trace shows them; the text written then may differ)\n");
}

void oom_print_live(struct text *out, const struct model *model, const struct defs *defs,
		    const struct summary_facts *facts, size_t index)
{
	struct sites sites = sites_collect(model, defs, (struct composition){COMPOSITION_OOM, (unsigned)index});
	struct ages ages = ages_at_oom(model, index);
	const struct sites_style style = {
		.limit = LIVE_SHOWN,
		.ascii = facts->ascii,
		.has_categories = knows_categories(model, index),
		.names_pass = true,
		.ages = ages.steps && knows_categories(model, index) ? &ages : NULL,
		.heading = "Live when it ran out",
	};
	sites_print(out, defs, &sites, &style);
	if (style.has_categories)
		add_moment(out, facts);
	sites_release(&sites);
}

/* ---------- how it moved ---------- */

static void add_lows(struct text *out, const uint64_t *lows, size_t count, uint64_t each)
{
	uint64_t most = 0;
	for (size_t i = 0; i < count; i++)
		most = lows[i] > most ? lows[i] : most;
	struct unit unit = unit_for(most);
	text_add(out, "  least live in ");
	if (each > 1) {
		text_add(out, "each ");
		text_add_count(out, each);
		text_add(out, " of the last steps");
	} else {
		text_add(out, "the last steps");
	}
	text_printf(out, " (%s)", unit.name);
	for (size_t i = 0; i < count; i++) {
		text_add_char(out, ' ');
		text_add_count(out, unit_round(unit, lows[i]));
	}
	text_add_char(out, '\n');
}

/* What grows within a step, or now and then, is no less a leak. */
static void add_forecast(struct text *out, const struct model_forecast *forecast, bool is_leak)
{
	if (!forecast->is_known)
		return;
	if (!forecast->grows) {
		text_add(out, is_leak ? "" : "  it does not grow with the steps\n");
		return;
	}
	text_add(out, "  grew ");
	text_add_size(out, forecast->each_bytes);
	text_add(out, " a step for ");
	text_add_count(out, forecast->over_steps);
	text_add(out, " steps");
	if (forecast->end_step) {
		text_add(out, ": full in about step ");
		text_add_count(out, forecast->end_step);
		text_add(out, ", this is step ");
		text_add_count(out, forecast->now_step);
	}
	text_add_char(out, '\n');
}

void oom_print_trend(struct text *out, const struct model *model, size_t index, const struct verdict *verdict)
{
	uint64_t lows[OOM_LOWS_SHOWN], each;
	size_t count = model_lows_at_oom(model, index, lows, OOM_LOWS_SHOWN, &each);
	struct model_forecast forecast = model_forecast_at_oom(model, index);
	if (count < 2)
		return;
	add_lows(out, lows, count, each);
	add_forecast(out, &forecast, verdict->cause == VERDICT_LEAK);
}

/* ---------- holes ---------- */

static void add_pinner(struct text *out, const struct defs *defs, const struct segment_pinner *pinner, struct unit unit,
		       const struct ages *ages, bool ascii)
{
	char buffer[512];
	struct text name;
	struct where where = where_find(defs, pinner->stack, 0);
	text_init_fixed(&name, buffer, sizeof buffer);
	where_add(&name, defs, &where, ascii);
	text_add(out, "  ");
	layout_cut(out, &name, NAME_COLUMNS);
	layout_number(out, unit_round(unit, pinner->hostage_bytes), KEPT_COLUMN);
	layout_number(out, unit_round(unit, pinner->live_bytes), LIVE_COLUMN);
	layout_number(out, pinner->segments, SEGMENTS_COLUMN);
	if (ages->steps)
		sites_add_age(out, ages, (struct birth){pinner->oldest_born, pinner->newest_born}, AGE_COLUMN);
	text_add_char(out, '\n');
}

static void add_pinners_heading(struct text *out, struct unit unit, const struct ages *ages)
{
	text_add(out, "What keeps it");
	layout_word(out, unit.name, KEPT_COLUMN);
	layout_word(out, "live", LIVE_COLUMN);
	layout_word(out, "segments", SEGMENTS_COLUMN);
	if (ages->steps)
		layout_word(out, "steps old", AGE_COLUMN);
	text_add_char(out, '\n');
}

static void add_holes_heading(struct text *out, const struct segment_metrics *metrics)
{
	text_add(out, "Free between live blocks: ");
	text_add_size(out, metrics->pinned_bytes);
	text_add(out, ", the largest hole ");
	text_add_size(out, metrics->largest_hole_bytes);
	text_add_char(out, '\n');
}

/* Little is not worth a table, unless it is what it is about. */
static bool is_worth_a_table(const struct segment_metrics *metrics, const struct verdict *verdict)
{
	return metrics->pinned_bytes &&
	       (verdict->cause == VERDICT_FRAGMENTATION || metrics->pinned_bytes * 20 >= metrics->allocated_bytes);
}

void oom_print_holes(struct text *out, const struct model *model, const struct defs *defs, size_t index,
		     const struct verdict *verdict, bool ascii)
{
	const struct segment_map *map = model_segments_at_oom(model, index);
	struct segment_metrics metrics = map ? segment_metrics_of(map) : (struct segment_metrics){0};
	struct segment_pinner pinners[PINNERS_SHOWN];
	struct arena *arena = is_worth_a_table(&metrics, verdict) ? arena_create() : NULL;
	size_t count = arena ? segment_pinners_of(map, arena, pinners, PINNERS_SHOWN) : 0;
	struct ages ages = ages_at_oom(model, index);
	if (count) {
		struct unit unit = unit_for(pinners[0].hostage_bytes);
		add_holes_heading(out, &metrics);
		add_pinners_heading(out, unit, &ages);
		for (size_t i = 0; i < count; i++)
			add_pinner(out, defs, &pinners[i], unit, &ages, ascii);
		text_add_char(out, '\n');
	}
	if (arena)
		arena_release(arena);
}
