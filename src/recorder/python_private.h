/* What python_find.c, python.c (walking) and python_source.c (names and lines) share. */
#ifndef MT_RECORDER_PYTHON_PRIVATE_H
#define MT_RECORDER_PYTHON_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/python.h"
#include "recorder/python_layout.h"

#define PYTHON_TYPE_FLAGS 160 /* PyTypeObject: from ob_type to tp_flags, in every version */
#define PYTHON_IS_BYTES   (1ul << 27)
#define PYTHON_IS_TEXT    (1ul << 28)

/* Along the frames of the thread whose state is given: what the stack is known by, or all of it. */
typedef void python_key_function(uintptr_t state, unsigned capacity, struct python_end *);
typedef unsigned python_walk_function(uintptr_t state, struct python_frame *, unsigned capacity,
				      struct python_end *);

struct python {
	const struct python_layout *layout; /* stored last; NULL: no walk */
	python_key_function *key;           /* of that layout */
	python_walk_function *walk;
	void *(*thread_state)(void);
	int (*is_finalizing)(void);
	const void *code_type, *text_type, *bytes_type, *tuple_type;
	char version[16];
	bool is_refused;
};

extern struct python python __attribute__((visibility("hidden")));

/* Sets the two. */
void python_walks_of(const struct python_layout *);

/* Were libraries opened since this thread last looked? */
bool python_is_expected(void);

static inline uintptr_t load_pointer(uintptr_t base, int offset)
{
	return *(const uintptr_t *)(base + (uintptr_t)offset);
}

static inline int32_t load_int(uintptr_t base, int offset)
{
	return *(const int32_t *)(base + (uintptr_t)offset);
}

static inline uint8_t load_byte(uintptr_t base, int offset)
{
	return *(const uint8_t *)(base + (uintptr_t)offset);
}

/* Of a code object's name, in full where there is one (3.11 on). */
static inline int16_t python_name_offset(const struct python_layout *layout)
{
	return layout->code_qualname == PYTHON_ABSENT ? layout->code_name : layout->code_qualname;
}

static inline bool python_has_type(uintptr_t object, const void *type)
{
	return object && load_pointer(object, python.layout->object_type) == (uintptr_t)type;
}

/* A string. Its characters, of `kind` bytes each, lie behind it; those of a class derived from str,
 * elsewhere. */
struct python_text {
	const char *data;
	size_t length;
	unsigned kind;
};

static inline struct python_text python_text(const struct python_layout *layout, uintptr_t object)
{
	uint32_t state = (uint32_t)load_int(object, layout->text_state);
	bool is_ascii = state >> layout->text_ascii_bit & 1;
	bool is_compact = state >> layout->text_compact_bit & 1;
	const char *behind = (const char *)object;
	behind += is_ascii ? layout->text_ascii : layout->text_compact;
	return (struct python_text){
		.data = is_compact ? behind
				   : (const char *)load_pointer(object, layout->text_compact),
		.length = load_pointer(object, layout->text_length),
		.kind = state >> layout->text_kind_bit & 7};
}

/* Of a type or one derived from it, which has `flag`. */
static inline bool python_is_a(uintptr_t object, const void *type, uintptr_t flag)
{
	int head = python.layout->object_type;
	return python_has_type(object, type) ||
	       (object &&
		load_pointer(load_pointer(object, head), head + PYTHON_TYPE_FLAGS) & flag);
}

#endif
