/* The recorded layout, rebuilt: which segment a block lay in, whether its size is exactly what was
 * asked for, and which class (stream, private pool) every segment belonged to.
 *
 * Pools cannot be seen. They are inferred: the allocator always takes the best hole of its class, so if a
 * block lies in one hole while a better one existed elsewhere, the two segments are of different
 * classes. So are two of which one was given back and the other, whole and free too, was not. What no assignment explains is counted: 0 contradictions is confidence. */
#ifndef MT_MODEL_LAYOUT_H
#define MT_MODEL_LAYOUT_H

#include "model/allocator_conf.h"
#include "model/sequence.h"

#define CLASSES_MAX 512

struct classes {
	unsigned count;
	uint64_t streams[CLASSES_MAX]; /* what a class is of, see struct op */
	bool is_private[CLASSES_MAX];  /* kept whole free segments through a flush, or is a capture's */
	size_t contradictions;
	size_t unplaced; /* blocks in memory that was not seen */
	size_t ambiguous; /* blocks whose request is only bounded */
};

/* Sets class_index and is_exact of the ops of `sequence` (after sequence_finish()). `conf`: what it was recorded
 * under. 0 or -ENOMEM. */
int layout_classify(struct sequence *, const struct allocator_conf *conf, struct classes *);

#endif
