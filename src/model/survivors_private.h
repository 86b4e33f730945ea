/* Blocks that were born while memory grew and are still there, put together by place: what verdict_survivors.c finds and
 * verdict_kind.c names. */
#ifndef MT_MODEL_SURVIVORS_PRIVATE_H
#define MT_MODEL_SURVIVORS_PRIVATE_H

#include "model/verdict_private.h"

struct family { /* live blocks of one place, born while memory grew */
	uint64_t place;
	uint32_t stack; /* of the first */
	uint32_t count;
	uint64_t bytes;
	uint64_t windows; /* bit a window with a birth */
	uint64_t cast_bytes, cast_each_bytes; /* copies that autocast made; the largest of them */
	uint64_t smallest_bytes, largest_bytes /* asked */, newest_born, newest_bytes;
	uint64_t early_bytes; /* asked for the largest of the first half of the rise */
	uint32_t threads; /* changes of thread from one to the next, plus one */
	uint16_t last_thread;
	uint8_t label;
};

struct families {
	struct family *rows;
	uint32_t mask, used;
	struct trend_growth growth;
	uint64_t explained_bytes; /* by families that recur */
	uint64_t count;
	uint64_t unrecorded_bytes; /* of the next, what was made past autograd */
	uint64_t graph_bytes, parameter_bytes, thread_bytes, growing_bytes;
	uint64_t collected_bytes; /* of places whose blocks Python's collector has freed before */
	uint64_t cast_bytes, cast_each_bytes; /* likewise */
	uint64_t source_bytes;		      /* twice as large as these */
	uint32_t stacks, graph_stacks, graph_count; /* of the largest of them */
	uint64_t copied_bytes; /* clones of weights */
	uint32_t beside_count; /* of the most frequent place outside a graph and modules, as of batches that went in */
	uint32_t other_count;		    /* of the most frequent place outside a graph */
	const struct family *largest;
};

/* verdict_kind.c */
bool family_is_of_threads(const struct situation *, const struct families *, const struct family *);
bool family_is_in_graph(const struct situation *, const struct family *); /* by its label */
bool family_is_in_module(const struct situation *, const struct family *);
bool family_is_copy_of_weights(const struct situation *, const struct family *);
bool family_is_of_cache(const struct situation *, const struct family *); /* by a function's name */
/* Who holds them, where `largest` is set. */
enum verdict_kind survivors_kind(const struct situation *, const struct families *);
void survivors_advise(struct situation *, const struct families *, bool by_step); /* after the first action */

#endif
