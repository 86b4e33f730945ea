/* Puts the stacks of a composition together by the user's line. Owns the order of the rows and the
 * table. Memory comes from an arena that lives as long as the table: it must never touch malloc (so
 * no qsort either), because it runs inside the traced program. */
#include "report/sites.h"

#include <string.h>

#include "base/units.h"
#include "report/category.h"
#include "report/layout.h"

/* Where the columns end; with categories and ages the others make room. */
struct columns {
	size_t name, bytes, blocks, age, category;
};
static const struct columns plain_columns = {58, 69, 78, 0, 0};
static const struct columns category_columns = {45, 54, 62, 0, 64};
static const struct columns age_columns = {37, 44, 52, 62, 64};

/* Names take what a terminal has more than the columns need. */
static struct columns columns_of(const struct sites_style *style)
{
	const struct columns *columns = style->ages ? &age_columns : style->has_categories ? &category_columns : &plain_columns;
	size_t more = layout_spare_columns();
	return (struct columns){
		.name = columns->name + more,
		.bytes = columns->bytes + more,
		.blocks = columns->blocks + more,
		.age = columns->age ? columns->age + more : 0,
		.category = columns->category ? columns->category + more : 0,
	};
}

static size_t take_rows(const struct model *model, struct composition of, struct model_share *rows,
			size_t capacity)
{
	switch (of.kind) {
	case COMPOSITION_PEAK:
		return model_stacks_at_peak(model, of.index, rows, capacity);
	case COMPOSITION_NOW:
		return model_stacks_now(model, of.index, rows, capacity);
	default:
		return model_stacks_at_oom(model, of.index, rows, capacity);
	}
}

static size_t take_shares(const struct model *model, struct composition of, struct model_share *rows,
			  size_t capacity)
{
	switch (of.kind) {
	case COMPOSITION_PEAK:
		return model_shares_at_peak(model, of.index, rows, capacity);
	case COMPOSITION_NOW:
		return model_shares_now(model, of.index, rows, capacity);
	default:
		return model_shares_at_oom(model, of.index, rows, capacity);
	}
}

typedef size_t take(const struct model *, struct composition, struct model_share *, size_t);

static struct model_share *take_all(struct arena *arena, const struct model *model,
				    struct composition of, take *some, size_t *count)
{
	struct model_share none;
	size_t capacity = some(model, of, &none, 0);
	struct model_share *rows = arena_alloc(arena, capacity * sizeof *rows);
	*count = rows ? some(model, of, rows, capacity) : 0;
	if (*count > capacity)
		*count = capacity;
	return rows;
}

struct model_share *composition_rows(struct arena *arena, const struct model *model,
				     struct composition of, size_t *count)
{
	return take_all(arena, model, of, take_rows, count);
}

struct model_share *composition_shares(struct arena *arena, const struct model *model,
				       struct composition of, size_t *count)
{
	return take_all(arena, model, of, take_shares, count);
}

struct slots { /* row numbers + 1 by the line; never full */
	uint32_t *rows;
	size_t mask;
};

/* Finds the site of a line by open addressing. Rows come largest first: the stack that makes a site
 * is its largest. */
static struct site *find_site(struct sites *sites, struct slots by_line, const struct where *where,
			      uint32_t stack)
{
	uint32_t *slots = by_line.rows;
	size_t mask = by_line.mask;
	for (size_t at = where_hash(where) & mask;; at = (at + 1) & mask) {
		if (!slots[at]) {
			slots[at] = (uint32_t)++sites->count;
			sites->rows[slots[at] - 1] = (struct site){.where = *where, .stack = stack};
		}
		if (where_is_same(&sites->rows[slots[at] - 1].where, where))
			return &sites->rows[slots[at] - 1];
	}
}

static bool is_same_inner(const struct where *a, const struct where *b)
{
	if (!a->inner || !b->inner)
		return a->inner == b->inner;
	return !strcmp(a->inner->file, b->inner->file) &&
	       !strcmp(a->inner->function, b->inner->function);
}

