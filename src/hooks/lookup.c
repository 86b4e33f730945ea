/* Owns the run-time side of the table: where the real functions are, and which looked-up pointers are replaced.
 * Pointers are compared, never names alone: what is not exactly a function of the table passes through. */
#include "hooks/lookup.h"

#include <string.h>

#include "recorder/elf.h"
#include "hooks/rows.h"
#include "recorder/record.h"

void *lookup_real[HOOK_COUNT];

#define DRIVER(...)
#define OTHER(symbol)
#define RUNTIME(node, symbol, note, when, parameters, arguments) cudaError_t RUNTIME_WRAPPER(node, symbol) parameters;
#include "hooks/hooks.def"

#define NODE_V11 "libcudart.so.11.0"
#define NODE_V12 "libcudart.so.12"
#define NODE_V13 "libcudart.so.13"

static const struct row {
	const char *symbol;
	const char *base; /* the name without _v2 and _ptsz */
	const char *node; /* NULL: the driver, which has no version nodes */
	void *wrapper;
} rows[HOOK_COUNT] = {
#define DRIVER(symbol, base, ...) [DRIVER_ID(symbol)] = { #symbol, #base, NULL, (void *)symbol },
#define RUNTIME(node, symbol, note, ...) \
	[RUNTIME_ID(node, symbol)] = { #symbol, #note, NODE_##node, (void *)RUNTIME_WRAPPER(node, symbol) },
#define OTHER(symbol)
#include "hooks/hooks.def"
};

bool lookup_is_cuda_name(const char *name)
{
	if (!name || name[0] != 'c' || name[1] != 'u')
		return false;
	return (name[2] >= 'A' && name[2] <= 'Z') || (name[2] == 'd' && name[3] == 'a');
}

static bool row_is_named(const struct row *row, const char *name)
{
	return !strcmp(row->symbol, name) || !strcmp(row->base, name);
}

bool lookup_is_in_table(const char *name)
{
	for (unsigned i = 0; i < HOOK_COUNT; i++)
		if (!strcmp(rows[i].symbol, name))
			return true;
	return false;
}

bool lookup_is_own(const void *address)
{
	static const char here;
	return address && elf_object_of(address) == elf_object_of(&here);
}

/* A second copy of a library keeps its own functions unseen: one row, one real function. */
static bool row_accepts(unsigned id, void *found)
{
	void *none = NULL;
	return __atomic_compare_exchange_n(&lookup_real[id], &none, found, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
	       none == found;
}

void *lookup_substitute(const char *name, void *found)
{
	if (!found || !lookup_is_cuda_name(name))
		return found;
	const struct link_map *object = elf_object_of(found);
	if (!object || lookup_is_own(found))
		return found;
	bool is_known = false;
	for (unsigned i = 0; i < HOOK_COUNT; i++) {
		if (!row_is_named(&rows[i], name))
			continue;
		is_known |= !rows[i].node; /* a runtime's memory comes from the driver */
		if (elf_find(object, rows[i].symbol, rows[i].node) == found && row_accepts(i, found))
			return rows[i].wrapper;
	}
	if (is_known)
		record_blind(RECORD_BLIND_LOOKUP, name);
	return found;
}

static void *last_real[HOOK_COUNT]; /* before something was closed */

/* Most often the library that was closed is another one. Without a lock: the caller may be a forked child. */
static bool is_still_there(const struct row *row, void *function)
{
	const struct link_map *object = function && elf_can_find_objects() ? elf_object_of(function) : NULL;
	return object && elf_find(object, row->symbol, row->node) == function;
}

void *lookup_resolve(enum hook_id id)
{
	const struct row *row = &rows[id];
	void *found = __atomic_load_n(&last_real[id], __ATOMIC_RELAXED);
	if (!is_still_there(row, found))
		found = elf_find_anywhere(row->symbol, row->node); /* which may be another preload, behind us */
	if (found)
		__atomic_store_n(&lookup_real[id], found, __ATOMIC_RELAXED);
	return found;
}

void lookup_forget(void)
{
	for (unsigned i = 0; i < HOOK_COUNT; i++) {
		void *real = __atomic_exchange_n(&lookup_real[i], NULL, __ATOMIC_RELAXED);
		if (real)
			__atomic_store_n(&last_real[i], real, __ATOMIC_RELAXED);
	}
}
