/* recorder/python_layout: a row is used only if what the interpreter says of itself agrees with all
 * of it. The descriptions here are made from the row itself, then falsified in one place after
 * another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "recorder/python_layout.h"

#define FIRST_MINOR     8
#define LAST_MINOR      15
#define FIRST_DESCRIBED 13
#define WORDS           128
#define TYPE_WORDS      64

static unsigned rows(const struct python_layout **found)
{
	unsigned count = 0;
	for (int minor = FIRST_MINOR; minor <= LAST_MINOR; minor++)
		for (int is_free_threaded = 0; is_free_threaded < 2; is_free_threaded++)
			if ((found[count] = python_layout_find(minor, is_free_threaded)))
				count++;
	return count;
}

static void known_versions_have_a_row_and_no_others(void **state)
{
	(void)state;
	const struct python_layout *found[32];
	assert_int_equal(rows(found),
			 LAST_MINOR - FIRST_MINOR + 1 + 3); /* 3.13 on: free-threaded ones too */
	for (int minor = FIRST_MINOR; minor <= LAST_MINOR; minor++)
		assert_int_equal(python_layout_find(minor, false)->minor, minor);
	assert_null(python_layout_find(FIRST_MINOR - 1, false));
	assert_null(python_layout_find(LAST_MINOR + 1, false));
	assert_null(python_layout_find(FIRST_DESCRIBED - 1, true));
	assert_null(python_layout_find(0, false));
}

/* ---------- _Py_DebugOffsets ---------- */

/* Places of the words that matter, from the headers of each version: 64-bit words. */
static const struct place {
	int minor;
	unsigned current_frame, frame, code, tuple;
} places[] = {{13, 23, 28, 34, 50}, {14, 26, 31, 39, 56}, {15, 26, 39, 47, 68}};

/* Returns how many words matter; their indices in `matter`. */
static unsigned describe(uint64_t *words, const struct python_layout *layout, unsigned *matter)
{
	const struct place *place = &places[layout->minor - FIRST_DESCRIBED];
	const struct {
		unsigned word;
		int value;
	} values[] = {
		{place->current_frame, layout->thread_frame},
		{place->frame + 1, layout->frame_previous},
		{place->frame + 2, layout->frame_code},
		{place->frame + 3, layout->frame_instruction},
		{place->frame + 4, layout->frame_locals},
		{place->frame + 5, layout->frame_owner},
		{place->tuple + 1, layout->tuple_items},
		{place->code + 1, layout->code_file},
		{place->code + 2, layout->code_name},
		{place->code + 3, layout->code_qualname},
		{place->code + 4, layout->code_lines},
		{place->code + 5, layout->code_first_line},
		{place->code + 9, layout->code_bytes},
	};
	unsigned count = sizeof values / sizeof *values;
	memset(words, 0x5a, WORDS * sizeof *words);
	memcpy(words, "xdebugpy", 8);
	words[2] = layout->free_threaded;
	for (unsigned i = 0; i < count; i++) {
		words[values[i].word] = (uint64_t)values[i].value;
		matter[i] = values[i].word;
	}
	return count;
}

static void every_word_of_the_description_has_to_agree(void **state)
{
	(void)state;
	const struct python_layout *found[32];
	unsigned count = rows(found), matter[16];
	for (unsigned i = 0; i < count; i++) {
		uint64_t words[WORDS];
		if (found[i]->minor < FIRST_DESCRIBED)
			continue;
		unsigned words_count = describe(words, found[i], matter);
		assert_true(python_layout_agrees(found[i], words));
		assert_int_equal(python_layout_is_free_threaded(words), found[i]->free_threaded);
		for (unsigned j = 0; j < words_count; j++) {
			words[matter[j]] += 8;
			assert_false(python_layout_agrees(found[i], words));
			words[matter[j]] -= 8;
		}
		words[0]++; /* the cookie */
		assert_false(python_layout_agrees(found[i], words));
		assert_false(python_layout_is_free_threaded(words));
	}
}

static void a_version_that_describes_itself_must_do_so(void **state)
{
	(void)state;
	const struct python_layout *found[32];
	for (unsigned i = 0, count = rows(found); i < count; i++)
		assert_int_equal(python_layout_agrees(found[i], NULL),
				 found[i]->minor < FIRST_DESCRIBED);
	assert_false(python_layout_is_free_threaded(NULL));
}

/* ---------- PyCode_Type ---------- */

struct member { /* PyMemberDef */
	const char *name;
	int type;
	intptr_t offset;
	int flags;
	const char *text;
};

struct fake_type {
	uintptr_t words[TYPE_WORDS];
	struct member members[8];
};

static const int type_type;

/* Returns how many members it has. */
static unsigned make_type(struct fake_type *type, const struct python_layout *layout)
{
	const char *lines = layout->minor < 10 ? "co_lnotab" : "co_linetable";
	memset(type, 0, sizeof *type);
	unsigned head = (unsigned)layout->object_type / 8;
	type->words[head] = (uintptr_t)&type_type;
	type->words[head + 29] = (uintptr_t)type->members; /* from ob_type to tp_members */
	unsigned count = 0;
	type->members[count++] = (struct member){.name = "co_name", .offset = layout->code_name};
	type->members[count++] =
		(struct member){.name = "co_filename", .offset = layout->code_file};
	type->members[count++] =
		(struct member){.name = "co_firstlineno", .offset = layout->code_first_line};
	type->members[count++] = (struct member){.name = lines, .offset = layout->code_lines};
	type->members[count++] = (struct member){.name = "co_flags", .offset = layout->code_flags};
	if (layout->code_qualname != PYTHON_ABSENT)
		type->members[count++] =
			(struct member){.name = "co_qualname", .offset = layout->code_qualname};
	type->members[count].name = "co_argcount";
	type->members[count].offset = 1;
	return count;
}

static void every_member_of_the_type_has_to_agree(void **state)
{
	(void)state;
	const struct python_layout *found[32];
	for (unsigned i = 0, count = rows(found); i < count; i++) {
		struct fake_type type;
		unsigned members = make_type(&type, found[i]);
		assert_true(python_layout_agrees_with_type(found[i], &type, &type_type));
		for (unsigned j = 0; j < members; j++) {
			type.members[j].offset += 8;
			assert_false(python_layout_agrees_with_type(found[i], &type, &type_type));
			type.members[j].offset -= 8;
		}
		type.members[0].name = NULL; /* no members at all */
		assert_false(python_layout_agrees_with_type(found[i], &type, &type_type));
	}
}

/* Builds with --with-trace-refs have 16 bytes more at the head of every object. */
static void a_type_with_another_head_is_not_followed(void **state)
{
	(void)state;
	const struct python_layout *layout = python_layout_find(12, false);
	struct fake_type type;
	make_type(&type, layout);
	memmove(&type.words[2], type.words, (TYPE_WORDS - 2) * sizeof *type.words);
	type.words[1] = 0;
	type.words[31 - 2] = 1; /* would be followed as the list of members */
	assert_false(python_layout_agrees_with_type(layout, &type, &type_type));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_versions_have_a_row_and_no_others),
		cmocka_unit_test(every_word_of_the_description_has_to_agree),
		cmocka_unit_test(a_version_that_describes_itself_must_do_so),
		cmocka_unit_test(every_member_of_the_type_has_to_agree),
		cmocka_unit_test(a_type_with_another_head_is_not_followed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
