/* A library for LD_PRELOAD that brings its own malloc, as allocators and leak checkers do, and finds the one behind it
 * by dlsym when it is first called: whoever allocates while a symbol is looked up comes here again. It also stands before
 * cuMemAlloc_v2 and counts what is allocated on the thread meanwhile, from a thread's second call on. At its end it says
 * both on stderr. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define INITIAL __attribute__((tls_model("initial-exec"))) /* reading it must not allocate */

int cuMemAlloc_v2(uint64_t *address, size_t bytes);
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *memory, size_t bytes);
void free(void *memory);

static _Alignas(16) char early[1 << 16]; /* for the look-up itself */
static atomic_size_t early_used;
static atomic_ulong calls, allocations;
static __thread unsigned long calls_of_thread INITIAL;
static __thread int is_looking INITIAL, is_inside INITIAL;

static int is_early(const void *memory)
{
	return (const char *)memory >= early && (const char *)memory < early + sizeof early;
}

static void *take_early(size_t bytes)
{
	size_t at = atomic_fetch_add(&early_used, (bytes + 15) & ~(size_t)15);
	return at + bytes <= sizeof early ? early + at : NULL;
}

static void *find(const char *name)
{
	is_looking = 1;
	void *function = dlsym(RTLD_NEXT, name);
	is_looking = 0;
	return function;
}

static void count(void)
{
	if (is_inside)
		atomic_fetch_add(&allocations, 1);
}

void *malloc(size_t bytes)
{
	static void *(*next)(size_t);
	count();
	if (is_looking)
		return take_early(bytes);
	if (!next)
		next = find("malloc");
	return next(bytes);
}

void *calloc(size_t members, size_t bytes)
{
	static void *(*next)(size_t, size_t);
	count();
	if (is_looking)
		return take_early(members * bytes);
	if (!next)
		next = find("calloc");
	return next(members, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	static void *(*next)(void *, size_t);
	if (is_looking || is_early(memory)) {
		void *moved = malloc(bytes);
		if (moved && memory)
			memcpy(moved, memory, bytes < (size_t)(early + sizeof early - (char *)memory)
						      ? bytes : (size_t)(early + sizeof early - (char *)memory));
		return moved;
	}
	count();
	if (!next)
		next = find("realloc");
	return next(memory, bytes);
}

void free(void *memory)
{
	static void (*next)(void *);
	if (is_looking || is_early(memory))
		return;
	if (!next)
		next = find("free");
	next(memory);
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	static int (*next)(uint64_t *, size_t);
	if (!next)
		next = find("cuMemAlloc_v2");
	is_inside = calls_of_thread++ > 0;
	atomic_fetch_add(&calls, 1);
	int code = next ? next(address, bytes) : 999;
	is_inside = 0;
	return code;
}

__attribute__((destructor)) static void tell(void)
{
	dprintf(2, "mallocs: %lu calls, %lu allocations in them\n", atomic_load(&calls), atomic_load(&allocations));
}