static void add_share(struct site *site, const struct where *where, const struct model_share *share)
{
	site->bytes += share->bytes;
	site->count += share->count;
	if (!is_same_inner(&site->where, where))
		site->inner_count++;
}

static void add_birth(struct site *site, struct birth birth)
{
	if (!birth.newest)
		return;
	if (!site->birth.newest || birth.oldest < site->birth.oldest)
		site->birth.oldest = birth.oldest;
	if (birth.newest > site->birth.newest)
		site->birth.newest = birth.newest;
}

static bool is_before(const struct site *a, const struct site *b)
{
	return a->bytes != b->bytes ? a->bytes > b->bytes : a->stack < b->stack;
}

/* Keeps the row that comes last at the root, so that the heap empties from the end of the table. */
static void sift_down(struct site *rows, size_t root, size_t count)
{
	for (size_t child; (child = 2 * root + 1) < count; root = child) {
		if (child + 1 < count && is_before(&rows[child], &rows[child + 1]))
			child++;
		if (!is_before(&rows[root], &rows[child]))
			return;
		struct site swap = rows[root];
		rows[root] = rows[child];
		rows[child] = swap;
	}
}

static void sort_sites(struct site *rows, size_t count)
{
	for (size_t root = count / 2; root-- > 0;)
		sift_down(rows, root, count);
	for (size_t end = count; end-- > 1;) {
		struct site swap = rows[0];
		rows[0] = rows[end];
		rows[end] = swap;
		sift_down(rows, 0, end);
	}
}

/* A line has several stacks, a stack several categories: what has most bytes in all names the row. */
static void add_categories(struct sites *sites, const struct defs *defs, struct slots slots,
			   const struct model_share *shares, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct where where = where_find(defs, shares[i].stack, 0);
		struct site *site = find_site(sites, slots, &where, shares[i].stack);
		site->category_bytes[shares[i].category] += shares[i].bytes;
	}
	for (size_t i = 0; i < sites->count; i++)
		sites->rows[i].category = category_most(sites->rows[i].category_bytes);
	for (size_t i = count; i-- > 0;) { /* the largest last, so that it stays */
		struct where where = where_find(defs, shares[i].stack, 0);
		struct site *site = find_site(sites, slots, &where, shares[i].stack);
		if (shares[i].category != site->category)
			continue;
		site->detail = shares[i].detail;
		site->is_provisional = shares[i].is_provisional;
	}
}

static void group_rows(struct sites *sites, const struct defs *defs, const struct model_share *rows,
		       size_t count, const struct births *births, const struct model_share *shares,
		       size_t share_count)
{
	size_t slot_count = 16;
	while (slot_count < 2 * count)
		slot_count *= 2;
	struct slots slots = {.mask = slot_count - 1};
	slots.rows = arena_alloc(sites->arena, slot_count * sizeof *slots.rows);
	sites->rows = arena_alloc(sites->arena, count * sizeof *sites->rows);
	sites->failed = !slots.rows || !sites->rows;
	for (size_t i = 0; i < count && !sites->failed; i++) {
		struct where where = where_find(defs, rows[i].stack, 0);
		struct site *site = find_site(sites, slots, &where, rows[i].stack);
		add_share(site, &where, &rows[i]);
		add_birth(site, births_of_stack(births, rows[i].stack));
		sites->bytes += rows[i].bytes;
		sites->blocks += rows[i].count;
	}
	if (!sites->failed)
		add_categories(sites, defs, slots, shares, share_count);
	sort_sites(sites->rows, sites->count);
}

struct sites sites_collect(const struct model *model, const struct defs *defs,
			   struct composition of)
{
	struct sites sites = {.arena = arena_create()};
	size_t count = 0, share_count = 0;
	struct model_share *rows =
		sites.arena ? composition_rows(sites.arena, model, of, &count) : NULL;
	struct model_share *shares =
		rows ? composition_shares(sites.arena, model, of, &share_count) : NULL;
	struct births births = {0};
	sites.failed = !shares;
	if (shares && of.kind == COMPOSITION_OOM)
		births = births_at_oom(model, of.index, sites.arena);
	if (shares)
		group_rows(&sites, defs, rows, count, &births, shares, share_count);
	return sites;
}

