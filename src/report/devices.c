/* The table of the devices. Owns what is shown of a device and under which name. Must never add up
 * peaks that were reached at different moments: a row that cannot be exact is split. No malloc,
 * stdio or locale: see summary.c. */
#include "report/devices.h"

#include <string.h>

#include "base/bytes.h"
#include "base/units.h"
#include "report/layout.h"
#include "report/owner.h"
#include "report/untracked.h"

#define PEAK_COLUMN   UNTRACKED_PEAK_COLUMN
#define EXIT_COLUMN   UNTRACKED_EXIT_COLUMN
#define OWNERS_SHOWN  4
#define DEVICES_SHOWN 16

bool devices_is_pytorch(const struct model_device *device)
{
	return device->has_blocks || device->has_async;
}

bool devices_knows_fragmentation(const struct model_device *device)
{
	return devices_is_pytorch(device) && device->pytorch_reserved_known;
}

const struct model_counter *devices_allocated(const struct model_device *device)
{
	return devices_is_pytorch(device) ? &device->pytorch_allocated : &device->allocated;
}

void devices_add_outside(struct text *out, const struct model_device *device)
{
	const struct model_peak *peak = &device->peak;
	if (!devices_is_pytorch(device) || peak->allocated_bytes <= peak->pytorch_allocated_bytes)
		return;
	text_add(out, " (");
	text_add_size(out, peak->allocated_bytes - peak->pytorch_allocated_bytes);
	text_add(out, " of it outside PyTorch)");
}

bool devices_has_outsiders(const struct model_device *device)
{
	return devices_is_pytorch(device) && device->pytorch_reserved_known &&
	       device->reserved.peak_bytes > device->pytorch_reserved.peak_bytes;
}

void devices_add_ordinal(struct text *out, unsigned ordinal)
{
	if (ordinal == MEMTRACE_DEVICE_UNKNOWN)
		text_add(out, "GPU (unknown)");
	else if (ordinal == MEMTRACE_DEVICE_HOST)
		text_add(out, "the host");
	else
		text_printf(out, "GPU %u", ordinal);
}

const char *devices_name(const struct defs *defs, const struct model_device *device)
{
	const struct def_device *definition = defs_device(defs, device->ordinal);
	return definition ? definition->name : "";
}

static const char *end_title(const struct summary_facts *facts)
{
	if (facts->ended == SUMMARY_RUNNING)
		return "now";
	return facts_closed(facts) ? "at exit" : "at the end";
}

static void add_row(struct text *out, struct unit unit, const char *title, uint64_t peak,
		    uint64_t now)
{
	text_add(out, "  ");
	text_add(out, title);
	layout_bytes(out, unit, peak, PEAK_COLUMN);
	layout_bytes(out, unit, now, EXIT_COLUMN);
	text_add_char(out, '\n');
}

static void add_reserved(struct text *out, struct unit unit, const struct model_device *device)
{
	if (device->pytorch_reserved_known) {
		add_row(out, unit, "reserved by PyTorch", device->pytorch_reserved.peak_bytes,
			device->pytorch_reserved.current_bytes);
		return;
	}
	text_add(out, "  reserved by PyTorch (cudaMallocAsync)");
	layout_word(out, "unknown", PEAK_COLUMN);
	layout_word(out, "unknown", EXIT_COLUMN);
	text_add_char(out, '\n');
}

/* ---------- owners ---------- */

struct outsiders { /* who holds driver memory beside PyTorch */
	struct model_owner
		rows[OWNERS_SHOWN]; /* copies: the model's own row changes with every look */
	size_t count;               /* may be more than are in rows */
	uint64_t current_bytes, at_peak_bytes, peaks_bytes;
};

static void count_outsider(struct outsiders *outsiders, const struct model_owner *owner)
{
	if (outsiders->count < OWNERS_SHOWN)
		outsiders->rows[outsiders->count] = *owner;
	outsiders->count++;
	outsiders->current_bytes += owner->current_bytes;
	outsiders->at_peak_bytes += owner->at_peak_bytes;
	outsiders->peaks_bytes += owner->peak_bytes;
}

