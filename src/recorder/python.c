/* Owns the walk along the calling thread's frames. It must never take the GIL, touch a reference
 * count, call a Python function that could allocate, or follow a pointer that the calling thread
 * does not keep alive. */
#include "recorder/python.h"

#include <string.h>

#include "recorder/hot.h"
#include "recorder/python_private.h"
#include "recorder/python_rows.h"

#define OWNER_GENERATOR         1
#define OWNER_INTERPRETER       3 /* and above: frames that are the interpreter's own */
#define OWNER_INTERPRETER_SINCE 12
#define LASTI_IN_UNITS_SINCE    10

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

__attribute__((noinline)) static uint64_t mark_of_made(const struct python_layout *layout,
						       uintptr_t code)
{
	struct python_text texts[] = {
		python_text(layout, load_pointer(code, layout->code_file)),
		python_text(layout, load_pointer(code, python_name_offset(layout)))};
	uintptr_t lines = load_pointer(code, layout->code_lines);
	uint64_t mark = mark_of_all((const char *)lines + layout->bytes_data,
				    load_pointer(lines, layout->bytes_size));
	for (unsigned i = 0; i < 2; i++)
		mark = mark * FACTOR_2 +
		       mark_of_all(texts[i].data, texts[i].length * texts[i].kind);
	return mark;
}

/* The files of frames before, in the same walk: frames of one file are many, and a file's name is
 * not where the rest of a frame is. */
#define FILES_KNOWN 4
struct known_files {
	struct known_file {
		uintptr_t file;
		uint64_t mark; /* of a file with a plain name: what it adds to a guard; else 0 */
	} files[FILES_KNOWN];
};

MT_HOT __attribute__((noinline)) static void learn_file(const struct python_layout *layout,
							uintptr_t file, struct known_file *known)
{
	uint32_t state = (uint32_t)load_int(file, layout->text_state);
	const char *text = (const char *)file + layout->text_ascii;
	bool is_plain = state >> layout->text_ascii_bit & state >> layout->text_compact_bit & 1;
	*known = (struct known_file){.file = file};
	if (!is_plain || *text == '<')
		return;
	uint64_t end = bytes_before(text, load_pointer(file, layout->text_length));
	known->mark = (file ^ end) * FACTOR_1 | 1;
}

static inline uint64_t guard_of_contents(const struct python_layout *layout, uintptr_t code,
					 struct known_files *known)
{
	uintptr_t file = load_pointer(code, layout->code_file);
	struct known_file *last = &known->files[(file >> 6 ^ file >> 10) % FILES_KNOWN];
	if (__builtin_expect(file != last->file, 0))
		learn_file(layout, file, last);
	uint64_t mark = last->mark;
	if (__builtin_expect(!mark, 0))
		mark = mark_of_made(layout, code);
	return mark + (load_pointer(code, python_name_offset(layout)) ^
		       load_pointer(code, layout->code_lines) ^
		       (uint64_t)(uint32_t)load_int(code, layout->code_first_line) << 32);
}

static inline uint64_t guard_of(const struct python_layout *layout, uintptr_t code,
				struct known_files *known)
{
	if (layout->code_version == PYTHON_ABSENT)
		return guard_of_contents(layout, code, known);
	uint64_t version = (uint32_t)load_int(code, layout->code_version);
	return (version << 32 | (uint32_t)load_int(code, layout->code_first_line)) ^
	       load_pointer(code, layout->code_file) ^ load_pointer(code, layout->code_lines);
}

/* ---------- the walk ---------- */

/* Compiled once for each row of offsets, so that those are constants: read from a table they would
 * double the price of a frame. And twice for each: for the key alone, which is all that a known
 * stack needs, and with the frames (`frames` not NULL). */
#define FOR_EACH_ROW __attribute__((always_inline)) static inline

