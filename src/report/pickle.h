/* A writer of Python pickles, protocol 2, in the operations that PyTorch's memory_viz understands, in Python and
 * in JavaScript. What is written goes out in pieces: a pickle of any size costs the same memory. After an error
 * everything is a no-op. */
#ifndef MT_REPORT_PICKLE_H
#define MT_REPORT_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes the next piece of the file; 0 or -errno. */
typedef int pickle_take(void *context, const void *data, size_t bytes, uint64_t offset);

struct pickle {
	pickle_take *take;
	void *context;
	uint64_t offset;
	uint32_t memo_count;
	int error;
	size_t used_bytes;
	uint8_t buffer[16384];
};

void pickle_begin(struct pickle *, pickle_take *, void *context);
int pickle_end(struct pickle *); /* 0 or -errno, of all that was written */

/* Between the two: a key, its value, a key, … */
void pickle_dict(struct pickle *);
void pickle_dict_end(struct pickle *);

struct pickle_list {
	uint64_t item_count;
};

/* pickle_item() stands before each item. */
void pickle_list(struct pickle *, struct pickle_list *);
void pickle_item(struct pickle *, struct pickle_list *);
void pickle_list_end(struct pickle *, struct pickle_list *);

void pickle_integer(struct pickle *, uint64_t); /* above INT64_MAX: that */
void pickle_bool(struct pickle *, bool);
void pickle_real(struct pickle *, double);
void pickle_text(struct pickle *, const char *utf8, size_t bytes);
void pickle_pair(struct pickle *); /* of the two values before it */

/* What was written last gets a number, under which it is written again without its content. */
uint32_t pickle_keep(struct pickle *);
void pickle_again(struct pickle *, uint32_t kept);

#endif
