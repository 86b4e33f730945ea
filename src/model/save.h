/* The whole state of a model as bytes, and back: live memory, figures, peaks with their composition,
 * what is known of loops, steps and blocks. A model that was loaded answers like the one that was
 * saved, and goes on like it. */
#ifndef MT_MODEL_SAVE_H
#define MT_MODEL_SAVE_H

#include "base/archive.h"
#include "model/model.h"

/* Writes to the archive, whose turn() takes the pieces. 0 or -errno. The model is as it was. */
int model_save(struct model *, struct archive *);

/* Reads into a model that was just created, with definitions of which those of the saved one were the first.
 * Trusts nothing: whatever the bytes, no later call reads or writes beyond what is there. 0, -ENOTSUP
 * (of another version), -EINVAL (damaged), -ENOMEM or turn()'s error; the model is then to be released. */
int model_load(struct model *, struct archive *);

#endif
