/* Owns the reading of loaded objects' dynamic sections. It must never call into the loader but for the one walk over
 * all objects: these look-ups run inside dlsym and inside wrappers whose caller may hold any lock. */
#include "recorder/elf.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ld.so's own; weak, so that libmemtrace.so needs nothing but libc. */
extern struct r_debug _r_debug __attribute__((weak));
#if __GLIBC_PREREQ(2, 35)
extern int _dl_find_object(void *, struct dl_find_object *) __attribute__((weak));
#endif

struct dynamic {
	const ElfW(Sym) *symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const uint32_t *sysv_hash;
	const ElfW(Half) *versions;
	const char *definitions; /* DT_VERDEF */
	unsigned definition_count;
};

/* glibc relocates these pointers in place, but not those of the vdso. */
static const void *dynamic_pointer(const struct link_map *map, ElfW(Addr) value)
{
	return (const void *)(value < map->l_addr ? value + map->l_addr : value);
}

static bool dynamic_read(const struct link_map *map, struct dynamic *dynamic)
{
	memset(dynamic, 0, sizeof *dynamic);
	if (!map->l_ld)
		return false;
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		const void *pointer = dynamic_pointer(map, entry->d_un.d_ptr);
		switch (entry->d_tag) {
		case DT_SYMTAB: dynamic->symbols = pointer; break;
		case DT_STRTAB: dynamic->strings = pointer; break;
		case DT_GNU_HASH: dynamic->gnu_hash = pointer; break;
		case DT_HASH: dynamic->sysv_hash = pointer; break;
		case DT_VERSYM: dynamic->versions = pointer; break;
		case DT_VERDEF: dynamic->definitions = pointer; break;
		case DT_VERDEFNUM: dynamic->definition_count = (unsigned)entry->d_un.d_val; break;
		default: break;
		}
	}
	return dynamic->symbols && dynamic->strings && (dynamic->gnu_hash || dynamic->sysv_hash);
}

/* The version index of a node that this object defines, or 0. The base definition names the object itself, which
 * in CUDA's runtime reads like its node. */
static unsigned version_index(const struct dynamic *dynamic, const char *node)
{
	const char *at = dynamic->definitions;
	for (unsigned i = 0; at && i < dynamic->definition_count; i++) {
		const ElfW(Verdef) *definition = (const void *)at;
		const ElfW(Verdaux) *name = (const void *)(at + definition->vd_aux);
		if (!(definition->vd_flags & VER_FLG_BASE) && !strcmp(dynamic->strings + name->vda_name, node))
			return definition->vd_ndx;
		at += definition->vd_next;
	}
	return 0;
}

struct wanted {
	const char *name;
	unsigned version; /* 0: the default one */
	uint32_t hidden;  /* found, but only as a non-default version */
};

/* 1 = this is it. Index 0 is never a symbol, so wanted->hidden 0 means none. */
static bool symbol_matches(const struct dynamic *dynamic, uint32_t index, struct wanted *wanted)
{
	const ElfW(Sym) *symbol = &dynamic->symbols[index];
	if (!symbol->st_shndx || strcmp(dynamic->strings + symbol->st_name, wanted->name) != 0)
		return false;
	unsigned version = dynamic->versions ? dynamic->versions[index] : 0;
	if (wanted->version)
		return (version & 0x7fff) == wanted->version;
	if (!(version & 0x8000))
		return true;
	wanted->hidden = index;
	return false;
}

