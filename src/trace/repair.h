/* Writes what can be read of a trace to a new one that is sound and stands alone. Not for the traced process. */
#ifndef MT_TRACE_REPAIR_H
#define MT_TRACE_REPAIR_H

#include <stddef.h>
#include <stdint.h>

struct repair {
	uint64_t parts;         /* damaged places that were left out */
	uint64_t dropped_bytes; /* of the file, in them */
};

/* `output` must not exist; a line about it calls it `said`. Chunks are copied as they are, those after a damaged place too; what the front has
 * becomes chunks; sequences stay, and so does the account of what is missing. 0, or -1 with a line in *error (>= 256
 * bytes), and then there is no new file. */
int trace_repair(const char *path, const char *output, const char *said, struct repair *, char *error,
		 size_t error_bytes);

#endif
