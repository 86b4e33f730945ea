/* Memory of memtrace's own inside the traced program. Owns: chunks from mmap that are cut into size
 * classes, and mappings of their own for what is larger. Must never call malloc, take a lock, or
 * give memory back to the system before arena_release() except for large blocks: a block that is
 * freed is the next one of its class. Freshly mapped memory is zero already, only what is handed
 * out again is cleared. */
#define _GNU_SOURCE
#include "base/arena.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define STEP          16    /* alignment, and the step of the small classes */
#define SMALL_CLASSES 8     /* 16, 32 … 128 */
#define CLASS_COUNT   40    /* then four a doubling, so that at most a fifth is waste */
#define LARGEST       32768 /* of the last class */
#define PAGE          4096
#define CHUNK_MIN     (64u << 10)
#define CHUNK_MAX     (1u << 20)

struct chunk {
	struct chunk *next;
	size_t bytes;
};

struct large { /* stands before a block with a mapping of its own */
	struct large *next, *previous;
	size_t mapped_bytes;
	size_t reserved; /* keeps the block 16-byte aligned */
};

struct free_block {
	struct free_block *next;
};

struct arena {
	struct chunk *chunks;
	struct large *large;
	char *fresh; /* never handed out, zero */
	size_t fresh_bytes;
	size_t bytes;
	struct free_block *free[CLASS_COUNT];
};

static unsigned class_of(size_t bytes)
{
	if (bytes <= SMALL_CLASSES * STEP)
		return bytes ? (unsigned)((bytes - 1) / STEP) : 0;
	unsigned top = 63 - (unsigned)__builtin_clzll(bytes - 1); /* 7 for 129 … 256 */
	return SMALL_CLASSES + (top - 7) * 4 + (unsigned)(((bytes - 1) >> (top - 2)) & 3);
}

static size_t class_bytes(unsigned size_class)
{
	if (size_class < SMALL_CLASSES)
		return (size_class + 1) * STEP;
	unsigned top = 7 + (size_class - SMALL_CLASSES) / 4,
		 quarter = (size_class - SMALL_CLASSES) % 4 + 1;
	return ((size_t)1 << top) + ((size_t)quarter << (top - 2));
}

static void *map(size_t bytes)
{
	void *at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at == MAP_FAILED ? 0 : at;
}

/* What is left of a chunk goes to the lists, or a large request near its end would waste it. */
static void keep_rest(struct arena *arena)
{
	while (arena->fresh_bytes >= STEP) {
		size_t bytes = arena->fresh_bytes < LARGEST ? arena->fresh_bytes : LARGEST;
		unsigned size_class = class_of(bytes);
		if (class_bytes(size_class) > bytes)
			size_class--;
		struct free_block *block = (void *)arena->fresh;
		block->next = arena->free[size_class];
		arena->free[size_class] = block;
		arena->fresh += class_bytes(size_class);
		arena->fresh_bytes -= class_bytes(size_class);
	}
}

static size_t next_chunk_bytes(const struct arena *arena)
{
	size_t bytes = arena->bytes / 4 / CHUNK_MIN * CHUNK_MIN;
	if (bytes < CHUNK_MIN)
		return CHUNK_MIN;
	return bytes < CHUNK_MAX ? bytes : CHUNK_MAX;
}

static int add_chunk(struct arena *arena)
{
	size_t bytes = next_chunk_bytes(arena);
	struct chunk *chunk = map(bytes);
	if (!chunk)
		return -1;
	keep_rest(arena);
	*chunk = (struct chunk){.next = arena->chunks, .bytes = bytes};
	arena->chunks = chunk;
	arena->fresh = (char *)chunk + sizeof *chunk;
	arena->fresh_bytes = bytes - sizeof *chunk;
	arena->bytes += bytes;
	return 0;
}

struct arena *arena_create(void)
{
	struct arena first = {0};
	if (add_chunk(&first))
		return 0;
	struct arena *arena = (void *)first.fresh;
	size_t own = (sizeof *arena + STEP - 1) / STEP * STEP;
	first.fresh += own;
	first.fresh_bytes -= own;
	*arena = first;
	return arena;
}

