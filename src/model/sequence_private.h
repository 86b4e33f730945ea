/* What the files of a sequence share. */
#ifndef MT_MODEL_SEQUENCE_PRIVATE_H
#define MT_MODEL_SEQUENCE_PRIVATE_H

#include "model/sequence.h"

/* sequence_counts.c */
void sequence_count_recorded(struct sequence *); /* all figures that need the whole sequence */
/* Puts steps where allocated memory is at a low that comes again and again. */
void sequence_find_steps(struct sequence *);

#endif
