/* `memtrace report --by …`: one table a device. Owns its headings and the table by stack and by
 * owner; the one by line is sites.c, those by a name by_name.c. Must never leave out rows without saying how many. */
#include "report/by.h"

#include "base/units.h"
#include "report/by_name.h"
#include "report/category.h"
#include "report/devices.h"
#include "report/layout.h"
#include "report/owner.h"
#include "report/peak.h"
#include "report/sites.h"
#include "report/summary.h"

#define FIRST_COLUMN  55
#define SECOND_COLUMN 67
#define THIRD_COLUMN  79

static void add_heading(struct text *out, const struct defs *defs,
			const struct model_device *device)
{
	devices_add_ordinal(out, device->ordinal);
	if (*devices_name(defs, device)) {
		text_add(out, "  ");
		text_add_escaped(out, devices_name(defs, device));
	}
	text_add(out, ", peak ");
	text_add_size(out, device->peak.allocated_bytes);
	text_add(out, " allocated after ");
	text_add_duration(out, device->peak.time_ns);
	text_add_char(out, '\n');
	size_t before = out->used_bytes;
	devices_add_outside(out, device);
	if (out->used_bytes > before)
		text_add_char(out, '\n');
}

static void print_lines(struct text *out, const struct model *model, const struct defs *defs,
			const struct model_device *device, bool ascii, size_t limit)
{
	struct composition of = {COMPOSITION_PEAK, device->ordinal};
	struct sites sites = sites_collect(model, defs, of);
	struct sites_style style = {.limit = limit,
				    .ascii = ascii,
				    .has_categories = category_is_any_known(model, device->ordinal),
				    .names_pass = peak_is_of_pass(device),
				    .heading = "By line"};
	sites_print(out, defs, &sites, &style);
	sites_release(&sites);
}

static void print_stacks(struct text *out, const struct model *model, const struct defs *defs,
			 struct composition of, const struct by_style *style)
{
	struct arena *arena = arena_create();
	size_t count = 0;
	const struct model_share *rows = arena ? composition_rows(arena, model, of, &count) : NULL;
	size_t shown = style->limit && style->limit < count ? style->limit : count;
	for (size_t i = 0; i < shown; i++) {
		text_add(out, "  ");
		text_add_size(out, rows[i].bytes);
		text_printf(out, ", blocks: %llu, stack %u", (unsigned long long)rows[i].count,
			    rows[i].stack);
		if (rows[i].category != MODEL_UNKNOWN)
			text_printf(out, ", %s", category_title(rows[i].category));
		text_add_char(out, '\n');
		stacks_print(out, defs, rows[i].stack, &style->stacks);
	}
	if (shown < count)
		text_printf(out, "  %zu more stacks\n", count - shown);
	if (!rows)
		text_add(out, "  not shown: memory ran out\n");
	if (arena)
		arena_release(arena);
}

static void print_owners(struct text *out, const struct model *model, unsigned ordinal,
			 size_t limit)
{
	const struct model_owner *owner;
	size_t count = 0, shown;
	uint64_t largest = 0;
	for (; (owner = model_owner(model, ordinal, (unsigned)count)); count++)
		largest = owner->peak_bytes > largest ? owner->peak_bytes : largest;
	struct unit unit = unit_for(largest);
	shown = limit && limit < count ? limit : count;
	text_printf(out, "Reserved from the driver (%s)", unit.name);
	layout_word(out, "at the peak", FIRST_COLUMN);
	layout_word(out, "own peak", SECOND_COLUMN);
	layout_word(out, "at the end", THIRD_COLUMN);
	text_add_char(out, '\n');
	for (size_t i = 0; i < shown; i++) {
		owner = model_owner(model, ordinal, (unsigned)i);
		text_add(out, "  ");
		text_add_escaped(out, owner_title(owner->name));
		layout_number(out, unit_round(unit, owner->at_peak_bytes), FIRST_COLUMN);
		layout_number(out, unit_round(unit, owner->peak_bytes), SECOND_COLUMN);
		layout_number(out, unit_round(unit, owner->current_bytes), THIRD_COLUMN);
		text_add_char(out, '\n');
	}
	if (shown < count)
		text_printf(out, "  %zu more\n", count - shown);
}

void by_print(struct text *out, const struct model *model, const struct defs *defs,
	      const struct summary_facts *facts, const struct by_style *style)
{
	const struct model_device *device;
	for (unsigned i = 0; (device = model_device(model, i)); i++) {
		struct composition of = {COMPOSITION_PEAK, device->ordinal};
		add_heading(out, defs, device);
		if (style->kind == BY_LINE)
			print_lines(out, model, defs, device, facts->ascii, style->limit);
		else if (style->kind == BY_STACK)
			print_stacks(out, model, defs, of, style);
		else if (style->kind != BY_OWNER)
			by_name_print(out, model, defs, of, style->kind, style->limit);
		else
			print_owners(out, model, device->ordinal, style->limit);
		text_add_char(out, '\n');
	}
	if (!model_device(model, 0))
		text_add(out, "No GPU memory was allocated.\n\n");
	summary_add_gaps(out, model, defs, facts);
}