void arena_release(struct arena *arena)
{
	if (!arena)
		return;
	for (struct large *next, *large = arena->large; large; large = next) {
		next = large->next;
		munmap(large, large->mapped_bytes);
	}
	/* The arena itself is in the oldest chunk, the last of the list. */
	for (struct chunk *next, *chunk = arena->chunks; chunk; chunk = next) {
		next = chunk->next;
		munmap(chunk, chunk->bytes);
	}
}

static size_t mapped_for(size_t bytes)
{
	return (bytes + sizeof(struct large) + PAGE - 1) / PAGE * PAGE;
}

static void link_large(struct arena *arena, struct large *large)
{
	large->previous = 0;
	large->next = arena->large;
	if (large->next)
		large->next->previous = large;
	arena->large = large;
}

static void unlink_large(struct arena *arena, struct large *large)
{
	if (large->previous)
		large->previous->next = large->next;
	else
		arena->large = large->next;
	if (large->next)
		large->next->previous = large->previous;
}

static void *alloc_large(struct arena *arena, size_t bytes)
{
	struct large *large = map(mapped_for(bytes));
	if (!large)
		return 0;
	large->mapped_bytes = mapped_for(bytes);
	link_large(arena, large);
	arena->bytes += large->mapped_bytes;
	return large + 1;
}

static void free_large(struct arena *arena, void *pointer)
{
	struct large *large = (struct large *)pointer - 1;
	unlink_large(arena, large);
	arena->bytes -= large->mapped_bytes;
	munmap(large, large->mapped_bytes);
}

static void *resize_large(struct arena *arena, void *pointer, size_t old_bytes, size_t new_bytes)
{
	struct large *old = (struct large *)pointer - 1;
	size_t had = old->mapped_bytes, wanted = mapped_for(new_bytes);
	unlink_large(arena, old);
	struct large *large = wanted == had ? old : mremap(old, had, wanted, MREMAP_MAYMOVE);
	if (large == MAP_FAILED) {
		link_large(arena, old);
		return 0;
	}
	link_large(arena, large);
	large->mapped_bytes = wanted;
	arena->bytes += wanted - had;
	/* Of the old pages: they may hold what an earlier shrink cut off. */
	size_t kept = had - sizeof *large;
	if (new_bytes > old_bytes)
		memset((char *)(large + 1) + old_bytes, 0,
		       (new_bytes < kept ? new_bytes : kept) - old_bytes);
	return large + 1;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	if (bytes > PTRDIFF_MAX)
		return 0;
	if (bytes > LARGEST)
		return alloc_large(arena, bytes);
	unsigned size_class = class_of(bytes);
	struct free_block *block = arena->free[size_class];
	if (block) {
		arena->free[size_class] = block->next;
		return memset(block, 0, class_bytes(size_class));
	}
	if (arena->fresh_bytes < class_bytes(size_class) && add_chunk(arena))
		return 0;
	void *fresh = arena->fresh;
	arena->fresh += class_bytes(size_class);
	arena->fresh_bytes -= class_bytes(size_class);
	return fresh;
}

void arena_free(struct arena *arena, void *pointer, size_t bytes)
{
	if (!pointer)
		return;
	if (bytes > LARGEST) {
		free_large(arena, pointer);
		return;
	}
	struct free_block *block = pointer;
	block->next = arena->free[class_of(bytes)];
	arena->free[class_of(bytes)] = block;
}

void *arena_resize(struct arena *arena, void *pointer, size_t old_bytes, size_t new_bytes)
{
	if (!pointer)
		return arena_alloc(arena, new_bytes);
	if (new_bytes > PTRDIFF_MAX)
		return 0;
	if (old_bytes > LARGEST && new_bytes > LARGEST)
		return resize_large(arena, pointer, old_bytes, new_bytes);
	if (old_bytes <= LARGEST && new_bytes <= LARGEST &&
	    class_of(old_bytes) == class_of(new_bytes)) {
		if (new_bytes > old_bytes)
			memset((char *)pointer + old_bytes, 0, new_bytes - old_bytes);
		return pointer;
	}
	void *moved = arena_alloc(arena, new_bytes);
	if (!moved)
		return 0;
	memcpy(moved, pointer, old_bytes < new_bytes ? old_bytes : new_bytes);
	arena_free(arena, pointer, old_bytes);
	return moved;
}

size_t arena_bytes(const struct arena *arena)
{
	return arena->bytes;
}
