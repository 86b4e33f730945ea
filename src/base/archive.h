/* A state as bytes, and back: one description of a struct serves both directions, so that they cannot
 * differ. Numbers are varints. What is read is bounded: each field by its own limit, so that a state
 * from anyone gives values that the owner can index with, or an error. */
#ifndef MT_BASE_ARCHIVE_H
#define MT_BASE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCHIVE_BOUNDS 4

struct archive {
	bool is_loading;
	int error; /* the first, -errno: from then on nothing is written, and zeros are read */
	uint8_t *at, *end; /* room for what is written, or what is there to be read */
	/* Called when `at` has reached `end`: takes what was written and makes room, or brings more (there
	 * is none: -ENODATA). 0 or -errno. */
	int (*turn)(struct archive *);
	void *context;
	uint64_t bounds[ARCHIVE_BOUNDS]; /* for fields whose limit is known only now */
};

/* Of a struct: numbers of 1, 2, 4 or 8 bytes, `count` in a row. Tables end with an entry of 0 bytes. */
struct field {
	uint32_t offset, count;
	uint8_t bytes;
	uint64_t limit; /* values are below it; 0: any; or one of the two below */
};
#define ARCHIVE_WITHIN(bound) (UINT64_MAX - ARCHIVE_BOUNDS - (bound)) /* below bounds[bound] */
#define ARCHIVE_KNOWN(bound)  (UINT64_MAX - (bound)) /* likewise, but what is not becomes 0 */

#define FIELD_BELOW(type, name, limit) \
	{offsetof(type, name), 1, sizeof(((type *)0)->name), (limit)}
#define FIELD(type, name)      FIELD_BELOW(type, name, 0)
#define FIELD_BOOL(type, name) FIELD_BELOW(type, name, 2)
#define FIELD_ROW_BELOW(type, name, limit)                                                        \
	{offsetof(type, name), sizeof(((type *)0)->name) / sizeof(((type *)0)->name[0]), \
	 sizeof(((type *)0)->name[0]), (limit)}
#define FIELD_ROW(type, name) FIELD_ROW_BELOW(type, name, 0)
#define FIELD_END             {0, 0, 0, 0}

void archive_fail(struct archive *, int error);
void archive_number(struct archive *, uint64_t *);
void archive_bool(struct archive *, bool *);
/* A number that must be below `limit` when it is read, else -EINVAL and 0. */
void archive_number_below(struct archive *, uint64_t *, uint64_t limit);
void archive_bytes(struct archive *, void *, size_t bytes);
void archive_fields(struct archive *, void *object, const struct field *);

#endif
