/* Owns the finding of an interpreter and the walk along the calling thread's frames. It must never take the GIL,
 * touch a reference count, call a Python function that could allocate, or follow a pointer that the calling
 * thread does not keep alive. */
#include "recorder/python.h"

#include <string.h>

#include "base/text.h"
#include "recorder/elf.h"
#include "recorder/id_table.h"
#include "recorder/python_private.h"
#include "recorder/say.h"
#include "recorder/unwind.h"

#define THREAD_INTERPRETER 16 /* PyThreadState.interp, in every version */
#define OWNER_GENERATOR 1
#define OWNER_INTERPRETER 3 /* and above: frames that are the interpreter's own (3.12 on) */
#define LASTI_IN_UNITS_SINCE 10

struct python python;

/* ---------- finding the interpreter ---------- */

static void refuse(const char *why)
{
	char buffer[256];
	struct text text;
	text_init_fixed(&text, buffer, sizeof buffer);
	text_printf(&text, "Python %s: %s, so allocations have no Python lines", python.version, why);
	python.is_refused = true;
	say(text_string(&text));
}

/* Py_GetVersion's text is static and begins "3.11.7 "; the interpreter is not asked anything else. */
static int read_version(void)
{
	const char *(*get)(void) = elf_find_anywhere("Py_GetVersion", NULL);
	const char *text = get ? get() : "";
	size_t length = strcspn(text, " ");
	if (length >= sizeof python.version)
		length = sizeof python.version - 1;
	memcpy(python.version, text, length);
	if (strncmp(text, "3.", 2) != 0)
		return 0;
	int minor = 0;
	for (const char *c = text + 2; *c >= '0' && *c <= '9' && minor < 1000; c++)
		minor = minor * 10 + (*c - '0');
	return minor;
}

static bool find_symbols(void)
{
	python.is_finalizing = elf_find_anywhere("Py_IsFinalizing", NULL);
	if (!python.is_finalizing)
		python.is_finalizing = elf_find_anywhere("_Py_IsFinalizing", NULL);
	python.code_type = elf_find_anywhere("PyCode_Type", NULL);
	python.text_type = elf_find_anywhere("PyUnicode_Type", NULL);
	python.bytes_type = elf_find_anywhere("PyBytes_Type", NULL);
	return python.is_finalizing && python.code_type && python.text_type && python.bytes_type;
}

/* Whatever can be had without the GIL must look like this version: what the interpreter says of itself, and the
 * thread state that the walk starts from. */
static bool checks_out(const struct python_layout *layout, const void *runtime)
{
	const void *type_type = elf_find_anywhere("PyType_Type", NULL);
	void *(*interpreter_of)(void *) = elf_find_anywhere("PyThreadState_GetInterpreter", NULL); /* 3.9 on */
	if (!find_symbols() || !python_layout_agrees(layout, runtime) ||
	    !python_layout_agrees_with_type(layout, python.code_type, type_type))
		return false;
	void *state = python.thread_state();
	return !state || !interpreter_of ||
	       load_pointer((uintptr_t)state, THREAD_INTERPRETER) == (uintptr_t)interpreter_of(state);
}

void python_find(void)
{
	if (__atomic_load_n(&python.layout, __ATOMIC_ACQUIRE) || python.is_refused)
		return;
	void *thread_state = elf_find_anywhere("PyGILState_GetThisThreadState", NULL);
	if (!thread_state)
		return;
	python.thread_state = (void *(*)(void))thread_state;
	const void *runtime = elf_find_anywhere("_PyRuntime", NULL);
	int minor = read_version();
	const struct python_layout *layout = python_layout_find(minor, python_layout_is_free_threaded(runtime));
	if (!layout)
		refuse("its frames are not known to this version of memtrace");
	else if (!checks_out(layout, runtime))
		refuse("its structures are not as expected");
	else {
		unwind_set_interpreter((uintptr_t)elf_find_anywhere("_PyEval_EvalFrameDefault", NULL));
		__atomic_store_n(&python.layout, layout, __ATOMIC_RELEASE);
	}
}

const char *python_version(void)
{
	return python.version[0] ? python.version : NULL;
}

bool python_is_finalizing(void)
{
	return __atomic_load_n(&python.layout, __ATOMIC_ACQUIRE) && python.is_finalizing();
}

/* ---------- the walk ---------- */

static uint64_t last_bytes(const char *data, size_t bytes)
{
	uint64_t last;
	memcpy(&last, data + bytes - sizeof last, sizeof last); /* of fewer than 8: with what lies before the data */
	return last;
}

