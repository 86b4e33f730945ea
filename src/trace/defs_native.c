/* Native frames: where they are, and what was found out about them later. Owns the tables of them.
 * Must never let a later finding replace what the trace itself says. */
#include <errno.h>
#include <string.h>

#include "base/cxx_name.h"
#include "trace/defs_private.h"

int defs_add_native_frame(struct defs *defs, const void *record, size_t bytes)
{
	struct memtrace_def_native_frame raw;
	(void)bytes;
	memcpy(&raw, record, sizeof raw);
	if (!defs_has(&defs->modules, raw.module))
		return -EINVAL;
	if (table_reserve(&defs->native_frames, defs->arena))
		return -ENOMEM;
	struct def_native_frame *frame = table_push(&defs->native_frames);
	frame->module = raw.module;
	frame->offset = raw.offset;
	return 0;
}

static const char *copy_text(struct defs *defs, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = defs_pack(defs, bytes);
	return copy ? memcpy(copy, text, bytes) : NULL;
}

/* `symbol` stays as long as the definitions. The name for people is made once: reports ask often.
 */
static int name_frame(struct defs *defs, struct def_native_frame *frame, const char *symbol,
		      uint64_t offset)
{
	char name[CXX_NAME_BYTES];
	cxx_name(name, symbol);
	const char *copy = copy_text(defs, name);
	if (!copy)
		return -ENOMEM;
	frame->symbol = symbol;
	frame->name = copy;
	frame->symbol_offset = offset;
	return 0;
}

int defs_add_symbol(struct defs *defs, const void *record, size_t bytes)
{
	struct memtrace_def_symbol raw;
	(void)bytes;
	memcpy(&raw, record, sizeof raw);
	if (!raw.head.id || !raw.name || !defs_has(&defs->native_frames, raw.head.id) ||
	    !defs_has(&defs->strings, raw.name))
		return -EINVAL;
	struct def_native_frame *frame = table_at(&defs->native_frames, raw.head.id);
	const char *symbol = defs_string(defs, raw.name);
	return frame->symbol || !*symbol ? 0 : name_frame(defs, frame, symbol, raw.offset);
}

int defs_name_native_frame(struct defs *defs, uint32_t id, const char *symbol, uint64_t offset)
{
	struct def_native_frame *frame = table_at(&defs->native_frames, id);
	if (!frame || !*symbol)
		return -EINVAL;
	if (frame->symbol)
		return 0;
	const char *copy = copy_text(defs, symbol);
	return copy ? name_frame(defs, frame, copy, offset) : -ENOMEM;
}

int defs_place_native_frame(struct defs *defs, uint32_t id, const struct def_place *places,
			    uint32_t count)
{
	struct def_native_frame *frame = table_at(&defs->native_frames, id);
	struct def_place *copy = frame ? defs_pack(defs, count * sizeof *copy) : NULL;
	if (!copy)
		return frame ? -ENOMEM : -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		copy[i].function = copy_text(defs, places[i].function);
		copy[i].file = copy_text(defs, places[i].file);
		copy[i].line = places[i].line;
		if (!copy[i].function || !copy[i].file)
			return -ENOMEM;
	}
	frame->places = copy;
	frame->place_count = count;
	return 0;
}

const struct def_native_frame *defs_native_frame(const struct defs *defs, uint32_t id)
{
	return table_at(&defs->native_frames, id);
}

const char *defs_native_symbol(const struct defs *defs, uint32_t id, uint64_t *offset)
{
	const struct def_native_frame *frame = defs_native_frame(defs, id);
	if (frame && frame->symbol)
		*offset = frame->symbol_offset;
	return frame ? frame->symbol : NULL;
}
