/* Owns the choice of a row of offsets. It must never guess: a version without a row has no frames,
 * and a row that the interpreter's own descriptions contradict is not used. */
#include "recorder/python_layout.h"

#include <string.h>

#include "recorder/python_rows.h"

const struct python_layout *python_layout_find(int minor, bool free_threaded)
{
	for (unsigned i = 0; i < PYTHON_ROWS; i++)
		if (python_rows[i].minor == minor && python_rows[i].free_threaded == free_threaded)
			return &python_rows[i];
	return NULL;
}

/* ---------- _Py_DebugOffsets ----------
 * 64-bit words; the groups of each release begin at other places. Word 2 says whether the build is
 * free-threaded (as does everything behind it, differently laid out: the row must agree with what
 * is read here). */
#define COOKIE             "xdebugpy"
#define WORD_FREE_THREADED 2

static const struct words {
	int minor;
	/* thread_state.current_frame */
	uint8_t current_frame;
	/* interpreter_frame.{size, previous, executable, instr_ptr, localsplus, owner} */
	uint8_t frame;
	/* code_object.{size, filename, name, qualname, linetable, firstlineno, …, code} */
	uint8_t code;
	/* tuple_object.{size, ob_item} */
	uint8_t tuple;
} words[] = {{13, 23, 28, 34, 50}, {14, 26, 31, 39, 56}, {15, 26, 39, 47, 68}};

static bool has_description(const void *runtime)
{
	return runtime && !memcmp(runtime, COOKIE, 8);
}

bool python_layout_is_free_threaded(const void *runtime)
{
	return has_description(runtime) && ((const uint64_t *)runtime)[WORD_FREE_THREADED] != 0;
}

static bool group_agrees(const uint64_t *group, const int16_t *offsets, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (offsets[i] != NONE && group[i + 1] != (uint64_t)offsets[i])
			return false;
	return true;
}

bool python_layout_agrees(const struct python_layout *layout, const void *runtime)
{
	const uint64_t *described = runtime;
	const int16_t frame[] = {layout->frame_previous, layout->frame_code,
				 layout->frame_instruction, layout->frame_locals,
				 layout->frame_owner};
	const int16_t code[] = {layout->code_file, layout->code_name, layout->code_qualname,
				layout->code_lines, layout->code_first_line};
	if (layout->minor < 13)
		return true;
	for (unsigned i = 0; has_description(runtime) && i < sizeof words / sizeof *words; i++)
		if (words[i].minor == layout->minor)
			return described[words[i].current_frame] ==
				       (uint64_t)layout->thread_frame &&
			       group_agrees(&described[words[i].frame], frame, 5) &&
			       group_agrees(&described[words[i].code], code, 5) &&
			       group_agrees(&described[words[i].tuple], &layout->tuple_items, 1) &&
			       described[words[i].code + 9] == (uint64_t)layout->code_bytes;
	return false;
}

/* ---------- PyCode_Type ----------
 * A struct PyMemberDef each, up to one without a name. */
struct member {
	const char *name;
	int type;
	intptr_t offset;
	int flags;
	const char *text;
};

#define MEMBERS_BEHIND_TYPE 232 /* PyTypeObject: from ob_type to tp_members */
#define MEMBERS_WANTED      5

bool python_layout_agrees_with_type(const struct python_layout *layout, const void *code_type,
				    const void *type_type)
{
	const struct {
		const char *name;
		int16_t offset;
	} expected[] = {
		{"co_filename", layout->code_file},     {"co_name", layout->code_name},
		{"co_qualname", layout->code_qualname}, {"co_firstlineno", layout->code_first_line},
		{"co_linetable", layout->code_lines},   {"co_lnotab", layout->code_lines},
		{"co_flags", layout->code_flags}};
	const char *type = (const char *)code_type + layout->object_type;
	unsigned found = 0;
	if (*(const void *const *)type != type_type)
		return false;
	const struct member *member = *(const struct member *const *)(type + MEMBERS_BEHIND_TYPE);
	for (; member && member->name; member++)
		for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++) {
			if (strcmp(member->name, expected[i].name) != 0)
				continue;
			if (member->offset != expected[i].offset)
				return false;
			found++;
		}
	return found >= MEMBERS_WANTED;
}
