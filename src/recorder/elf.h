/* Finds functions in loaded objects by reading their dynamic symbol tables in place: no allocation, and no reference
 * that would pin a library which the program closes. Any thread. A search over all objects holds the loader's lock
 * of dl_iterate_phdr (not that of dlopen), except in a forked child: off the hot path only. What is given must stay
 * loaded meanwhile. */
#ifndef MT_RECORDER_ELF_H
#define MT_RECORDER_ELF_H

#include <link.h>
#include <stdint.h>

/* The address of `name` in one object, or NULL. `node` NULL: the default version, else that version only.
 * Data, undefined and local symbols never match functions' names here, so they are not told apart. */
void *elf_find(const struct link_map *, const char *name, const char *node);

/* The first loaded object that defines it, in load order from behind ourselves on, as RTLD_NEXT would have it: a
 * library preloaded before us has had its turn and leads back to us. Only then those before us. */
void *elf_find_anywhere(const char *name, const char *node);

/* The same, only in objects whose file name begins with `prefix` ("libcuda.so"). */
void *elf_find_in(const char *prefix, const char *name, const char *node);

/* Calls `visit` with each loaded object in load order until it gives something else than 0. */
void elf_visit(int (*visit)(const struct link_map *, void *), void *argument);
/* The program itself calls the loader now: its lock is no dead thread's. */
void elf_loader_is_used(void);

/* The loaded object that contains an address, or NULL. */
const struct link_map *elf_object_of(const void *address);

/* Where the object that holds `address` lies in memory; start is its ELF header. False when unknown. */
struct elf_range {
	uintptr_t start, end;
};
int elf_range_of(const struct link_map *, const void *address, struct elf_range *);

/* The search table of the unwind information (.eh_frame_hdr) of the object that holds `address`, or NULL. */
const unsigned char *elf_unwind_table_of(const void *address);
/* Is there a look-up of objects without a lock? (glibc 2.35 on.) Without it unwind tables are not found. */
int elf_can_find_objects(void);

/* The last component of an object's path; "" for the program itself. */
const char *elf_basename(const struct link_map *);

#endif
