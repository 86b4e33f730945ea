/* What the device says is in use beyond what was traced. Owns the words for it. Must never call a figure
 * this process's own that has other processes' memory in it. No malloc, stdio or locale: see summary.c. */
#include "report/untracked.h"

#include "base/units.h"
#include "report/devices.h"
#include "report/json.h"
#include "report/where.h"

#define CAUSE_COLUMNS  58
#define BYTES_COLUMN   66
#define TIME_COLUMN    76
#define OTHERS_SHOWN_BYTES (1u << 20)

/* ---------- rows of the summary ---------- */

static void add_of_total(struct text *out, struct unit unit, const struct model_device *device)
{
	if (device->total_bytes)
		text_printf(out, " of %llu",
			    (unsigned long long)unit_round(unit, device->total_bytes));
	text_add_char(out, '\n');
}

/* The device as a whole: what belongs to whom is not known, nor what it was at the peak. */
static void add_whole_rows(struct text *out, struct unit unit, const struct model_device *device)
{
	text_add(out, "  untracked when last read: context, kernels, others");
	layout_bytes(out, unit, device->untracked_bytes, UNTRACKED_EXIT_COLUMN);
	text_add(out, "\n  in use on the device when last read");
	layout_bytes(out, unit, device->in_use_bytes, UNTRACKED_EXIT_COLUMN);
	add_of_total(out, unit, device);
}

static void add_row(struct text *out, struct unit unit, const char *title, uint64_t peak_bytes,
		    uint64_t now_bytes)
{
	text_add(out, title);
	layout_bytes(out, unit, peak_bytes, UNTRACKED_PEAK_COLUMN);
	layout_bytes(out, unit, now_bytes, UNTRACKED_EXIT_COLUMN);
}

static void add_own_rows(struct text *out, struct unit unit, const struct model_device *device)
{
	uint64_t others_bytes = device->others_known ? device->others_bytes : 0;
	add_row(out, unit, "  untracked: context, kernels", device->untracked_at_peak_bytes,
		device->untracked_bytes);
	text_add_char(out, '\n');
	if (others_bytes >= OTHERS_SHOWN_BYTES) {
		text_add(out, "  other processes, when last read");
		layout_bytes(out, unit, others_bytes, UNTRACKED_EXIT_COLUMN);
		text_add_char(out, '\n');
	}
	add_row(out, unit, "  in use on the device",
		device->reserved.peak_bytes + device->untracked_at_peak_bytes + others_bytes,
		device->reserved.current_bytes + device->untracked_bytes + others_bytes);
	add_of_total(out, unit, device);
}

void untracked_add_rows(struct text *out, const struct model_device *device)
{
	/* A unit of their own: a card is large, also when the program is small. */
	struct unit unit = unit_for(device->total_bytes > device->in_use_bytes ? device->total_bytes
									       : device->in_use_bytes);
	if (!device->untracked_known)
		return;
	if (device->untracked_is_own)
		add_own_rows(out, unit, device);
	else if (device->in_use_known)
		add_whole_rows(out, unit, device);
}

/* ---------- jumps ---------- */

static uint64_t jump_bytes(const struct model_jump *jump)
{
	return jump->after_bytes > jump->before_bytes ? jump->after_bytes - jump->before_bytes
						      : jump->before_bytes - jump->after_bytes;
}

static bool is_larger(const struct model_jump *a, const struct model_jump *b)
{
	if (jump_bytes(a) != jump_bytes(b))
		return jump_bytes(a) > jump_bytes(b);
	return a->sequence < b->sequence;
}

/* The largest that comes after `previous` (NULL: of all). */
static const struct model_jump *next_jump(const struct model_device *device,
					  const struct model_jump *previous)
{
	const struct model_jump *best = NULL;
	for (uint32_t i = 0; i < device->jump_count; i++) {
		const struct model_jump *jump = &device->jumps[i];
		if (previous && !is_larger(previous, jump))
			continue;
		if (!best || is_larger(jump, best))
			best = jump;
	}
	return best;
}

static void add_count(struct text *out, uint32_t count, const char *one, const char *many)
{
	if (!count)
		return;
	if (out->used_bytes)
		text_add(out, ", ");
	if (count == 1)
		text_add(out, one);
	else
		text_printf(out, "%u %s", count, many);
}

static void add_causes(struct text *out, const struct model_jump *jump)
{
	add_count(out, jump->contexts, "context", "contexts");
	add_count(out, jump->modules, "module", "modules");
	add_count(out, jump->graphs, "graph", "graphs");
	if (!out->used_bytes)
		text_add(out, jump->before_bytes ? "(nothing that was seen)"
						 : "the context, before the first reading");
}

