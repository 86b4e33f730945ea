/* Owns the knowledge of CPython's structures. It must never take the GIL, touch a reference count, call a Python
 * function that could allocate, or follow a pointer that the calling thread does not keep alive. */
#include "recorder/python.h"

#include <string.h>

#include "base/text.h"
#include "recorder/elf.h"
#include "recorder/say.h"

/* Byte offsets, LP64, release and debug builds alike, compiled from each version's own headers. */
struct layout {
	int minor;
	uint16_t thread_cframe, cframe_frame;
	uint16_t frame_code, frame_previous, frame_instruction, frame_owner;
	uint16_t code_first_line, code_file, code_name, code_qualname, code_lines, code_first_traceable, code_bytes;
	uint16_t bytes_size, bytes_data;
	uint16_t text_length, text_state, text_ascii, text_compact;
};

static const struct layout layouts[] = {
	{ .minor = 11, .thread_cframe = 56, .cframe_frame = 8,
	  .frame_code = 32, .frame_previous = 48, .frame_instruction = 56, .frame_owner = 69,
	  .code_first_line = 72, .code_file = 112, .code_name = 120, .code_qualname = 128, .code_lines = 136,
	  .code_first_traceable = 168, .code_bytes = 184,
	  .bytes_size = 16, .bytes_data = 32,
	  .text_length = 16, .text_state = 32, .text_ascii = 48, .text_compact = 72 },
};

#define OBJECT_TYPE 8
#define THREAD_INTERPRETER 16
#define OWNER_GENERATOR 1
#define CODE_UNIT_BYTES 2

static struct python {
	const struct layout *layout; /* stored last; NULL: no walk */
	void *(*thread_state)(void);
	int (*is_finalizing)(void);
	const void *code_type, *text_type, *bytes_type, *main_interpreter;
	char version[16];
	bool is_unknown;
} python;

static uintptr_t load_pointer(uintptr_t base, unsigned offset)
{
	return *(const uintptr_t *)(base + offset);
}

static int32_t load_int(uintptr_t base, unsigned offset)
{
	return *(const int32_t *)(base + offset);
}

static bool has_type(uintptr_t object, const void *type)
{
	return object && load_pointer(object, OBJECT_TYPE) == (uintptr_t)type;
}

/* ---------- finding the interpreter ---------- */