static uint32_t find_by_gnu_hash(const struct dynamic *dynamic, struct wanted *wanted)
{
	uint32_t hash = 5381;
	for (const char *c = wanted->name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	const uint32_t *table = dynamic->gnu_hash;
	uint32_t bucket_count = table[0], first = table[1], bloom_words = table[2];
	const uint32_t *buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = buckets + bucket_count;
	uint32_t index = bucket_count ? buckets[hash % bucket_count] : 0;
	if (index < first)
		return 0;
	for (;; index++) {
		uint32_t entry = chain[index - first];
		if ((entry | 1) == (hash | 1) && symbol_matches(dynamic, index, wanted))
			return index;
		if (entry & 1)
			return 0;
	}
}

static uint32_t find_by_sysv_hash(const struct dynamic *dynamic, struct wanted *wanted)
{
	uint32_t hash = 0;
	for (const char *c = wanted->name; *c; c++) {
		hash = (hash << 4) + (unsigned char)*c;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	const uint32_t *table = dynamic->sysv_hash;
	const uint32_t *chain = table + 2 + table[0];
	uint32_t index = table[0] ? table[2 + hash % table[0]] : 0;
	for (; index; index = chain[index])
		if (symbol_matches(dynamic, index, wanted))
			return index;
	return 0;
}

void *elf_find(const struct link_map *map, const char *name, const char *node)
{
	struct dynamic dynamic;
	if (!dynamic_read(map, &dynamic))
		return NULL;
	struct wanted wanted = { .name = name, .version = node ? version_index(&dynamic, node) : 0 };
	if (node && !wanted.version)
		return NULL;
	uint32_t index = dynamic.gnu_hash ? find_by_gnu_hash(&dynamic, &wanted) :
					    find_by_sysv_hash(&dynamic, &wanted);
	if (!index)
		index = wanted.hidden;
	return index ? (void *)(map->l_addr + dynamic.symbols[index].st_value) : NULL;
}


const char *elf_basename(const struct link_map *map)
{
	const char *slash = strrchr(map->l_name, '/');
	return slash ? slash + 1 : map->l_name;
}

/* ---------- all loaded objects ----------
 * Walked by dl_iterate_phdr, under the lock that keeps them from being unmapped meanwhile: the list itself may not be
 * followed while another thread is in dlclose. Nobody waits for us while holding that lock but another such walk. In a
 * forked child a thread that was in dlopen and is not there may hold it for ever, and the list cannot change: there it
 * is followed without the lock, until the child calls the loader itself. Where that thread was in dlclose, an object is
 * still listed whose memory is gone. */

static pid_t loader_pid; /* the process in which the lock is in order; 0: before our constructor, any */

__attribute__((constructor)) void elf_loader_is_used(void)
{
	__atomic_store_n(&loader_pid, getpid(), __ATOMIC_RELAXED);
}

static const struct link_map *first_object(void)
{
	return &_r_debug ? _r_debug.r_map : NULL;
}

#define PAGE_BYTES 4096

static bool is_mapped(const struct link_map *object)
{
	unsigned char resident;
	uintptr_t page = (uintptr_t)object->l_ld & -(uintptr_t)PAGE_BYTES;
#if __GLIBC_PREREQ(2, 35)
	struct dl_find_object found;
	if (_dl_find_object && (_dl_find_object(object->l_ld, &found) || found.dlfo_link_map != object))
		return false;
#endif
	return !mincore((void *)page, 1, &resident);
}

struct visit {
	int (*visit)(const struct link_map *, void *);
	void *argument;
};

static int visit_headers(struct dl_phdr_info *info, size_t bytes, void *argument)
{
	const struct visit *visit = argument;
	struct link_map object = { .l_addr = info->dlpi_addr, .l_name = (char *)info->dlpi_name };
	(void)bytes;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			object.l_ld = (ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return visit->visit(&object, visit->argument);
}

void elf_visit(int (*visit)(const struct link_map *, void *), void *argument)
{
	struct visit both = { visit, argument };
	pid_t pid = __atomic_load_n(&loader_pid, __ATOMIC_RELAXED);
	const struct link_map *object = pid && pid != getpid() ? first_object() : NULL;
	if (!object)
		dl_iterate_phdr(visit_headers, &both);
	while (object && (!is_mapped(object) || !visit(object, argument)))
		object = object->l_next;
}

struct search {
	const char *prefix; /* of the file's name; NULL: any */
	const char *name, *node;
	bool passed_self;
	void *before, *after; /* what the first object before, behind ourselves has */
};

static int search_object(const struct link_map *object, void *argument)
{
	struct search *search = argument;
	if (!search->passed_self && object->l_ld == _DYNAMIC) {
		search->passed_self = true;
		return 0;
	}
	void **found = search->passed_self ? &search->after : &search->before;
	if (*found || !strncmp(elf_basename(object), "libmemtrace", 11)) /* a second copy of us is no real function */
		return 0;
	if (search->prefix && strncmp(elf_basename(object), search->prefix, strlen(search->prefix)) != 0)
		return 0;
	*found = elf_find(object, search->name, search->node);
	return search->after != NULL;
}

static void *search_all(struct search *search)
{
	elf_visit(search_object, search);
	return search->after ? search->after : search->before;
}

void *elf_find_anywhere(const char *name, const char *node)
{
	struct search search = { .name = name, .node = node };
	return search_all(&search);
}

void *elf_find_in(const char *prefix, const char *name, const char *node)
{
	struct search search = { .prefix = prefix, .name = name, .node = node };
	return search_all(&search);
}

/* The extent of an object by its program headers; its first segment begins with the ELF header. */
static bool range_by_headers(const struct link_map *map, struct elf_range *range)
{
	const ElfW(Ehdr) *header = (const void *)map->l_addr;
	if (!map->l_addr || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	const ElfW(Phdr) *segments = (const void *)(map->l_addr + header->e_phoff);
	*range = (struct elf_range){ map->l_addr, map->l_addr };
	for (unsigned i = 0; i < header->e_phnum; i++) {
		uintptr_t end = map->l_addr + segments[i].p_vaddr + segments[i].p_memsz;
		if (segments[i].p_type == PT_LOAD && end > range->end)
			range->end = end;
	}
	return true;
}

/* Before glibc 2.35 there is no look-up without a lock. Only the headers of the nearest object below are read: others may
 * be unmapped at any moment, but an address that is asked for lies in one that is there. */
static const struct link_map *object_by_headers(const void *address)
{
	struct elf_range range;
	const struct link_map *nearest = NULL;
	for (const struct link_map *map = first_object(); map; map = map->l_next)
		if (map->l_addr <= (uintptr_t)address && (!nearest || map->l_addr > nearest->l_addr))
			nearest = map;
	return nearest && range_by_headers(nearest, &range) && (uintptr_t)address < range.end ? nearest : NULL;
}

#if __GLIBC_PREREQ(2, 35)

const struct link_map *elf_object_of(const void *address)
{
	struct dl_find_object found;
	if (!_dl_find_object)
		return object_by_headers(address);
	return _dl_find_object((void *)address, &found) ? NULL : found.dlfo_link_map;
}

int elf_range_of(const struct link_map *map, const void *address, struct elf_range *range)
{
	struct dl_find_object found;
	if (!_dl_find_object)
		return range_by_headers(map, range);
	if (_dl_find_object((void *)address, &found))
		return 0;
	*range = (struct elf_range){ (uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end };
	return 1;
}

const unsigned char *elf_unwind_table_of(const void *address)
{
	struct dl_find_object found;
	return _dl_find_object && !_dl_find_object((void *)address, &found) ? found.dlfo_eh_frame : NULL;
}

int elf_can_find_objects(void)
{
	return _dl_find_object != NULL;
}

#else

const unsigned char *elf_unwind_table_of(const void *address)
{
	(void)address;
	return NULL;
}

int elf_can_find_objects(void)
{
	return 0;
}

const struct link_map *elf_object_of(const void *address)
{
	return object_by_headers(address);
}

int elf_range_of(const struct link_map *map, const void *address, struct elf_range *range)
{
	(void)address;
	return range_by_headers(map, range);
}

#endif