/* Up to 3.10: a list of frame objects, each the only one of its evaluation loop. */
FOR_EACH_ROW unsigned walk_objects(const struct python_layout *layout, uintptr_t frame,
				   struct python_frame *frames, unsigned capacity,
				   struct python_end *end)
{
	unsigned count = 0;
	uint64_t key = 0;
	struct known_files known = {.files = {{.file = 0}}};
	int unit = layout->minor >= LASTI_IN_UNITS_SINCE ? 2 : 1;
	for (; frame && count < capacity; frame = load_pointer(frame, layout->frame_previous)) {
		uintptr_t code = load_pointer(frame, layout->frame_code);
		struct python_frame found = {.code = code,
					     .lasti = load_int(frame, layout->frame_lasti) * unit,
					     .flags = PYTHON_ENTRY,
					     .guard = guard_of(layout, code, &known)};
		key = python_frame_mix(key, &found);
		if (frames)
			frames[count] = found;
		count++;
	}
	end->truncated = frame != 0;
	end->key = key;
	return count;
}

/* Free-threaded builds from 3.14 on keep a copy of the instructions for each thread. */
FOR_EACH_ROW uintptr_t instructions_of(const struct python_layout *layout, uintptr_t frame,
				       uintptr_t code)
{
	if (layout->code_tlbc == PYTHON_ABSENT)
		return code + (uintptr_t)layout->code_bytes;
	uintptr_t copies = load_pointer(code, layout->code_tlbc);
	return load_pointer(copies, 8 + 8 * load_int(frame, layout->frame_tlbc_index));
}

FOR_EACH_ROW uint32_t flags_of(const struct python_layout *layout, uintptr_t frame)
{
	uint32_t flags =
		load_byte(frame, layout->frame_owner) == OWNER_GENERATOR ? PYTHON_GENERATOR : 0;
	if (layout->frame_is_entry != PYTHON_ABSENT && load_byte(frame, layout->frame_is_entry))
		flags |= PYTHON_ENTRY;
	return flags;
}

FOR_EACH_ROW bool is_interpreters_own(const struct python_layout *layout, uintptr_t frame,
				      uintptr_t code)
{
	return !code || (layout->minor >= OWNER_INTERPRETER_SINCE &&
			 load_byte(frame, layout->frame_owner) >= OWNER_INTERPRETER);
}

FOR_EACH_ROW uintptr_t code_of(const struct python_layout *layout, uintptr_t frame)
{
	return load_pointer(frame, layout->frame_code) & ~layout->code_tag_mask;
}

FOR_EACH_ROW unsigned walk_frames(const struct python_layout *layout, uintptr_t frame,
				  struct python_frame *frames, unsigned capacity,
				  struct python_end *end)
{
	unsigned count = 0;
	uint64_t key = 0;
	struct known_files known = {.files = {{.file = 0}}};
	for (; frame; frame = load_pointer(frame, layout->frame_previous)) {
		uintptr_t code = code_of(layout, frame);
		if (__builtin_expect(is_interpreters_own(layout, frame, code), 0)) {
			if (!end->loop_mark) /* the loop's own entry is a local variable of it */
				end->loop_mark = frame;
			if (count && frames)
				frames[count - 1].flags |= PYTHON_ENTRY;
			continue;
		}
		if (count == capacity)
			break;
		struct python_frame found = {
			.code = code,
			.lasti = (int32_t)(load_pointer(frame, layout->frame_instruction) -
					   instructions_of(layout, frame, code)),
			.flags = frames ? flags_of(layout, frame) : 0,
			.guard = guard_of(layout, code, &known)};
		key = python_frame_mix(key, &found);
		if (frames)
			frames[count] = found;
		count++;
	}
	end->truncated = frame != 0;
	end->key = key;
	return count;
}

/* From the thread's state to its innermost frame. */
FOR_EACH_ROW uintptr_t innermost_frame(const struct python_layout *layout, uintptr_t state)
{
	if (layout->thread_cframe == PYTHON_ABSENT)
		return load_pointer(state, layout->thread_frame);
	return load_pointer(load_pointer(state, layout->thread_cframe), layout->cframe_frame);
}

