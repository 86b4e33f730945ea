/* model: memory that runs out, at every single request. The arena here is one that can fail; it
 * takes the place of the library's. */
#include <stdlib.h>

#include "base/arena.h"
#include "test_model_kit.h"

static size_t requests_left = SIZE_MAX;

struct arena {
	struct arena *next; /* of every piece: what follows it is handed out */
	size_t bytes;
};

static bool is_refused(void)
{
	return !requests_left || !--requests_left;
}

static struct arena *piece_before(void *pointer)
{
	return (struct arena *)pointer - 1;
}

struct arena *arena_create(void)
{
	return is_refused() ? NULL : calloc(1, sizeof(struct arena));
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	struct arena *piece = is_refused() ? NULL : calloc(1, sizeof *piece + bytes);
	if (!piece)
		return NULL;
	piece->next = arena->next;
	piece->bytes = bytes;
	arena->next = piece;
	arena->bytes += bytes;
	return piece + 1;
}

/* Kept until the end; here only the size is checked. */
void arena_free(struct arena *arena, void *pointer, size_t bytes)
{
	if (!pointer)
		return;
	assert_int_equal(piece_before(pointer)->bytes, bytes);
	memset(pointer, 0xdb, bytes);
	arena->bytes -= bytes;
}

void *arena_resize(struct arena *arena, void *pointer, size_t old_bytes, size_t new_bytes)
{
	void *moved = arena_alloc(arena, new_bytes);
	if (moved && pointer) {
		memcpy(moved, pointer, old_bytes);
		arena_free(arena, pointer, old_bytes);
	}
	return moved;
}

size_t arena_bytes(const struct arena *arena)
{
	return arena->bytes;
}

void arena_release(struct arena *arena)
{
	while (arena) {
		struct arena *next = arena->next;
		free(arena);
		arena = next;
	}
}

static struct event make(uint64_t i, enum memtrace_what what, enum memtrace_space space,
			 uint64_t address)
{
	return (struct event){.sequence = i,
			      .what = what,
			      .space = space,
			      .address = address,
			      .bytes = 0x1000,
			      .extra = 1 + i % 40,
			      .stack = (uint32_t)(1 + i % (STACKS_END - 1)),
			      .thread = (uint32_t)(1 + i % 3)};
}

/* Something of everything, enough of it that tables grow. */
static int apply_all(struct model *m)
{
	int error = 0;
	for (uint64_t i = 1; i <= 100 && !error; i++) {
		const struct event events[] = {
			make(i, MEMTRACE_ALLOC, MEMTRACE_SPACE_DEVICE, i * 0x10000),
			make(i, MEMTRACE_BLOCK_ALLOC, MEMTRACE_SPACE_BLOCK, i * 0x10000),
			make(i, MEMTRACE_ALLOC, MEMTRACE_SPACE_VMM, i),
			make(i, MEMTRACE_RESERVE, MEMTRACE_SPACE_VMM, i * 0x100000000),
			make(i, MEMTRACE_MAP, MEMTRACE_SPACE_VMM, i * 0x100000000),
			make(i, MEMTRACE_OOM, MEMTRACE_SPACE_DEVICE, 0),
			make(i, MEMTRACE_POOL_CREATE, MEMTRACE_SPACE_STREAM, i),
			make(i / 2, MEMTRACE_UNMAP, MEMTRACE_SPACE_VMM, i / 2 * 0x100000000),
			make(i / 2, MEMTRACE_FREE, MEMTRACE_SPACE_VMM, i / 2),
			make(i / 2, MEMTRACE_BLOCK_OOM, MEMTRACE_SPACE_BLOCK, 0),
		};
		for (size_t j = 0; j < sizeof events / sizeof *events && !error; j++)
			error = model_apply(m, &events[j]);
	}
	model_finish(m);
	return error;
}

static void look_at_all(const struct model *m)
{
	struct model_share rows[3];
	for (unsigned i = 0; model_device(m, i); i++) {
		for (unsigned j = 0; model_owner(m, i, j);)
			j++;
		model_stacks_at_peak(m, i, rows, 3);
		model_stacks_now(m, i, rows, 3);
	}
	for (size_t i = 0; i < model_oom_count(m); i++)
		model_stacks_at_oom(m, i, rows, 3);
	model_totals(m);
}

static void out_of_memory_is_told_and_harms_nothing(void **state)
{
	struct scene s;
	size_t at = 1;
	int error = -1;
	(void)state;
	for (; error; at++) {
		requests_left = SIZE_MAX;
		scene_open(&s);
		model_release(s.m);
		requests_left = at;
		s.m = model_create(s.defs);
		error = s.m ? apply_all(s.m) : -1;
		if (s.m) {
			assert_int_equal(model_failed(s.m), error != 0);
			look_at_all(s.m);
			const struct event mark = {.what = MEMTRACE_MARK};
			assert_int_equal(model_apply(s.m, &mark) != 0, error != 0);
		}
		requests_left = SIZE_MAX;
		if (!error)
			assert_true(model_is_consistent(s.m));
		scene_close(&s);
	}
	assert_true(at > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(out_of_memory_is_told_and_harms_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
