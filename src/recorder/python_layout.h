/* Where CPython keeps what a walk needs, a row a version. Byte offsets, LP64; release and debug
 * builds alike. */
#ifndef MT_RECORDER_PYTHON_LAYOUT_H
#define MT_RECORDER_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PYTHON_ABSENT (-1)

/* The format of a code object's line table. */
enum python_lines {
	PYTHON_LINES_LNOTAB, /* 3.8, 3.9: pairs of an address and a line increment */
	PYTHON_LINES_PEP626, /* 3.10 */
	PYTHON_LINES_PEP657  /* 3.11 on */
};

struct python_layout {
	int minor;
	bool free_threaded;
	enum python_lines lines;
	int16_t thread_frame;                /* PyThreadState: the innermost frame, or … */
	int16_t thread_cframe, cframe_frame; /* … by way of a struct in between (3.11, 3.12) */
	int16_t frame_code, frame_previous;
	int16_t frame_lasti;       /* an int in bytes or code units (up to 3.10) … */
	int16_t frame_instruction; /* … or the address of an instruction */
	int16_t frame_owner, frame_is_entry, frame_tlbc_index;
	int16_t frame_locals; /* its local variables, the arguments first */
	uintptr_t code_tag_mask; /* low bits of frame_code and of a local that are no address */
	int16_t code_flags, code_first_line, code_file, code_name, code_qualname, code_lines;
	int16_t code_first_traceable, code_version, code_bytes, code_tlbc;
	int16_t object_type, bytes_size, bytes_data, tuple_items;
	int16_t text_length, text_state, text_ascii, text_compact;
	uint8_t text_kind_bit, text_compact_bit, text_ascii_bit; /* in the word at text_state */
};

/* The row of a version, or NULL. */
const struct python_layout *python_layout_find(int minor, bool free_threaded);

/* 3.13 on, _PyRuntime begins with a description of the layout: true if it says as the row does. */
bool python_layout_agrees(const struct python_layout *, const void *runtime);
/* The type of code objects lists their members with offsets: true if the list says the same as the
 * row. `type_type` is the type that every type has. */
bool python_layout_agrees_with_type(const struct python_layout *, const void *code_type,
				    const void *type_type);
/* What the description says: is this a free-threaded build? False when there is no description. */
bool python_layout_is_free_threaded(const void *runtime);

#endif