FOR_EACH_ROW unsigned walk_row(const struct python_layout *layout, uintptr_t state,
			       struct python_frame *frames, unsigned capacity,
			       struct python_end *end)
{
	uintptr_t frame = innermost_frame(layout, state);
	if (layout->frame_lasti != PYTHON_ABSENT)
		return walk_objects(layout, frame, frames, capacity, end);
	if (layout->thread_cframe != PYTHON_ABSENT && frame) /* a local variable of the loop */
		end->loop_mark = load_pointer(state, layout->thread_cframe);
	return walk_frames(layout, frame, frames, capacity, end);
}

#define WALK(row)                                                                                \
	MT_HOT static void key_##row(uintptr_t state, unsigned capacity, struct python_end *end) \
	{                                                                                        \
		walk_row(&python_rows[row], state, NULL, capacity, end);                         \
	}                                                                                        \
	__attribute__((cold)) static unsigned walk_##row(                                        \
		uintptr_t state, struct python_frame *frames, unsigned capacity,                 \
		struct python_end *end)                                                          \
	{                                                                                        \
		return walk_row(&python_rows[row], state, frames, capacity, end);                \
	}
#define EACH_ROW(do) do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10)
EACH_ROW(WALK)

#define KEY(row)  key_##row,
#define NAME(row) walk_##row,
void python_walks_of(const struct python_layout *layout)
{
	static python_key_function *const keys[] = {EACH_ROW(KEY)};
	static python_walk_function *const walks[] = {EACH_ROW(NAME)};
	_Static_assert(sizeof walks / sizeof *walks == PYTHON_ROWS, "a walk for each row");
	for (unsigned i = 0; i < PYTHON_ROWS; i++)
		if (python_rows[i].minor == layout->minor &&
		    python_rows[i].free_threaded == layout->free_threaded) {
			python.key = keys[i];
			python.walk = walks[i];
		}
}

static bool is_known(void)
{
	if (__atomic_load_n(&python.layout, __ATOMIC_ACQUIRE))
		return true;
	if (!python_is_expected())
		return false;
	python_find();
	return __atomic_load_n(&python.layout, __ATOMIC_ACQUIRE);
}

static inline uintptr_t state_of_thread(struct python_end *end)
{
	*end = (struct python_end){.truncated = false};
	if (!is_known())
		return 0;
	end->is_finalizing = python.is_finalizing();
	return end->is_finalizing ? 0 : (uintptr_t)python.thread_state();
}

MT_HOT void python_key(unsigned capacity, struct python_end *end)
{
	uintptr_t state = state_of_thread(end);
	if (state)
		python.key(state, capacity, end);
}

unsigned python_walk(struct python_frame *frames, unsigned capacity, struct python_end *end)
{
	uintptr_t state = state_of_thread(end);
	return state ? python.walk(state, frames, capacity, end) : 0;
}

/* ---------- an argument ---------- */

#define CODE_HAS_VARARGS 4 /* and so a local variable at least: what is there is no leftover */

static uintptr_t frame_at(const struct python_layout *layout, uintptr_t frame, unsigned depth)
{
	for (; frame; frame = load_pointer(frame, layout->frame_previous)) {
		uintptr_t code = code_of(layout, frame);
		if (!is_interpreters_own(layout, frame, code) && !depth--)
			return frame;
	}
	return 0;
}

uintptr_t python_first_argument(unsigned depth)
{
	struct python_end end;
	uintptr_t state = state_of_thread(&end);
	const struct python_layout *layout = python.layout;
	uintptr_t frame = state ? frame_at(layout, innermost_frame(layout, state), depth) : 0;
	if (!frame)
		return 0;
	uintptr_t code = code_of(layout, frame);
	uintptr_t arguments = load_pointer(frame, layout->frame_locals) & ~layout->code_tag_mask;
	if (!(load_int(code, layout->code_flags) & CODE_HAS_VARARGS) ||
	    !python_has_type(arguments, python.tuple_type) ||
	    !load_pointer(arguments, layout->bytes_size)) /* where every object of many parts has it */
		return 0;
	return load_pointer(arguments, layout->tuple_items);
}
