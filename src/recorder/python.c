/* Owns the walk along the calling thread's frames. It must never take the GIL, touch a reference
 * count, call a Python function that could allocate, or follow a pointer that the calling thread
 * does not keep alive. */
#include "recorder/python.h"

#include <string.h>

#include "recorder/python_private.h"

#define OWNER_GENERATOR      1
#define OWNER_INTERPRETER    3 /* and above: frames that are the interpreter's own (3.12 on) */
#define LASTI_IN_UNITS_SINCE 10

static uint64_t last_bytes(uintptr_t object, int length, int data)
{
	uint64_t last;
	const char *start = (const char *)object + data;
	memcpy(&last, start + load_pointer(object, length) - sizeof last, sizeof last);
	return last;
}

/* Of texts with wide characters these are not the last ones, and of short ones they begin in the
 * head. */
static uint64_t mark_of_text(const struct python_layout *layout, uintptr_t text)
{
	uint32_t state = (uint32_t)load_int(text, layout->text_state);
	if (!(state >> layout->text_compact_bit & 1))
		return text ^ load_pointer(text, layout->text_compact);
	return text ^ last_bytes(text, layout->text_length, layout->text_ascii);
}

/* Tells a code object from another that is given the same address later: exec in a loop gives every
 * part of it the same address again. 3.12 on, each has a number of its own; before, the contents
 * have to tell them apart. */
static uint64_t guard_of(const struct python_layout *layout, uintptr_t code)
{
	uint64_t guard = (uint32_t)load_int(code, layout->code_first_line);
	uintptr_t file = load_pointer(code, layout->code_file);
	uintptr_t lines = load_pointer(code, layout->code_lines);
	if (layout->code_version != PYTHON_ABSENT)
		return (guard | (uint64_t)(uint32_t)load_int(code, layout->code_version) << 32) ^
		       file ^ lines;
	uintptr_t name = load_pointer(code, python_name_offset(layout));
	guard += mark_of_text(layout, file) * 0x9E3779B97F4A7C15u;
	guard += mark_of_text(layout, name) * 0xC2B2AE3D27D4EB4Fu;
	return guard + (lines ^ last_bytes(lines, layout->bytes_size, layout->bytes_data)) *
			       0x165667B19E3779F9u;
}

/* Both walks have a copy of the layout: what they store could be the layout itself, for all the
 * compiler knows, and would have it read again for every frame. */

/* Up to 3.10: a list of frame objects, each the only one of its evaluation loop. */
static unsigned walk_objects(const struct python_layout *known, uintptr_t frame,
			     struct python_frame *frames, unsigned capacity, struct python_end *end)
{
	const struct python_layout copy = *known, *layout = &copy;
	unsigned count = 0;
	int unit = layout->minor >= LASTI_IN_UNITS_SINCE ? 2 : 1;
	for (; frame && count < capacity; frame = load_pointer(frame, layout->frame_previous)) {
		uintptr_t code = load_pointer(frame, layout->frame_code);
		frames[count++] =
			(struct python_frame){.code = code,
					      .lasti = load_int(frame, layout->frame_lasti) * unit,
					      .flags = PYTHON_ENTRY,
					      .guard = guard_of(layout, code)};
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
		out->guard = guard_of(layout, code);
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
