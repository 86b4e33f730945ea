/* What the files that save and load a model share, grouped by the file that defines it. Every function
 * works in both directions; what it is given is saved, or filled. */
#ifndef MT_MODEL_SAVE_PRIVATE_H
#define MT_MODEL_SAVE_PRIVATE_H

#include "base/archive.h"
#include "model/model_private.h"

enum { BOUND_STACKS, BOUND_THREADS, BOUND_OWNERS }; /* of archive.bounds */

/* Beside the table of a struct: whoever gives it a field is told here. (A field that fits into padding is not.) */
#define SAVED_SIZE(name, bytes)                                                                        \
	_Static_assert(sizeof(struct name) == (bytes),                                                 \
		       "struct " #name " has changed: save and load its new field here (unless it can " \
		       "be worked out again), count STATE_VERSION up, and put the new size here")

#define STACK_OF(type, name) FIELD_BELOW(type, name, ARCHIVE_KNOWN(BOUND_STACKS))

/* True while another item follows: `has_item` when saving. */
bool save_has_item(struct archive *, bool has_item);
/* Of an item that is loaded: NULL, and the archive has failed, when memory is out. */
void *save_new(struct model *, struct archive *, size_t bytes);

/* save_figures.c */
void save_devices(struct model *, struct archive *);
/* NULL: there is none; then or at an error *suspect stays NULL when loading. */
void save_suspect(struct model *, struct archive *, struct suspect **);

/* save_reconcile.c */
void save_map(struct archive *, struct segment_map **); /* NULL: there is none */
void save_let_go(struct model *, struct archive *, struct let_go *);
void save_untracked(struct model *, struct archive *, struct untracked *);
void save_causes(struct model *, struct archive *);
void save_witness(struct model *, struct archive *);

/* save_memory.c */
void save_memory(struct model *, struct archive *);
void save_undo(struct model *, struct archive *, struct undo *);

/* save_blocks.c: after threads and loops, in whose lists the blocks are */
void save_blocks(struct model *, struct archive *);

/* save_work.c */
void save_threads(struct model *, struct archive *);
void save_attribution(struct model *, struct archive *);
void save_sizes(struct model *, struct archive *); /* after the blocks */
void save_elements(struct model *, struct archive *);

#endif
