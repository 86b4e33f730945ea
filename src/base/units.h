/* Sizes and times as people write them. */
#ifndef MT_BASE_UNITS_H
#define MT_BASE_UNITS_H

#include <stdint.h>

#include "base/text.h"

/* "24GiB", "24G", "1.5 GiB", "512M", "4096", "64KiB", "10MB" (MB, GB: powers of ten; M, G, MiB: of two).
 * 0, or -EINVAL (not a size) or -ERANGE (above 2^63 - 1). */
int parse_bytes(const char *string, uint64_t *bytes);
void text_add_size(struct text *, uint64_t bytes);       /* "6574 MiB", "12 KiB", "512 B", "1.8 MiB", "15.7 GiB" */
void text_add_mib(struct text *, uint64_t bytes, int width); /* whole MiB, rounded, right-aligned */
void text_add_duration(struct text *, uint64_t ns);      /* "3 min 12 s", "4.2 s", "12 ms", "850 us" */
void text_add_count(struct text *, uint64_t count);      /* "969,600" */

#endif