static const struct layout *layout_of(int minor)
{
	for (unsigned i = 0; i < sizeof layouts / sizeof *layouts; i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return NULL;
}

static void say_unknown(const char *why)
{
	char buffer[256];
	struct text text;
	text_init_fixed(&text, buffer, sizeof buffer);
	text_printf(&text, "Python %s: %s, so allocations have no Python lines", python.version, why);
	python.is_unknown = true;
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
	void *(*main_interpreter)(void) = elf_find_anywhere("PyInterpreterState_Main", NULL);
	python.is_finalizing = elf_find_anywhere("Py_IsFinalizing", NULL);
	if (!python.is_finalizing)
		python.is_finalizing = elf_find_anywhere("_Py_IsFinalizing", NULL);
	python.code_type = elf_find_anywhere("PyCode_Type", NULL);
	python.text_type = elf_find_anywhere("PyUnicode_Type", NULL);
	python.bytes_type = elf_find_anywhere("PyBytes_Type", NULL);
	python.main_interpreter = main_interpreter ? main_interpreter() : NULL;
	return python.is_finalizing && python.code_type && python.text_type && python.bytes_type;
}

/* The thread state that the walk starts from must look like one of this version. */
static bool thread_state_checks_out(void)
{
	uintptr_t state = (uintptr_t)python.thread_state();
	return !state || !python.main_interpreter ||
	       load_pointer(state, THREAD_INTERPRETER) == (uintptr_t)python.main_interpreter;
}

void python_find(void)
{
	if (__atomic_load_n(&python.layout, __ATOMIC_ACQUIRE) || python.is_unknown)
		return;
	void *thread_state = elf_find_anywhere("PyGILState_GetThisThreadState", NULL);
	if (!thread_state)
		return;
	python.thread_state = (void *(*)(void))thread_state;
	const struct layout *layout = layout_of(read_version());
	if (!layout)
		say_unknown("its frames are not known to this version of memtrace");
	else if (!find_symbols() || !thread_state_checks_out())
		say_unknown("its structures are not as expected");
	else
		__atomic_store_n(&python.layout, layout, __ATOMIC_RELEASE);
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

static uint64_t guard_of(const struct layout *layout, uintptr_t code)
{
	uint64_t guard = (uint32_t)load_int(code, layout->code_first_line);
	guard ^= load_pointer(code, layout->code_name) * 0x9E3779B97F4A7C15u;
	return guard ^ load_pointer(code, layout->code_lines);
}

unsigned python_walk(struct python_frame *frames, unsigned capacity, bool *truncated)
{
	const struct layout *layout = __atomic_load_n(&python.layout, __ATOMIC_ACQUIRE);
	*truncated = false;
	if (!layout || python.is_finalizing())
		return 0;
	uintptr_t state = (uintptr_t)python.thread_state();
	if (!state)
		return 0;
	uintptr_t frame = load_pointer(load_pointer(state, layout->thread_cframe), layout->cframe_frame);
	unsigned count = 0;
	for (; frame && count < capacity; frame = load_pointer(frame, layout->frame_previous)) {
		uintptr_t code = load_pointer(frame, layout->frame_code);
		uintptr_t instruction = load_pointer(frame, layout->frame_instruction);
		uint8_t owner = *(const uint8_t *)(frame + layout->frame_owner);
		frames[count].code = code;
		frames[count].lasti = (int32_t)(instruction - (code + layout->code_bytes));
		frames[count].flags = owner == OWNER_GENERATOR ? PYTHON_GENERATOR : 0;
		frames[count].guard = guard_of(layout, code);
		count++;
	}
	*truncated = frame != 0;
	return count;
}

/* ---------- names and lines ---------- */

static unsigned put_utf8(char *at, uint32_t c)
{
	if (c < 0x80) {
		at[0] = (char)c;
		return 1;
	}
	unsigned extra = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	static const unsigned char lead[] = { 0, 0xC0, 0xE0, 0xF0 };
	for (unsigned i = extra; i; i--) {
		at[i] = (char)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	at[0] = (char)(lead[extra] | c);
	return extra + 1;
}

/* Compact strings only: names and files of code objects always are. */
static void copy_text(const struct layout *layout, uintptr_t object, char *buffer, size_t bytes)
{
	size_t used = 0;
	strcpy(buffer, "?");
	if (!has_type(object, python.text_type))
		return;
	size_t length = load_pointer(object, layout->text_length);
	uint32_t state = (uint32_t)load_int(object, layout->text_state);
	unsigned kind = state >> 2 & 7;
	bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
	if (!is_compact)
		return;
	const char *data = (const char *)object + (is_ascii ? layout->text_ascii : layout->text_compact);
	for (size_t i = 0; i < length && used + 5 < bytes; i++) {
		uint32_t c = kind == 1 ? (uint8_t)data[i] :
			     kind == 2 ? ((const uint16_t *)(const void *)data)[i] :
					 ((const uint32_t *)(const void *)data)[i];
		used += put_utf8(buffer + used, c);
	}
	buffer[used] = 0;
}

static const uint8_t *read_line_varint(const uint8_t *at, const uint8_t *end, uint32_t *value)
{
	*value = 0;
	for (unsigned shift = 0; at < end && shift < 32; shift += 6) {
		uint8_t byte = *at++;
		*value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return at;
}

#define LINE_NONE 15   /* codes of the location table, PEP 657 */
#define LINE_LONG 14
#define LINE_NO_COLUMNS 13
#define LINE_ONE 10    /* 10, 11, 12: 0, 1 or 2 lines on */

static int32_t line_delta(unsigned code, const uint8_t *at, const uint8_t *end)
{
	if (code == LINE_LONG || code == LINE_NO_COLUMNS) {
		uint32_t value;
		read_line_varint(at, end, &value);
		return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
	}
	return code >= LINE_ONE && code < LINE_NO_COLUMNS ? (int32_t)code - LINE_ONE : 0;
}

/* Entries begin with a byte whose top bit is set: code in bits 3 to 6, code units - 1 in bits 0 to 2. */
static int32_t line_of(const uint8_t *at, const uint8_t *end, int32_t first_line, int32_t lasti)
{
	int32_t line = first_line, offset = 0;
	while (at < end) {
		uint8_t entry = *at++;
		unsigned code = entry >> 3 & 15;
		line += line_delta(code, at, end);
		offset += ((entry & 7) + 1) * CODE_UNIT_BYTES;
		if (lasti < offset)
			return code == LINE_NONE ? -1 : line;
		while (at < end && !(*at & 0x80))
			at++;
	}
	return -1;
}

bool python_describe(const struct python_frame *frame, struct python_source *source)
{
	const struct layout *layout = python.layout;
	uintptr_t code = frame->code;
	if (!has_type(code, python.code_type))
		return false;
	copy_text(layout, load_pointer(code, layout->code_file), source->file, sizeof source->file);
	copy_text(layout, load_pointer(code, layout->code_qualname), source->function, sizeof source->function);
	int32_t first_line = load_int(code, layout->code_first_line);
	int32_t first_traceable = load_int(code, layout->code_first_traceable) * CODE_UNIT_BYTES;
	source->is_hidden = !(frame->flags & PYTHON_GENERATOR) && frame->lasti < first_traceable;
	source->line = first_line;
	uintptr_t lines = load_pointer(code, layout->code_lines);
	if (has_type(lines, python.bytes_type) && frame->lasti >= 0) {
		const uint8_t *table = (const uint8_t *)lines + layout->bytes_data;
		source->line = line_of(table, table + load_pointer(lines, layout->bytes_size), first_line, frame->lasti);
	}
	return true;
}