static struct outsiders find_outsiders(const struct model *model, unsigned ordinal,
				       bool with_pytorch)
{
	struct outsiders outsiders = {.count = 0};
	const struct model_owner *owner;
	for (unsigned i = 0; (owner = model_owner(model, ordinal, i)); i++)
		if (owner->peak_bytes && (with_pytorch || strcmp(owner->name, "pytorch")))
			count_outsider(&outsiders, owner);
	return outsiders;
}

/* "outside PyTorch: NCCL 176, cuBLAS 32"; false if that does not fit a row. */
static bool title_outsiders(struct text *title, struct unit unit, const struct outsiders *outsiders)
{
	text_add(title, "outside PyTorch:");
	for (size_t i = 0; i < outsiders->count && i < OWNERS_SHOWN; i++) {
		text_add(title, i ? ", " : " ");
		text_add_escaped(title, owner_title(outsiders->rows[i].name));
		if (outsiders->count > 1)
			text_printf(title, " %llu",
				    (unsigned long long)unit_round(unit,
								   outsiders->rows[i].peak_bytes));
	}
	return outsiders->count <= OWNERS_SHOWN && !title->failed;
}

static void add_owner_rows(struct text *out, struct unit unit, const struct outsiders *outsiders,
			   const char *prefix)
{
	for (size_t i = 0; i < outsiders->count && i < OWNERS_SHOWN; i++) {
		char buffer[44];
		struct text title;
		text_init_fixed(&title, buffer, sizeof buffer);
		text_add(&title, prefix);
		text_add_escaped(&title, owner_title(outsiders->rows[i].name));
		add_row(out, unit, text_string(&title), outsiders->rows[i].peak_bytes,
			outsiders->rows[i].current_bytes);
	}
	if (outsiders->count > OWNERS_SHOWN)
		text_printf(out, "  %sothers: %zu\n", prefix, outsiders->count - OWNERS_SHOWN);
}

/* One row if the sum of the owners' peaks was reached: each held at the peak what it ever held. */
static void add_outsiders(struct text *out, struct unit unit, const struct outsiders *outsiders)
{
	char buffer[44];
	struct text title;
	if (!outsiders->count)
		return;
	text_init_fixed(&title, buffer, sizeof buffer);
	bool is_exact = outsiders->count == 1 || outsiders->at_peak_bytes == outsiders->peaks_bytes;
	if (title_outsiders(&title, unit, outsiders) && is_exact)
		add_row(out, unit, text_string(&title), outsiders->peaks_bytes,
			outsiders->current_bytes);
	else
		add_owner_rows(out, unit, outsiders, "outside PyTorch: ");
}

/* ---------- one device ---------- */

static void add_heading(struct text *out, const struct model_device *device, const char *name,
			const struct summary_facts *facts)
{
	char buffer[128];
	struct text title;
	text_init_fixed(&title, buffer, sizeof buffer);
	devices_add_ordinal(&title, device->ordinal);
	if (*name) {
		text_add(&title, "  ");
		text_add_escaped(&title, name);
	}
	layout_cut(out, &title, PEAK_COLUMN - 6);
	layout_word(out, "peak", PEAK_COLUMN);
	layout_word(out, end_title(facts), EXIT_COLUMN);
	text_add_char(out, '\n');
}

static void add_pytorch_rows(struct text *out, const struct model *model,
			     const struct model_device *device, struct unit unit)
{
	struct outsiders outsiders = find_outsiders(model, device->ordinal, false);
	add_row(out, unit, "allocated (live tensors)", devices_allocated(device)->peak_bytes,
		devices_allocated(device)->current_bytes);
	add_reserved(out, unit, device);
	add_outsiders(out, unit, &outsiders);
}

static void add_plain_rows(struct text *out, const struct model *model,
			   const struct model_device *device, struct unit unit)
{
	struct outsiders owners = find_outsiders(model, device->ordinal, true);
	add_row(out, unit, "allocated", device->allocated.peak_bytes,
		device->allocated.current_bytes);
	if (device->reserved.peak_bytes != device->allocated.peak_bytes ||
	    device->reserved.current_bytes != device->allocated.current_bytes)
		add_row(out, unit, "reserved from the driver", device->reserved.peak_bytes,
			device->reserved.current_bytes);
	if (owners.count > 1 || (owners.count && strcmp(owners.rows[0].name, "program")))
		add_owner_rows(out, unit, &owners, "  by ");
}