static uint64_t mark_of_text(const struct python_layout *layout, uintptr_t text)
{
	size_t length = load_pointer(text, layout->text_length);
	uint32_t state = (uint32_t)load_int(text, layout->text_state);
	bool is_ascii = state >> layout->text_ascii_bit & 1;
	const char *data = (const char *)text + (is_ascii ? layout->text_ascii : layout->text_compact);
	return id_mix(text ^ length, last_bytes(data, length * (state >> layout->text_kind_bit & 7)));
}

static uint64_t mark_of_lines(const struct python_layout *layout, uintptr_t lines)
{
	size_t bytes = load_pointer(lines, layout->bytes_size);
	const char *data = (const char *)lines + layout->bytes_data;
	return id_mix(id_mix(lines ^ bytes, last_bytes(data, bytes)), last_bytes(data, bytes / 2));
}

/* Tells a code object from another that is given the same address later: exec in a loop gives every part of it the
 * same address again. 3.12 on, each has a number of its own; before, the contents have to tell them apart. */
static uint64_t guard_of(const struct python_layout *layout, uintptr_t code)
{
	uint64_t guard = (uint32_t)load_int(code, layout->code_first_line);
	if (layout->code_version != PYTHON_ABSENT)
		return id_mix(guard | (uint64_t)(uint32_t)load_int(code, layout->code_version) << 32,
			      load_pointer(code, layout->code_lines) ^ load_pointer(code, layout->code_file));
	guard = id_mix(guard, mark_of_text(layout, load_pointer(code, layout->code_file)));
	guard = id_mix(guard, mark_of_text(layout, load_pointer(code, python_name_offset(layout))));
	return id_mix(guard, mark_of_lines(layout, load_pointer(code, layout->code_lines)));
}

/* Up to 3.10: a list of frame objects, each the only one of its evaluation loop. */
static unsigned walk_objects(const struct python_layout *layout, uintptr_t frame, struct python_frame *frames,
			     unsigned capacity, struct python_end *end)
{
	unsigned count = 0;
	int unit = layout->minor >= LASTI_IN_UNITS_SINCE ? 2 : 1;
	for (; frame && count < capacity; frame = load_pointer(frame, layout->frame_previous)) {
		uintptr_t code = load_pointer(frame, layout->frame_code);
		frames[count++] = (struct python_frame){ .code = code,
							 .lasti = load_int(frame, layout->frame_lasti) * unit,
							 .flags = PYTHON_ENTRY,
							 .guard = guard_of(layout, code) };
	}
	end->truncated = frame != 0;
	return count;
}

/* Free-threaded builds from 3.14 on keep a copy of the instructions for each thread. */
static uintptr_t instructions_of(const struct python_layout *layout, uintptr_t frame, uintptr_t code)
{
	if (layout->code_tlbc == PYTHON_ABSENT)
		return code + (uintptr_t)layout->code_bytes;
	uintptr_t copies = load_pointer(code, layout->code_tlbc);
	return load_pointer(copies, 8 + 8 * load_int(frame, layout->frame_tlbc_index));
}

static unsigned walk_frames(const struct python_layout *layout, uintptr_t frame, struct python_frame *frames,
			    unsigned capacity, struct python_end *end)
{
	unsigned count = 0;
	bool marks_entry = layout->frame_is_entry != PYTHON_ABSENT;
	for (; frame && count < capacity; frame = load_pointer(frame, layout->frame_previous)) {
		uintptr_t code = load_pointer(frame, layout->frame_code) & ~layout->code_tag_mask;
		uint8_t owner = *(const uint8_t *)(frame + (uintptr_t)layout->frame_owner);
		if (owner >= OWNER_INTERPRETER || !code) {
			if (!end->loop_mark)
				end->loop_mark = frame; /* the loop's own entry frame is a local variable of it */
			if (count)
				frames[count - 1].flags |= PYTHON_ENTRY;
			continue;
		}
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

unsigned python_walk(struct python_frame *frames, unsigned capacity, struct python_end *end)
{
	const struct python_layout *layout = __atomic_load_n(&python.layout, __ATOMIC_ACQUIRE);
	*end = (struct python_end){ .truncated = false };
	if (!layout || python.is_finalizing())
		return 0;
	uintptr_t state = (uintptr_t)python.thread_state();
	if (!state)
		return 0;
	if (layout->frame_lasti != PYTHON_ABSENT)
		return walk_objects(layout, load_pointer(state, layout->thread_frame), frames, capacity, end);
	if (layout->thread_cframe == PYTHON_ABSENT)
		return walk_frames(layout, load_pointer(state, layout->thread_frame), frames, capacity, end);
	uintptr_t cframe = load_pointer(state, layout->thread_cframe); /* a local variable of the loop */
	uintptr_t frame = load_pointer(cframe, layout->cframe_frame);
	end->loop_mark = frame ? cframe : 0;
	return walk_frames(layout, frame, frames, capacity, end);
}
