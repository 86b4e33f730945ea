/* Owns the bars of `memtrace report --full`: the highest of each stretch of time, of what was allocated and reserved, on
 * one scale a device. A bar is never lower than what it stands for, and where something was there is one. */
#include "report/timeline.h"

#include "base/units.h"
#include "report/devices.h"

#define BARS_MAX 60
#define LEVELS	 8

static uint64_t highest_of(const uint64_t *bytes, uint32_t count)
{
	uint64_t highest = 0;
	for (uint32_t i = 0; i < count; i++)
		if (bytes[i] > highest)
			highest = bytes[i];
	return highest;
}

static uint32_t stretches_a_bar(const struct model_timeline *timeline)
{
	return (timeline->count + BARS_MAX - 1) / BARS_MAX;
}

/* 0 … LEVELS. */
static unsigned level_of(uint64_t bytes, uint64_t scale)
{
	unsigned level = 0;
	while (level < LEVELS && (double)bytes > (double)scale * level / LEVELS)
		level++;
	return level;
}

static void add_bars(struct text *out, const struct model_timeline *timeline, const uint64_t *bytes, uint64_t scale,
		     bool ascii)
{
	static const char *const bars[] = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const plain[] = {"_", ".", ":", "-", "=", "+", "*", "#", "@"};
	uint32_t step = stretches_a_bar(timeline);
	for (uint32_t i = 0; i < timeline->count; i += step) {
		uint32_t rest = timeline->count - i;
		unsigned level = level_of(highest_of(bytes + i, rest < step ? rest : step), scale);
		text_add(out, (ascii ? plain : bars)[level]);
	}
	text_add_char(out, '\n');
}

static void add_device(struct text *out, const struct model_device *device, const struct model_timeline *timeline,
		       bool ascii)
{
	bool knows_reserved = !device->has_async || device->pytorch_reserved_known;
	uint64_t allocated_bytes = highest_of(timeline->allocated_bytes, timeline->count);
	uint64_t reserved_bytes = knows_reserved ? highest_of(timeline->reserved_bytes, timeline->count) : 0;
	uint64_t scale = reserved_bytes > allocated_bytes ? reserved_bytes : allocated_bytes;
	text_printf(out, "\nGPU %u over the run: the highest of each ", device->ordinal);
	text_add_duration(out, timeline->width_ns * stretches_a_bar(timeline));
	text_add(out, ", a full bar is ");
	text_add_size(out, scale);
	text_add(out, devices_has_outsiders(device) ? ",\nnot of PyTorch alone" : "");
	text_add(out, "\n  allocated ");
	add_bars(out, timeline, timeline->allocated_bytes, scale, ascii);
	if (!knows_reserved)
		return;
	text_add(out, "  reserved  ");
	add_bars(out, timeline, timeline->reserved_bytes, scale, ascii);
}

void timeline_print(struct text *out, const struct model *model, bool ascii)
{
	const struct model_device *device;
	struct model_timeline timeline;
	for (unsigned i = 0; (device = model_device(model, i)); i++)
		if (device->ordinal != MEMTRACE_DEVICE_UNKNOWN && model_timeline(model, device->ordinal, &timeline) &&
		    timeline.count > 1)
			add_device(out, device, &timeline, ascii);
}
