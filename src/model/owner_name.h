/* What the owner of memory is called: the first module on a native stack that is not CUDA's own, by its file's
 * name. One table for the model's figures and for the texts of reports. */
#ifndef MT_MODEL_OWNER_NAME_H
#define MT_MODEL_OWNER_NAME_H

#define OWNER_NAME_BYTES 64

/* "pytorch", "nccl", "program", "libfoo.so" (without a version suffix), "foo" for an extension module of Python:
 * constant or in `buffer`. `file` is the last component of a module's path, not empty. */
const char *owner_name(const char *file, char buffer[OWNER_NAME_BYTES]);

/* For people: "nccl" → "NCCL"; other names as they are. */
const char *owner_title(const char *owner);

#endif
