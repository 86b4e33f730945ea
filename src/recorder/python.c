/* Owns the walk along the calling thread's frames. It must never take the GIL, touch a reference
 * count, call a Python function that could allocate, or follow a pointer that the calling thread
 * does not keep alive. */
#include "recorder/python.h"

#include <string.h>

#include "recorder/python_private.h"

#define OWNER_GENERATOR      1
#define OWNER_INTERPRETER    3 /* and above: frames that are the interpreter's own (3.12 on) */
#define LASTI_IN_UNITS_SINCE 10

/* ---------- the guard ----------
 * Tells a code object from another that is given the same address later: exec in a loop gives every
 * part of it the same address again. 3.12 on, each has a number of its own. Before, the contents
 * have to tell them apart: a look at the end of the file's name does for code from files; of code
 * that a program made, under a name like <string>, everything is looked at. */
#define FACTOR_1 0x9E3779B97F4A7C15u
#define FACTOR_2 0xC2B2AE3D27D4EB4Fu

/* The 8 bytes before an offset into the contents of an object; its head, where there are fewer. */
static uint64_t bytes_before(const char *contents, size_t offset)
{
	uint64_t bytes;
	memcpy(&bytes, contents + offset - sizeof bytes, sizeof bytes);
	return bytes;
}

static uint64_t mark_of_all(const char *contents, size_t bytes)
{
	uint64_t mark = bytes;
	for (size_t at = bytes; at > 0; at = at > sizeof mark ? at - sizeof mark : 0)
		mark = (mark ^ bytes_before(contents, at)) * FACTOR_1;
	return mark;
}

__attribute__((noinline)) static uint64_t
mark_of_made(const struct python_layout *layout, uintptr_t file, uintptr_t name, uintptr_t lines)
{
	struct python_text texts[] = {python_text(layout, file), python_text(layout, name)};
	const char *table = (const char *)lines + layout->bytes_data;
	uint64_t mark = mark_of_all(table, load_pointer(lines, layout->bytes_size));
	for (unsigned i = 0; i < 2; i++)
		mark = mark * FACTOR_2 +
		       mark_of_all(texts[i].data, texts[i].length * texts[i].kind);
	return mark;
}

/* The file of the frame before, in the same walk: most frames stand in the file of the next one. */
struct last_file {
	uintptr_t file;
	uint64_t mark; /* of a file with a plain name: what it adds to a guard; else 0 */
};

static uint64_t mark_of_file(const struct python_layout *layout, uintptr_t file)
{
	uint32_t state = (uint32_t)load_int(file, layout->text_state);
	const char *text = (const char *)file + layout->text_ascii;
	bool is_plain = state >> layout->text_ascii_bit & state >> layout->text_compact_bit & 1;
	if (!is_plain || *text == '<')
		return 0;
	uint64_t end = bytes_before(text, load_pointer(file, layout->text_length));
	return (file ^ end) * FACTOR_1 | 1;
}

static inline uint64_t guard_of_contents(const struct python_layout *layout, uintptr_t code,
					 struct last_file *last)
{
	uintptr_t file = load_pointer(code, layout->code_file);
	uintptr_t name = load_pointer(code, python_name_offset(layout));
	uintptr_t lines = load_pointer(code, layout->code_lines);
	uint64_t guard =
		name ^ lines ^ (uint64_t)(uint32_t)load_int(code, layout->code_first_line) << 32;
	if (file != last->file)
		*last = (struct last_file){file, mark_of_file(layout, file)};
	return guard + (last->mark ? last->mark : mark_of_made(layout, file, name, lines));
}

static inline uint64_t guard_of(const struct python_layout *layout, uintptr_t code, struct last_file *last)
{
	if (layout->code_version == PYTHON_ABSENT)
		return guard_of_contents(layout, code, last);
	uint64_t version = (uint32_t)load_int(code, layout->code_version);
	return (version << 32 | (uint32_t)load_int(code, layout->code_first_line)) ^
	       load_pointer(code, layout->code_file) ^ load_pointer(code, layout->code_lines);
}

/* ---------- the walk ---------- */

/* Both walks have a copy of the layout: what they store could be the layout itself, for all the
 * compiler knows, and would have it read again for every frame. */

