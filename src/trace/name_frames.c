/* Owns the order of the search: a module's file is opened once, and only if a frame in it has no
 * name. Must never take a file of another build, or of a path that is not absolute (the folder may
 * be another by now). */
#include "trace/name_frames.h"

#include "trace/symbols.h"

static bool lacks_name(const struct def_native_frame *frame, uint32_t module)
{
	return frame->module == module && !frame->symbol && frame->offset;
}

/* The first frame of a module, from `frame` on, that has no name; 0: there is none. */
static uint32_t next_without_name(const struct defs *defs, uint32_t module, uint32_t frame)
{
	const struct def_native_frame *at;
	for (; (at = defs_native_frame(defs, frame)); frame++)
		if (lacks_name(at, module))
			return frame;
	return 0;
}

static bool name_in(struct frame_namer *namer, const struct defs *defs, uint32_t module,
		    uint32_t frame, struct symbols *symbols)
{
	for (; frame; frame = next_without_name(defs, module, frame + 1)) {
		uint64_t offset, call = defs_native_frame(defs, frame)->offset - 1;
		const char *symbol = symbols_find(symbols, call, &offset);
		if (!namer->goes_on(namer) ||
		    (symbol && !namer->take(namer, frame, symbol, offset + 1)))
			return false;
	}
	return true;
}

static bool name_module(struct frame_namer *namer, const struct defs *defs, uint32_t id,
			const struct def_module *module, uint32_t after)
{
	uint32_t frame = next_without_name(defs, id, after + 1);
	if (!frame || *module->path != '/' || !(module->build_id_bytes || namer->any_build))
		return true;
	if (!namer->goes_on(namer))
		return false;
	struct symbols *symbols =
		symbols_open(module->path, module->build_id, module->build_id_bytes);
	bool is_done = !symbols || name_in(namer, defs, id, frame, symbols);
	symbols_close(symbols);
	return is_done;
}

bool name_frames(struct frame_namer *namer, const struct defs *defs, uint32_t after)
{
	const struct def_module *module;
	bool goes_on = true;
	for (uint32_t id = 1; goes_on && (module = defs_module(defs, id)); id++)
		goes_on = name_module(namer, defs, id, module, after);
	return goes_on;
}

/* ---------- in the definitions themselves ---------- */

struct here {
	struct frame_namer namer;
	struct defs *defs;
};

static bool take_here(struct frame_namer *namer, uint32_t frame, const char *symbol,
		      uint64_t offset)
{
	struct here *here = (struct here *)namer;
	return !defs_name_native_frame(here->defs, frame, symbol, offset);
}

static bool always(struct frame_namer *namer)
{
	(void)namer;
	return true;
}

void name_frames_here(struct defs *defs)
{
	struct here here = {.namer = {.take = take_here, .goes_on = always}, .defs = defs};
	name_frames(&here.namer, defs, 0);
}
