/* What a simulated run read back from its GPU: values that nobody computed. */
#ifndef MT_CLI_READBACKS_H
#define MT_CLI_READBACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

#define READBACKS_MAX 64

struct readbacks {
	struct readback {
		char *line; /* of the program, and what it called there */
		uint64_t count;
	} rows[READBACKS_MAX];
	unsigned row_count;
	uint64_t count; /* of all, also of lines for which there was no room */
};

/* Adds those of a trace. One that cannot be read has none. */
void readbacks_add(struct readbacks *, const char *trace_path);
/* A paragraph with the lines that read most; nothing if there are none. `has_values`: of the simulation. */
void readbacks_print(struct text *, struct readbacks *, bool has_values);
void readbacks_release(struct readbacks *); /* then there are none */

#endif
