/* Levers for people and as JSON. Owns what is shown of them: the first of them, and a line with what would
 * not help. Must never show a bound without saying "up to". */
#include "report/levers.h"

#include <string.h>

#include "report/json.h"
#include "report/layout.h"

#define BYTES_COLUMN 62
#define NAME_COLUMNS 50

static void add_row(struct text *out, const struct lever *lever, struct unit unit)
{
	char buffer[64];
	struct text piece;
	text_init_fixed(&piece, buffer, sizeof buffer);
	text_add(&piece, lever->text);
	text_add(out, "  ");
	text_init_fixed(&piece, buffer, sizeof buffer);
	text_add(&piece, lever->text);
	layout_cut(out, &piece, NAME_COLUMNS);
	text_init_fixed(&piece, buffer, sizeof buffer);
	text_printf(&piece, "%s%llu", lever->up_to ? "up to " : "",
		    (unsigned long long)unit_round(unit, lever->saves_bytes));
	layout_word(out, text_string(&piece), BYTES_COLUMN);
	text_add_char(out, '\n');
}

static bool is_told(const struct lever *lever)
{
	return !lever->applies && (lever->saves_bytes == 0 || strncmp(lever->name, "zero", 4));
}

static void add_others(struct text *out, const struct levers *levers)
{
	static const char title[] = "  would not: ";
	char buffer[256];
	struct text piece;
	size_t column = 0;
	for (size_t i = 0; i < levers->count; i++) {
		const struct lever *lever = &levers->rows[i];
		if (!is_told(lever))
			continue;
		text_init_fixed(&piece, buffer, sizeof buffer - 1);
		text_printf(&piece, "%s (%s)", lever->text, lever->reason);
		size_t width = layout_width(piece.data, piece.used_bytes);
		bool fits = column && column + 2 + width < LAYOUT_COLUMNS;
		text_add(out, !column ? title : fits ? "; " : ";\n");
		if (column && !fits)
			text_printf(out, "%*s", (int)sizeof title - 1, "");
		column = (fits ? column + 2 : sizeof title - 1) + width;
		layout_cut(out, &piece, LAYOUT_COLUMNS - sizeof title); /* and a semicolon */
	}
	if (column)
		text_add_char(out, '\n');
}

static bool is_sharding(const struct lever *lever)
{
	return !strncmp(lever->name, "zero", 4);
}

/* Of the stages of sharding the one that saves most stands for all. The first row from `at` on that is shown; levers->count: none. */
static size_t find_row(const struct levers *levers, size_t at)
{
	bool has_sharding = false;
	for (size_t i = 0; i < levers->count && levers->rows[i].applies; i++) {
		bool is_next_stage = has_sharding && is_sharding(&levers->rows[i]);
		has_sharding |= is_sharding(&levers->rows[i]);
		if (i >= at && !is_next_stage)
			return i;
	}
	return levers->count;
}

static void add_title(struct text *out, struct unit unit, size_t hidden)
{
	text_add(out, "Would lower this peak");
	if (hidden)
		text_printf(out, " (%llu more: memtrace report --full)", (unsigned long long)hidden);
	layout_word(out, unit.name, BYTES_COLUMN);
	text_add_char(out, '\n');
}

void levers_print(struct text *out, const struct levers *levers, size_t limit)
{
	struct unit unit = unit_for(levers->peak_bytes);
	size_t all = 0, shown = 0;
	for (size_t i = find_row(levers, 0); i < levers->count; i = find_row(levers, i + 1))
		all++;
	if (!all || !limit)
		return;
	add_title(out, unit, all > limit ? all - limit : 0);
	for (size_t i = find_row(levers, 0); i < levers->count && shown < limit; i = find_row(levers, i + 1), shown++)
		add_row(out, &levers->rows[i], unit);
	if (!levers->rows[0].mends_fault) /* beside what is wrong, what does not help is of no interest */
		add_others(out, levers);
}

const char *levers_next(const struct levers *levers, bool are_shown)
{
	static const char usual[] = "report --by stack";
	if (!levers || !levers->count || !levers->rows->applies)
		return usual;
	if (!are_shown)
		return "report --full";
	return strcmp(levers->rows->name, LEVER_OF_ALLOCATOR) ? usual : "whatif";
}

void json_add_levers(struct json *json, const struct model *model, const struct defs *defs,
		     const struct model_device *device)
{
	struct levers levers;
	levers_find(&levers, model, defs, device);
	json_open(json, "levers", '[');
	for (size_t i = 0; i < levers.count; i++) {
		const struct lever *lever = &levers.rows[i];
		json_open(json, NULL, '{');
		json_string(json, "name", lever->name);
		json_unsigned(json, "saves_bytes", lever->saves_bytes);
		json_bool(json, "up_to", lever->up_to);
		json_bool(json, "applies", lever->applies);
		json_string(json, "reason", lever->reason);
		json_string(json, "text", lever->text);
		json_close(json, '}');
	}
	json_close(json, ']');
}
