/* What a block's category is told from: its label (label.c), and how it is told of a block that is gone, when its label
 * changes (relabel.c). */
#ifndef MT_MODEL_LABEL_PRIVATE_H
#define MT_MODEL_LABEL_PRIVATE_H

#include "model/attribution.h"
#include "model/model.h"

#define TOMBSTONES_MAX 65536

struct model;
struct block;

/* ---------- label.c ---------- */

/* What is kept of a block. Some say only how it was made: what they mean depends on whether the
 * program has trained at all. */
enum label {
	LABEL_UNKNOWN,
	LABEL_PARAMETER,
	LABEL_LOADED, /* a parameter, or optimizer state of a checkpoint */
	LABEL_GRADIENT,
	LABEL_LIKELY_GRADIENT,
	LABEL_STATE, /* of an optimizer */
	LABEL_ACTIVATION,
	LABEL_HELD,
	LABEL_CAST_WEIGHT, /* what autocast made of a parameter, for the graph */
	LABEL_RECOMPUTED,
	LABEL_DROPPED,
	LABEL_RETAINED, /* older than an iteration, in a graph */
	LABEL_FORWARD,  /* alive since a call of a module that goes on */
	LABEL_OUTLIVED, /* has outlived it */
	LABEL_USER,     /* made by the program between two steps */
	LABEL_INPUT,
	LABEL_WORKSPACE,
	LABEL_COMMUNICATION,
	LABEL_PASSING_COMMUNICATION,
	LABEL_TEMPORARY,
	LABEL_FREED_LATER, /* … than its call ended, but before any backward */
	LABEL_STEPPING,    /* made by a step of an optimizer that goes on */
	LABEL_STEP_TEMPORARY,
	LABEL_PASSING, /* made by a backward that goes on */
	LABEL_PASS_TEMPORARY,
	LABEL_OTHER,
	LABEL_COPY,
	LABEL_NO_GRAD,
	LABEL_KEPT,
	LABEL_COUNT
};

struct label_meaning {
	enum model_category category;
	enum model_detail detail;
	bool is_provisional;
};
struct label_meaning label_meaning(uint8_t label, bool has_trained);

/* ---------- relabel.c ---------- */

struct tombstone { /* of a freed block whose label is still open: 32 bytes */
	uint64_t born, died;
	uint32_t units; /* of 512 bytes */
	uint32_t stack;
	uint32_t next; /* in its chain, plus one */
	uint8_t slot, label;
};

/* The block's bytes move, now and in everything recorded since it was born. */
void relabel(struct model *, struct block *, enum label);
/* A place for one more, first in no chain; 0: there is none. */
uint32_t tombstone_take_place(struct model *);
/* Of a block that goes now, if anything recorded holds it. */
void tombstone_add(struct model *, uint32_t *chain, const struct block *, uint64_t died);
/* Empties the chain; all of it becomes `to`. LABEL_COUNT: stays as it is. */
void tombstones_settle(struct model *, uint32_t *chain, enum label to);

#endif
