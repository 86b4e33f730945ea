/*
 * Device addresses and the table of blocks.  Device memory is address space that nobody may touch:
 * a program that follows a device pointer on the host dies, as it would with a card.  Each arena of
 * it has a shadow of the same size right behind, where small copies keep their contents; pages
 * exist only where something was written.  Must never charge or free device memory: that is the
 * business of the callers.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

#define ARENA_BYTES	    ((size_t)1 << 40)
#define ARENA_LIMITED_BYTES ((size_t)256 << 20)
#define ARENAS_MAX	    64

/* [start, start + bytes) is handed out, [start + bytes, start + 2 * bytes) is its shadow. */
static struct arena {
	uintptr_t start;
	size_t bytes;
} arenas[ARENAS_MAX];
static size_t arena_count;
static struct range_set free_ranges;

static struct block *blocks; /* sorted by address */
static size_t block_count, block_room;
static unsigned long long last_id;

static bool is_host_kind(enum block_kind kind)
{
	return kind >= BLOCK_MANAGED;
}

/* ---- arenas ---- */

static int arena_map(struct arena *arena, size_t bytes)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	size_t whole_bytes = 2 * bytes + DRIVER_PAGE_BYTES;
	char *memory = mmap(NULL, whole_bytes, PROT_NONE, flags, -1, 0);

	if (memory == MAP_FAILED)
		return -1;
	arena->start = sim_round_up((uintptr_t)memory, DRIVER_PAGE_BYTES);
	arena->bytes = bytes;
	char *shadow = (char *)arena->start + bytes;
	if (mprotect(shadow, bytes, PROT_READ | PROT_WRITE) != 0) {
		munmap(memory, whole_bytes);
		return -1;
	}
	madvise(memory, whole_bytes, MADV_DONTDUMP);
	/* A huge page for every small copy would make the process as large as the card. */
	madvise(shadow, bytes, MADV_NOHUGEPAGE);
	return 0;
}

/* Once: what the program takes for the device's want of memory is none. */
static void tell_host_short(size_t bytes)
{
	static bool is_said;

	machine_note_host_short();
	if (!is_said)
		sim_warn("the host has no addresses left for %zu MiB more (ulimit -v?): what follows is "
			 "not the device's lack of memory",
			 bytes >> 20);
	is_said = true;
}

static size_t at_least(size_t bytes, size_t usual_bytes)
{
	return bytes > usual_bytes ? bytes : usual_bytes;
}

/* Add an arena with room for `bytes`.  Where address space is limited the program needs it too: arenas
 * are then small, and grow so that some will do. */
static int arena_add(size_t bytes)
{
	struct arena *arena = &arenas[arena_count];
	size_t wanted = at_least(bytes, ARENA_BYTES);

	if (arena_count == ARENAS_MAX)
		return -1;
	if (arena_map(arena, wanted) != 0) {
		wanted = at_least(bytes, ARENA_LIMITED_BYTES << arena_count / 4);
		while (arena_map(arena, wanted) != 0) {
			wanted /= 2;
			if (wanted < bytes)
				return -1;
		}
	}
	arena_count++;
	return range_set_add(&free_ranges, arena->start, arena->start + wanted);
}

static CUdeviceptr take_device_space(size_t bytes, size_t alignment)
{
	uintptr_t address = range_set_take(&free_ranges, bytes, alignment);

	if (address == 0 && arena_add(sim_round_up(bytes + alignment, DRIVER_PAGE_BYTES)) == 0)
		address = range_set_take(&free_ranges, bytes, alignment);
	return address;
}

static CUdeviceptr take_host_pages(size_t bytes)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

	return memory == MAP_FAILED ? 0 : (CUdeviceptr)memory;
}

static char *shadow_of(CUdeviceptr address)
{
	for (size_t i = 0; i < arena_count; i++) {
		if (address - arenas[i].start < arenas[i].bytes)
			return (char *)address + arenas[i].bytes;
	}
	return NULL;
}

void space_forget(CUdeviceptr address, size_t bytes)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)shadow_of(address);
	uintptr_t end = start + bytes;
	uintptr_t first = sim_round_up(start, page_bytes);
	uintptr_t last = end / page_bytes * page_bytes;

	if (start == 0)
		return;
	if (first >= last) {
		memset((void *)start, 0, bytes);
		return;
	}
	/* Neighbours may share the outer pages. */
	memset((void *)start, 0, first - start);
	memset((void *)last, 0, end - last);
	madvise((void *)first, last - first, MADV_DONTNEED);
}

/* ---- the table ---- */

/* Number of blocks that start at or below `address`. */
static size_t count_up_to(CUdeviceptr address)
{
	size_t low = 0, high = block_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (blocks[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct block *block_find(CUdeviceptr address)
{
	size_t count = count_up_to(address);

	if (count == 0)
		return NULL;
	struct block *block = &blocks[count - 1];
	return address - block->address < block->span_bytes ? block : NULL;
}

void block_each(void (*visit)(const struct block *block, void *context), void *context)
{
	for (size_t i = 0; i < block_count; i++)
		visit(&blocks[i], context);
}

static bool make_room(void)
{
	if (block_count < block_room)
		return true;
	size_t room = block_room ? 2 * block_room : 256;
	struct block *larger = realloc(blocks, room * sizeof(*larger));
	if (larger == NULL)
		return false;
	blocks = larger;
	block_room = room;
	return true;
}

static CUdeviceptr take_space(const struct block *block, size_t alignment)
{
	if (block->kind == BLOCK_REGISTERED)
		return block->address;
	if (is_host_kind(block->kind))
		return take_host_pages(block->span_bytes);
	return take_device_space(block->span_bytes, alignment);
}

/* Device memory that the device has is no lack of it: a caching allocator would retry, and a tracer explain.
 * The host's own memory, and addresses that were only to be reserved, can be short on a card too. */
static CUresult error_without_room(const struct block *block)
{
	if (is_host_kind(block->kind) || block->kind == BLOCK_RESERVED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	tell_host_short(block->span_bytes);
	return CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult block_insert(struct block *block, size_t alignment)
{
	if (!make_room())
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->address = take_space(block, alignment);
	if (block->address == 0)
		return error_without_room(block);
	block->id = ++last_id;
	struct block *at = blocks + count_up_to(block->address);
	memmove(at + 1, at, (size_t)(blocks + block_count - at) * sizeof(*at));
	*at = *block;
	block_count++;
	return CUDA_SUCCESS;
}

static void give_space_back(const struct block *block)
{
	if (block->kind == BLOCK_REGISTERED)
		return;
	if (is_host_kind(block->kind)) {
		munmap((void *)block->address, block->span_bytes);
		return;
	}
	if (block->is_written)
		space_forget(block->address, block->span_bytes);
	/* Without memory for the set the addresses are lost, which harms nobody. */
	range_set_add(&free_ranges, block->address, block->address + block->span_bytes);
}

void block_remove(struct block *block)
{
	size_t behind_count = (size_t)(blocks + block_count - block) - 1;

	give_space_back(block);
	memmove(block, block + 1, behind_count * sizeof(*block));
	block_count--;
}

char *space_contents(CUdeviceptr address, size_t bytes, bool *is_device)
{
	struct block *block = block_find(address);

	*is_device = block != NULL && !is_host_kind(block->kind);
	if (!*is_device)
		return (char *)address;
	if (bytes > block->span_bytes - (address - block->address))
		return NULL;
	if (bytes <= DRIVER_SHADOW_BYTES)
		block->is_written = true;
	return shadow_of(address);
}