/* Up to 3.10: a list of frame objects, each the only one of its evaluation loop. */
static unsigned walk_objects(const struct python_layout *known, uintptr_t frame,
			     struct python_frame *frames, unsigned capacity, struct python_end *end)
{
	const struct python_layout copy = *known, *layout = &copy;
	unsigned count = 0;
	struct last_file last = {.file = 0};
	int unit = layout->minor >= LASTI_IN_UNITS_SINCE ? 2 : 1;
	for (; frame && count < capacity; frame = load_pointer(frame, layout->frame_previous)) {
		uintptr_t code = load_pointer(frame, layout->frame_code);
		frames[count++] =
			(struct python_frame){.code = code,
					      .lasti = load_int(frame, layout->frame_lasti) * unit,
					      .flags = PYTHON_ENTRY,
					      .guard = guard_of(layout, code, &last)};
	}
	end->truncated = frame != 0;
	return count;
}

/* Free-threaded builds from 3.14 on keep a copy of the instructions for each thread. */
static uintptr_t instructions_of(const struct python_layout *layout, uintptr_t frame,
				 uintptr_t code)
{
	if (layout->code_tlbc == PYTHON_ABSENT)
		return code + (uintptr_t)layout->code_bytes;
	uintptr_t copies = load_pointer(code, layout->code_tlbc);
	return load_pointer(copies, 8 + 8 * load_int(frame, layout->frame_tlbc_index));
}

static unsigned walk_frames(const struct python_layout *known, uintptr_t frame,
			    struct python_frame *frames, unsigned capacity, struct python_end *end)
{
	const struct python_layout copy = *known, *layout = &copy;
	unsigned count = 0;
	struct last_file last = {.file = 0};
	bool marks_entry = layout->frame_is_entry != PYTHON_ABSENT;
	for (; frame; frame = load_pointer(frame, layout->frame_previous)) {
		uintptr_t code = load_pointer(frame, layout->frame_code) & ~layout->code_tag_mask;
		uint8_t owner = *(const uint8_t *)(frame + (uintptr_t)layout->frame_owner);
		if (owner >= OWNER_INTERPRETER || !code) {
			if (!end->loop_mark) /* the loop's own entry is a local variable of it */
				end->loop_mark = frame;
			if (count)
				frames[count - 1].flags |= PYTHON_ENTRY;
			continue;
		}
		if (count == capacity)
			break;
		struct python_frame *out = &frames[count++];
		out->code = code;
		out->lasti = (int32_t)(load_pointer(frame, layout->frame_instruction) -
				       instructions_of(layout, frame, code));
		out->flags = owner == OWNER_GENERATOR ? PYTHON_GENERATOR : 0;
		if (marks_entry && *(const uint8_t *)(frame + (uintptr_t)layout->frame_is_entry))
			out->flags |= PYTHON_ENTRY;
		out->guard = guard_of(layout, code, &last);
	}
	end->truncated = frame != 0;
	return count;
}

static const struct python_layout *known_layout(void)
{
	const struct python_layout *layout = __atomic_load_n(&python.layout, __ATOMIC_ACQUIRE);
	if (layout || !python_is_expected())
		return layout;
	python_find();
	return __atomic_load_n(&python.layout, __ATOMIC_ACQUIRE);
}

unsigned python_walk(struct python_frame *frames, unsigned capacity, struct python_end *end)
{
	const struct python_layout *layout = known_layout();
	*end = (struct python_end){.truncated = false};
	if (!layout || python.is_finalizing())
		return 0;
	uintptr_t state = (uintptr_t)python.thread_state();
	if (!state)
		return 0;
	if (layout->frame_lasti != PYTHON_ABSENT)
		return walk_objects(layout, load_pointer(state, layout->thread_frame), frames,
				    capacity, end);
	if (layout->thread_cframe == PYTHON_ABSENT)
		return walk_frames(layout, load_pointer(state, layout->thread_frame), frames,
				   capacity, end);
	uintptr_t cframe = load_pointer(state, layout->thread_cframe);
	uintptr_t frame = load_pointer(cframe, layout->cframe_frame);
	end->loop_mark = frame ? cframe : 0; /* a local variable of the loop */
	return walk_frames(layout, frame, frames, capacity, end);
}
