/* Memory by operator, module or category. Owns what a stack is called in each. Must never drop a row:
 * what has no name of that kind has one that says so. */
#include "report/by_name.h"

#include <string.h>

#include "report/category.h"
#include "report/layout.h"
#include "report/where.h"

#define NAME_BYTES    256

/* Where the columns end; a table of categories needs none for what its rows mostly are. */
struct columns {
	size_t name, bytes, blocks, most;
};
static const struct columns plain_columns = {45, 54, 62, 64};
static const struct columns category_columns = {60, 69, 77, 0};

/* Names take what a terminal has more than the columns need; those of categories are short. */
static struct columns columns_of(enum by_kind kind)
{
	struct columns columns = kind == BY_CATEGORY ? category_columns : plain_columns;
	size_t more = kind == BY_CATEGORY ? 0 : layout_spare_columns();
	columns.name += more;
	columns.bytes += more;
	columns.blocks += more;
	columns.most += columns.most ? more : 0;
	return columns;
}

struct named_row {
	char name[NAME_BYTES];
	uint64_t bytes, count;
	uint64_t category_bytes[MODEL_CATEGORY_COUNT];
};

struct named_rows {
	struct named_row *rows; /* largest first */
	size_t count;
};

/* ---------- names ---------- */

bool by_name_operator(struct text *out, const struct defs *defs, uint32_t id)
{
	const struct def_stack *stack = defs_stack(defs, id);
	struct native_speaker node = stack ? native_find_backward(defs, stack) : (struct native_speaker){0};
	char name[CXX_NAME_BYTES];
	if (stack && !node.frame)
		node.frame = native_find_aten(defs, stack);
	if (!node.frame)
		return false;
	native_name_speaker(name, &node);
	text_add_escaped(out, name);
	return true;
}

static bool is_forward(const char *function)
{
	const char *last = strrchr(function, '.');
	return last && !strcmp(last, ".forward");
}

const struct def_python_frame *by_name_module(const struct defs *defs, uint32_t id)
{
	const struct def_stack *stack = defs_stack(defs, id);
	const struct def_python_frame *of_library = NULL;
	for (uint32_t i = 0; stack && i < stack->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(defs, stack->python[i]);
		const char *package;
		if (!frame || !is_forward(frame->function))
			continue;
		if (!where_package(defs, frame->file, &package))
			return frame;
		if (!of_library)
			of_library = frame;
	}
	return of_library;
}

static void add_module(struct text *out, const struct defs *defs, uint32_t id)
{
	const struct def_stack *stack = defs_stack(defs, id);
	const struct def_python_frame *frame = by_name_module(defs, id);
	if (frame) {
		struct def_python_frame whole = *frame;
		whole.line = 0; /* all of the module's lines are one row */
		where_add_frame(out, defs, &whole);
	} else if (stack && native_find_backward(defs, stack).frame) {
		text_add(out, "(backward)");
	} else {
		text_add(out, "(outside of modules)");
	}
}

/* What the program keeps is told by the line that made it: the category alone says nothing. */
static void add_category(struct text *out, const struct defs *defs, const struct model_share *share)
{
	const char *detail = model_detail_name(share->detail);
	text_add(out, category_title(share->category));
	if (detail) {
		text_add(out, ": ");
		text_add(out, detail);
	}
	if (share->category == MODEL_OTHER) {
		struct where where = where_find(defs, share->stack, 0);
		text_add(out, ", ");
		where_add_line(out, defs, &where);
	}
}

static void add_name(struct text *out, const struct defs *defs, const struct model_share *share, enum by_kind kind)
{
	if (kind == BY_CATEGORY)
		add_category(out, defs, share);
	else if (kind == BY_MODULE)
		add_module(out, defs, share->stack);
	else if (!by_name_operator(out, defs, share->stack))
		text_add(out, "(no operator)");
}

/* ---------- rows ---------- */

static uint64_t hash_of(const char *name)
{
	uint64_t hash = 14695981039346656037u;
	while (*name)
		hash = (hash ^ (unsigned char)*name++) * 1099511628211u;
	return hash;
}

