/* What the rebuilding of a layout and the search for classes share. */
#ifndef MT_MODEL_LAYOUT_PRIVATE_H
#define MT_MODEL_LAYOUT_PRIVATE_H

#include "model/layout.h"
#include "model/free_list.h"

#define NO_CLASS UINT16_MAX
#define SMALL_BYTES	   (1ull << 20)
#define SMALL_SEGMENT_BYTES (2 * SMALL_BYTES)
#define LARGE_PAGE_BYTES   (20 * SMALL_BYTES)

struct layout {
	struct sequence *sequence;
	const struct allocator_conf *conf;
	struct arena *arena;
	struct classes *classes;
	uint16_t *segment_classes;
	struct segment **segments; /* by region, NULL: none, or given back */
	struct piece **lives;
	struct address_map holes;  /* address → free mapped piece */
	struct free_list lists[CLASSES_MAX * 2]; /* class * 2 + is_small */
	uint64_t next_age;
	bool is_touched[CLASSES_MAX]; /* by the release that is going on */
	bool releases_all; /* a release takes all that is free in a class: no gc, no max_split_size */
	bool is_refused;   /* the driver refused: what is released now is a retry's */
	bool is_fixed, failed;
};

struct layout_pass {
	uint16_t *segment_classes; /* by region, NO_CLASS unknown */
	bool is_fixed;		   /* they are held to, else they are found and written */
	size_t contradictions_max; /* with more the pass ends early */
	uint64_t work;		   /* grows by the ops looked at */
};

/* One pass over the sequence. 0 or -ENOMEM. */
int layout_rebuild(struct sequence *, const struct allocator_conf *, struct classes *,
		   struct layout_pass *);

/* layout.c */
unsigned layout_new_class(struct layout *, uint64_t stream);
void layout_set_class(struct layout *, struct segment *, uint32_t region, unsigned class_index);

/* layout_release.c */
/* After a flush: classes that still have something whole and free are private. */
void layout_mark_private(struct layout *);
/* After the last op of a release. */
void layout_end_release(struct layout *, const struct op *last);

#endif