static void add_jump(struct text *out, const struct defs *defs, const struct model_jump *jump,
		     bool ascii)
{
	const struct unit mib = {"MiB", 20};
	char buffer[512], time[32], change[32];
	struct text piece;
	struct where where = where_find(defs, jump->stack, 0);
	text_init_fixed(&piece, buffer, sizeof buffer);
	add_causes(&piece, jump);
	if (jump->stack) {
		text_add(&piece, ", last at ");
		where_add(&piece, defs, &where, ascii);
	}
	text_add(out, "  ");
	layout_cut(out, &piece, CAUSE_COLUMNS);
	text_init_fixed(&piece, change, sizeof change);
	text_printf(&piece, "%c%llu", jump->after_bytes < jump->before_bytes ? '-' : '+',
		    (unsigned long long)unit_round(mib, jump_bytes(jump)));
	layout_word(out, text_string(&piece), BYTES_COLUMN);
	text_init_fixed(&piece, time, sizeof time);
	text_add_duration(&piece, jump->time_ns);
	layout_word(out, text_string(&piece), TIME_COLUMN);
	text_add_char(out, '\n');
}

static void add_heading(struct text *out, const struct model_device *device, bool is_one_of_many)
{
	if (out->used_bytes)
		text_add_char(out, '\n');
	text_add(out, device->untracked_is_own ? "Untracked memory came with"
					       : "Untracked memory and other processes', with");
	if (is_one_of_many) {
		text_add(out, " (");
		devices_add_ordinal(out, device->ordinal);
		text_add_char(out, ')');
	}
	layout_word(out, "MiB", BYTES_COLUMN);
	layout_word(out, "after", TIME_COLUMN);
	text_add_char(out, '\n');
}

static void add_device_jumps(struct text *out, const struct defs *defs,
			     const struct model_device *device, size_t limit, bool ascii)
{
	const struct model_jump *jump = NULL;
	size_t shown = 0;
	while ((!limit || shown < limit) && (jump = next_jump(device, jump))) {
		add_jump(out, defs, jump, ascii);
		shown++;
	}
	uint32_t hidden = device->jump_count + device->jumps_dropped - (uint32_t)shown;
	if (hidden)
		text_printf(out, "  %u smaller\n", hidden);
}

void untracked_add_jumps(struct text *out, const struct model *model, const struct defs *defs,
			 size_t limit, bool is_full, bool ascii)
{
	const struct model_device *device;
	for (unsigned i = 0; (device = model_device(model, i)); i++) {
		bool is_one_of_many = model_device(model, 1) != NULL;
		if (!is_full && is_one_of_many)
			return;
		device = model_device(model, i); /* shown anew */
		if (!device->jump_count || (device->jump_count < 2 && !is_full))
			continue;
		add_heading(out, device, is_one_of_many);
		add_device_jumps(out, defs, device, limit, ascii);
	}
}

/* ---------- at an OOM ---------- */

bool untracked_others_at_oom(const struct model_oom *oom, uint64_t *bytes)
{
	bool knows_used = oom->free_bytes != UINT64_MAX && oom->total_bytes &&
			  oom->free_bytes <= oom->total_bytes;
	uint64_t used = knows_used ? oom->total_bytes - oom->free_bytes : 0;
	uint64_t own = oom->reserved_bytes + oom->untracked_bytes;
	if (!knows_used || !oom->untracked_known)
		return false;
	*bytes = used > own ? used - own : 0;
	return true;
}

/* ---------- JSON ---------- */

static void add_json_jump(struct json *json, const struct defs *defs,
			  const struct model_jump *jump)
{
	json_open(json, NULL, '{');
	json_unsigned(json, "time_ns", jump->time_ns);
	json_unsigned(json, "sequence", jump->sequence);
	json_unsigned(json, "before_bytes", jump->before_bytes);
	json_unsigned(json, "after_bytes", jump->after_bytes);
	json_unsigned(json, "contexts", jump->contexts);
	json_unsigned(json, "modules", jump->modules);
	json_unsigned(json, "graphs", jump->graphs);
	json_string(json, "owner", jump->owner);
	json_open(json, "stack", '{');
	json_add_stack(json, defs, jump->stack);
	json_close(json, '}');
	json_close(json, '}');
}

static void add_json_history(struct json *json, const struct defs *defs,
			     const struct model_device *device)
{
	if (!device->untracked_known) {
		json_null(json, "untracked_history");
		return;
	}
	json_open(json, "untracked_history", '[');
	for (uint32_t i = 0; i < device->jump_count; i++)
		add_json_jump(json, defs, &device->jumps[i]);
	json_close(json, ']');
}

void untracked_add_json(struct json *json, const struct defs *defs,
			const struct model_device *device)
{
	json_known(json, "untracked_bytes", device->untracked_known, device->untracked_bytes);
	json_known(json, "untracked_at_peak_bytes", device->untracked_known,
		   device->untracked_at_peak_bytes);
	if (device->untracked_known)
		json_bool(json, "untracked_has_other_processes", !device->untracked_is_own);
	else
		json_null(json, "untracked_has_other_processes");
	json_known(json, "in_use_bytes", device->in_use_known, device->in_use_bytes);
	json_known(json, "other_processes_bytes", device->others_known, device->others_bytes);
	add_json_history(json, defs, device);
}