/* `slots` holds row numbers + 1 and is never full. */
static struct named_row *find_row(struct named_rows *table, uint32_t *slots, size_t mask, const char *name)
{
	for (size_t at = hash_of(name) & mask;; at = (at + 1) & mask) {
		if (!slots[at]) {
			slots[at] = (uint32_t)++table->count;
			memcpy(table->rows[slots[at] - 1].name, name, strlen(name) + 1);
		}
		if (!strcmp(table->rows[slots[at] - 1].name, name))
			return &table->rows[slots[at] - 1];
	}
}

static void sort(struct named_rows *table)
{
	for (size_t i = 1; i < table->count; i++) {
		struct named_row row = table->rows[i];
		size_t at = i;
		for (; at && table->rows[at - 1].bytes < row.bytes; at--)
			table->rows[at] = table->rows[at - 1];
		table->rows[at] = row;
	}
}

static bool collect(struct named_rows *table, struct arena *arena, const struct defs *defs,
		    const struct model_share *shares, size_t count, enum by_kind kind)
{
	size_t slot_count = 16;
	while (slot_count < 2 * count)
		slot_count *= 2;
	uint32_t *slots = arena_alloc(arena, slot_count * sizeof *slots);
	table->rows = arena_alloc(arena, count * sizeof *table->rows);
	for (size_t i = 0; slots && table->rows && i < count; i++) {
		char name[NAME_BYTES];
		struct text text;
		text_init_fixed(&text, name, sizeof name - 1);
		add_name(&text, defs, &shares[i], kind);
		struct named_row *row = find_row(table, slots, slot_count - 1, text_string(&text));
		row->category_bytes[shares[i].category] += shares[i].bytes;
		row->bytes += shares[i].bytes;
		row->count += shares[i].count;
	}
	return slots && table->rows;
}

/* ---------- the table ---------- */

static void add_figures(struct text *out, struct unit unit, uint64_t bytes, uint64_t count,
			struct columns columns)
{
	layout_number(out, unit_round(unit, bytes), columns.bytes);
	layout_number(out, count, columns.blocks);
}

static void print_row(struct text *out, const struct named_row *row, struct unit unit, enum by_kind kind)
{
	struct columns columns = columns_of(kind);
	struct text name;
	char buffer[NAME_BYTES];
	text_init_fixed(&name, buffer, sizeof buffer);
	text_add(&name, row->name);
	text_add(out, "  ");
	layout_cut(out, &name, columns.name);
	add_figures(out, unit, row->bytes, row->count, columns);
	if (columns.most) {
		text_pad_to(out, columns.most);
		text_add(out, category_title(category_most(row->category_bytes)));
	}
	text_add_char(out, '\n');
}

static void print(struct text *out, const struct named_rows *table, enum by_kind kind, size_t limit)
{
	static const char *const headings[] = {
		[BY_OP] = "By operator", [BY_MODULE] = "By module", [BY_CATEGORY] = "By category"};
	struct columns columns = columns_of(kind);
	struct unit unit = unit_for(table->count ? table->rows[0].bytes : 0);
	size_t shown = limit && limit < table->count ? limit : table->count;
	uint64_t bytes = 0, count = 0;
	text_add(out, headings[kind]);
	layout_word(out, unit.name, columns.bytes);
	layout_word(out, "blocks", columns.blocks);
	if (columns.most) {
		text_pad_to(out, columns.most);
		text_add(out, "mostly");
	}
	text_add_char(out, '\n');
	for (size_t i = 0; i < shown; i++)
		print_row(out, &table->rows[i], unit, kind);
	for (size_t i = shown; i < table->count; i++) {
		bytes += table->rows[i].bytes;
		count += table->rows[i].count;
	}
	if (shown == table->count)
		return;
	text_printf(out, "  %zu more", table->count - shown);
	add_figures(out, unit, bytes, count, columns);
	text_add_char(out, '\n');
}

void by_name_print(struct text *out, const struct model *model, const struct defs *defs, struct composition of,
		   enum by_kind kind, size_t limit)
{
	struct arena *arena = arena_create();
	struct named_rows table = {0};
	size_t count = 0;
	const struct model_share *shares = arena ? composition_shares(arena, model, of, &count) : NULL;
	if (shares && collect(&table, arena, defs, shares, count, kind)) {
		sort(&table);
		print(out, &table, kind, limit);
	} else {
		text_add(out, "  not shown: memory ran out\n");
	}
	if (arena)
		arena_release(arena);
}
