/* The offsets, compiled from the headers of each version, a row a version: to be looked up by
 * python_layout.c, and for python.c to compile a walk from each row. */
#ifndef MT_RECORDER_PYTHON_ROWS_H
#define MT_RECORDER_PYTHON_ROWS_H

#include "recorder/python_layout.h"

#define NONE               PYTHON_ABSENT
#define TEXT_OLD           .text_length = 16, .text_state = 32, .text_ascii = 48, .text_compact = 72
#define TEXT_NEW           .text_length = 16, .text_state = 32, .text_ascii = 40, .text_compact = 56
#define TEXT_FREE          .text_length = 32, .text_state = 48, .text_ascii = 56, .text_compact = 72
#define TEXT_BITS          .text_kind_bit = 2, .text_compact_bit = 5, .text_ascii_bit = 6
#define TEXT_BITS_BYTE     .text_kind_bit = 8, .text_compact_bit = 11, .text_ascii_bit = 12
#define OBJECT             .object_type = 8, .bytes_size = 16, .bytes_data = 32
#define OBJECT_FREE        .object_type = 24, .bytes_size = 32, .bytes_data = 48
#define TUPLE              .tuple_items = 24
#define TUPLE_314          .tuple_items = 32 /* behind its hash */
#define TUPLE_FREE         .tuple_items = 40
#define TUPLE_314_FREE     .tuple_items = 48
#define VIA_CFRAME(offset) .thread_frame = NONE, .thread_cframe = 56, .cframe_frame = (offset)
#define DIRECT(offset)     .thread_frame = (offset), .thread_cframe = NONE, .cframe_frame = NONE
#define NO_TLBC            .frame_tlbc_index = NONE, .code_tlbc = NONE

/* Up to 3.10 the frame is an object of its own, with `lasti` as a number. */
#define FRAME_OBJECT(lasti, locals)                                                         \
	DIRECT(24), .frame_code = 32, .frame_previous = 24, .frame_lasti = (lasti),         \
		    .frame_instruction = NONE, .frame_owner = NONE, .frame_is_entry = NONE, \
		    NO_TLBC, .frame_locals = (locals), .code_flags = 36,                    \
		    .code_first_line = 40, .code_file = 104, .code_name = 112,              \
		    .code_qualname = NONE, .code_lines = 120, .code_first_traceable = NONE, \
		    .code_version = NONE, .code_bytes = NONE, STRUCTS_OLD

#define FRAME_311                                                                             \
	.frame_code = 32, .frame_previous = 48, .frame_lasti = NONE, .frame_instruction = 56, \
	.frame_owner = 69, .frame_is_entry = 68, .frame_locals = 72, NO_TLBC
#define FRAME_312                                                                           \
	.frame_code = 0, .frame_previous = 8, .frame_lasti = NONE, .frame_instruction = 56, \
	.frame_is_entry = NONE

#define CODE_311                                                                       \
	.code_flags = 48, .code_first_line = 72, .code_file = 112, .code_name = 120,   \
	.code_qualname = 128, .code_lines = 136, .code_first_traceable = 168,          \
	.code_version = NONE, .code_bytes = 184
#define CODE_312(traceable, bytes)                                                     \
	.code_flags = 48, .code_first_line = 68, .code_file = 112, .code_name = 120,   \
	.code_qualname = 128, .code_lines = 136, .code_first_traceable = (traceable),  \
	.code_version = 92, .code_bytes = (bytes)
#define CODE_FREE(traceable, bytes)                                                    \
	.code_flags = 64, .code_first_line = 84, .code_file = 128, .code_name = 136,   \
	.code_qualname = 144, .code_lines = 152, .code_first_traceable = (traceable),  \
	.code_version = 108, .code_bytes = (bytes)

#define CODE_314_FREE  CODE_FREE(208, 232), .code_tlbc = 224
#define FRAME_313      FRAME_312, .frame_owner = 70, .frame_locals = 72, NO_TLBC
#define FRAME_TAGGED   FRAME_312, .frame_locals = 80, .code_tag_mask = 3
#define FRAME_314      FRAME_TAGGED, .frame_owner = 74, NO_TLBC
#define FRAME_314_FREE FRAME_TAGGED, .frame_owner = 78, .frame_tlbc_index = 72
#define PEP657         .lines = PYTHON_LINES_PEP657
#define STRUCTS_OLD    OBJECT, TUPLE, TEXT_OLD, TEXT_BITS
#define STRUCTS        OBJECT, TUPLE, TEXT_NEW, TEXT_BITS
#define STRUCTS_314    OBJECT, TUPLE_314, TEXT_NEW, TEXT_BITS
#define FREE           .free_threaded = true, OBJECT_FREE, TEXT_FREE
#define FREE_313       FREE, TUPLE_FREE, TEXT_BITS
#define FREE_314       FREE, TUPLE_314_FREE, TEXT_BITS_BYTE

static const struct python_layout python_rows[] = {
	{.minor = 8, .lines = PYTHON_LINES_LNOTAB, FRAME_OBJECT(104, 360)},
	{.minor = 9, .lines = PYTHON_LINES_LNOTAB, FRAME_OBJECT(104, 360)},
	{.minor = 10, .lines = PYTHON_LINES_PEP626, FRAME_OBJECT(96, 352)},
	{.minor = 11, PEP657, VIA_CFRAME(8), FRAME_311, CODE_311, STRUCTS_OLD},
	{.minor = 12, PEP657, VIA_CFRAME(0), FRAME_313, CODE_312(176, 192), STRUCTS},
	{.minor = 13, PEP657, DIRECT(72), FRAME_313, CODE_312(184, 200), STRUCTS},
	{.minor = 13, PEP657, DIRECT(72), FRAME_313, CODE_FREE(200, 216), FREE_313},
	{.minor = 14, PEP657, DIRECT(72), FRAME_314, CODE_312(192, 208), STRUCTS_314},
	{.minor = 14, PEP657, DIRECT(72), FRAME_314_FREE, CODE_314_FREE, FREE_314},
	{.minor = 15, PEP657, DIRECT(72), FRAME_314, CODE_312(192, 208), STRUCTS_314},
	{.minor = 15, PEP657, DIRECT(72), FRAME_314_FREE, CODE_314_FREE, FREE_314},
};

#define PYTHON_ROWS (sizeof python_rows / sizeof *python_rows)

#endif