void sites_release(struct sites *sites)
{
	if (sites->arena)
		arena_release(sites->arena);
	*sites = (struct sites){0};
}

static void add_name(struct text *out, const struct defs *defs, const struct site *site,
		     const struct sites_style *style)
{
	char buffer[512];
	struct text name;
	text_init_fixed(&name, buffer, sizeof buffer);
	where_add(&name, defs, &site->where, style->ascii);
	if (site->inner_count)
		text_printf(&name, ", +%u more", site->inner_count);
	layout_cut(out, &name, columns_of(style).name);
}

static void add_figures(struct text *out, struct unit unit, uint64_t bytes, uint64_t blocks,
			struct columns columns)
{
	layout_number(out, unit_round(unit, bytes), columns.bytes);
	layout_number(out, blocks, columns.blocks);
}

void sites_add_age(struct text *out, const struct ages *ages, struct birth birth, size_t column)
{
	char buffer[48];
	struct text text;
	text_init_fixed(&text, buffer, sizeof buffer);
	if (birth.newest) {
		uint64_t newest = age_of(ages, birth.newest), oldest = age_of(ages, birth.oldest);
		text_add_count(&text, newest);
		if (oldest != newest) {
			text_add_char(&text, '-');
			text_add_count(&text, oldest);
		}
	}
	layout_word(out, text_string(&text), column);
}

static const char *category_of(const struct site *site, const struct sites_style *style)
{
	bool is_open = site->category == MODEL_OTHER || site->category == MODEL_TEMPORARY;
	if (style->names_pass && is_open && site->is_provisional)
		return CATEGORY_OF_PASS;
	if (style->names_pass && is_open && site->detail == MODEL_DETAIL_DROPPED_GRAPH)
		return "in a graph";
	return category_title(site->category);
}

static void add_row(struct text *out, const struct defs *defs, const struct site *site, struct unit unit,
		    const struct sites_style *style)
{
	struct columns columns = columns_of(style);
	text_add(out, "  ");
	add_name(out, defs, site, style);
	add_figures(out, unit, site->bytes, site->count, columns);
	if (columns.age)
		sites_add_age(out, style->ages, site->birth, columns.age);
	if (columns.category) {
		text_pad_to(out, columns.category);
		text_add(out, category_of(site, style));
	}
	text_add_char(out, '\n');
}

static void add_rest(struct text *out, const struct sites *sites, struct unit unit, size_t shown,
		     struct columns columns)
{
	uint64_t bytes = sites->bytes, blocks = sites->blocks;
	for (size_t i = 0; i < shown; i++) {
		bytes -= sites->rows[i].bytes;
		blocks -= sites->rows[i].count;
	}
	text_printf(out, "  %zu more", sites->count - shown);
	add_figures(out, unit, bytes, blocks, columns);
	text_add_char(out, '\n');
}

static void add_heading(struct text *out, struct unit unit, const struct sites_style *style)
{
	struct columns columns = columns_of(style);
	layout_word(out, unit.name, columns.bytes);
	layout_word(out, "blocks", columns.blocks);
	if (columns.age)
		layout_word(out, "steps old", columns.age);
	if (columns.category) {
		text_pad_to(out, columns.category);
		text_add(out, "mostly");
	}
	text_add_char(out, '\n');
}

void sites_print(struct text *out, const struct defs *defs, const struct sites *sites,
		 const struct sites_style *style)
{
	struct unit unit = unit_for(sites->count ? sites->rows[0].bytes : 0);
	size_t shown = style->limit && style->limit < sites->count ? style->limit : sites->count;
	text_add(out, style->heading);
	if (sites->failed) {
		text_add(out, ": not shown, there was no memory to sort it\n");
		return;
	}
	add_heading(out, unit, style);
	for (size_t i = 0; i < shown; i++)
		add_row(out, defs, &sites->rows[i], unit, style);
	if (shown < sites->count)
		add_rest(out, sites, unit, shown, columns_of(style));
}
