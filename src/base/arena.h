/* Memory of our own for tables that live inside the traced program: pages from mmap, handed out in size
 * classes, so that neither the program's malloc nor its locks are ever touched. One owner thread at a time. */
#ifndef MT_BASE_ARENA_H
#define MT_BASE_ARENA_H

#include <stddef.h>

struct arena;

struct arena *arena_create(void); /* NULL: out of memory */
void arena_release(struct arena *); /* gives everything back at once */

/* Zeroed, 16-byte aligned; NULL when memory is out. `bytes` 0 gives a valid pointer. */
void *arena_alloc(struct arena *, size_t bytes);
/* `bytes` must be what was asked for. NULL is allowed. */
void arena_free(struct arena *, void *pointer, size_t bytes);
/* Grows or shrinks; contents kept, new bytes zeroed; NULL leaves the old one as it was. */
void *arena_resize(struct arena *, void *pointer, size_t old_bytes, size_t new_bytes);
size_t arena_bytes(const struct arena *); /* taken from the system */

#endif