static void add_device(struct text *out, const struct model *model, const struct defs *defs,
		       const struct model_device *device, const struct summary_facts *facts)
{
	struct unit unit =
		unit_for(bytes_larger(device->reserved.peak_bytes, device->allocated.peak_bytes));
	add_heading(out, device, devices_name(defs, device), facts);
	if (devices_is_pytorch(device))
		add_pytorch_rows(out, model, device, unit);
	else
		add_plain_rows(out, model, device, unit);
	untracked_add_rows(out, device);
}

/* ---------- several devices ---------- */

static void add_short_heading(struct text *out, struct unit unit, const struct summary_facts *facts)
{
	char buffer[32];
	struct text title;
	text_init_fixed(&title, buffer, sizeof buffer);
	text_add(&title, end_title(facts));
	text_printf(out, "%-24s", unit.name);
	layout_word(out, "allocated peak", 40);
	layout_word(out, text_string(&title), 52);
	layout_word(out, "reserved peak", 67);
	layout_word(out, text_string(&title), 79);
	text_add_char(out, '\n');
}

static void add_reserved_number(struct text *out, struct unit unit,
				const struct model_device *device, uint64_t bytes, size_t column)
{
	if (devices_is_pytorch(device) && !device->pytorch_reserved_known)
		layout_word(out, "unknown", column);
	else
		layout_number(out, unit_round(unit, bytes), column);
}

static void add_short_row(struct text *out, struct unit unit, const struct defs *defs,
			  const struct model_device *device)
{
	char buffer[64];
	struct text title;
	text_init_fixed(&title, buffer, sizeof buffer);
	devices_add_ordinal(&title, device->ordinal);
	text_add(&title, "  ");
	text_add_escaped(&title, devices_name(defs, device));
	layout_cut(out, &title, 32);
	layout_number(out, unit_round(unit, devices_allocated(device)->peak_bytes), 40);
	layout_number(out, unit_round(unit, devices_allocated(device)->current_bytes), 52);
	add_reserved_number(out, unit, device, device->reserved.peak_bytes, 67);
	add_reserved_number(out, unit, device, device->reserved.current_bytes, 79);
	text_add_char(out, '\n');
}

static void add_short_table(struct text *out, const struct model *model, const struct defs *defs,
			    const struct summary_facts *facts)
{
	const struct model_device *device;
	uint64_t largest = 0;
	unsigned count = 0;
	bool has_outsiders = false;
	for (; (device = model_device(model, count)); count++) {
		largest = bytes_larger(largest,
				 bytes_larger(device->reserved.peak_bytes, device->allocated.peak_bytes));
		has_outsiders |= devices_has_outsiders(device);
	}
	struct unit unit = unit_for(largest);
	add_short_heading(out, unit, facts);
	for (unsigned i = 0; i < count && i < DEVICES_SHOWN; i++)
		add_short_row(out, unit, defs, model_device(model, i));
	if (count > DEVICES_SHOWN)
		text_printf(out, "%u more\n", count - DEVICES_SHOWN);
	if (has_outsiders)
		text_add(out, "reserved counts what others than PyTorch hold, too\n");
}

void devices_print(struct text *out, const struct model *model, const struct defs *defs,
		   const struct summary_facts *facts)
{
	const struct model_totals *totals = model_totals(model);
	const struct model_device *first = model_device(model, 0);
	if (!first)
		text_add(out, "No GPU memory was allocated.\n");
	else if (model_device(model, 1))
		add_short_table(out, model, defs, facts);
	else
		add_device(out, model, defs, first, facts);
	if (totals->pinned_peak_bytes >= 1u << 20) /* below, it is PyTorch reading back a number */
		add_row(out, unit_for(totals->pinned_peak_bytes), "pinned host memory",
			totals->pinned_peak_bytes, totals->pinned_current_bytes);
	text_add_char(out, '\n');
}
