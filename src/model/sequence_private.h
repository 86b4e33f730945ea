/* What the files of a sequence share. */
#ifndef MT_MODEL_SEQUENCE_PRIVATE_H
#define MT_MODEL_SEQUENCE_PRIVATE_H

#include "model/sequence.h"

/* sequence_counts.c */
void sequence_count_recorded(struct sequence *); /* all figures that need the whole sequence */

/* sequence_limit.c */
void sequence_find_limit(struct sequence *); /* after the figures are counted */

/* sequence_steps.c */
/* Puts steps at their ends: what is given back right then still belongs to them. */
void sequence_put_steps(struct sequence *, const uint64_t *step_ends, size_t count);
/* Puts steps where allocated memory is at a low that comes again and again. */
void sequence_find_steps(struct sequence *);

#endif
