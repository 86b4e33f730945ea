/* base/arena: memory that is not the program's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

static bool is_filled(const unsigned char *at, unsigned char value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != value)
			return false;
	return true;
}

static void memory_is_zeroed_and_aligned_even_when_reused(void **state)
{
	struct arena *arena = arena_create();
	(void)state;
	for (int round = 0; round < 3; round++) {
		for (size_t bytes = 0; bytes < 100000; bytes += 1 + bytes / 3) {
			unsigned char *at = arena_alloc(arena, bytes);
			assert_non_null(at);
			assert_int_equal((uintptr_t)at % 16, 0);
			assert_true(is_filled(at, 0, bytes));
			memset(at, 0xee, bytes);
			arena_free(arena, at, bytes);
		}
	}
	arena_release(arena);
}

static void freed_memory_is_used_again(void **state)
{
	struct arena *arena = arena_create();
	(void)state;
	void *first = arena_alloc(arena, 200);
	size_t before = arena_bytes(arena);
	arena_free(arena, first, 200);
	assert_ptr_equal(arena_alloc(arena, 199), first);
	for (int i = 0; i < 100000; i++)
		arena_free(arena, arena_alloc(arena, 3000), 3000);
	void *large = arena_alloc(arena, 1 << 20);
	arena_free(arena, large, 1 << 20);
	assert_int_equal(arena_bytes(arena), before);
	arena_release(arena);
}

static void resizing_keeps_contents_and_zeroes_the_rest(void **state)
{
	static const size_t sizes[] = {0,     1,     16,    17,     20,    18,    20,
				       200,   32768, 32769, 100000, 70000, 71000, 1000000,
				       40000, 41000, 30000, 10,     50000};
	struct arena *arena = arena_create();
	size_t had = 0;
	unsigned char *at = 0;
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		at = arena_resize(arena, at, had, sizes[i]);
		assert_non_null(at);
		size_t kept = had < sizes[i] ? had : sizes[i];
		assert_true(is_filled(at, 0xab, kept));
		assert_true(is_filled(at + kept, 0, sizes[i] - kept));
		memset(at, 0xab, sizes[i]);
		had = sizes[i];
	}
	arena_free(arena, at, had);
	arena_release(arena);
}

static void impossible_sizes_are_refused(void **state)
{
	struct arena *arena = arena_create();
	(void)state;
	void *small = arena_alloc(arena, 10), *large = arena_alloc(arena, 40000);
	assert_null(arena_alloc(arena, SIZE_MAX));
	assert_null(arena_alloc(arena, SIZE_MAX / 4));
	assert_null(arena_resize(arena, small, 10, SIZE_MAX / 4));
	assert_null(arena_resize(arena, large, 40000, SIZE_MAX / 4));
	arena_free(arena, large, 40000);
	arena_free(arena, 0, 10);
	arena_release(arena);
	arena_release(0);
}

#define BLOCKS 500

static void blocks_never_overlap(void **state)
{
	struct arena *arena = arena_create();
	struct {
		unsigned char *at;
		size_t bytes;
	} blocks[BLOCKS] = {{0}};
	(void)state;
	srand(7);
	for (int i = 0; i < 100000; i++) {
		int slot = rand() % BLOCKS;
		unsigned char mark = (unsigned char)slot;
		assert_true(is_filled(blocks[slot].at, mark, blocks[slot].bytes));
		arena_free(arena, blocks[slot].at, blocks[slot].bytes);
		blocks[slot].bytes = (size_t)rand() % (rand() % 50 ? 600 : 60000);
		blocks[slot].at = arena_alloc(arena, blocks[slot].bytes);
		memset(blocks[slot].at, mark, blocks[slot].bytes);
	}
	arena_release(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_and_aligned_even_when_reused),
		cmocka_unit_test(freed_memory_is_used_again),
		cmocka_unit_test(resizing_keeps_contents_and_zeroes_the_rest),
		cmocka_unit_test(impossible_sizes_are_refused),
		cmocka_unit_test(blocks_never_overlap),
	};
	return cmocka_run_group_tests_name("arena", tests, 0, 0);
}
