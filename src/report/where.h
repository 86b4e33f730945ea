/* Which line of the user's own code a stack stands for, and how it is written. */
#ifndef MT_REPORT_WHERE_H
#define MT_REPORT_WHERE_H

#include "base/text.h"
#include "report/native.h"
#include "trace/defs.h"

/* `line` is the user's innermost frame; without one the innermost of all; NULL without Python
 * frames. `inner` is the library's innermost frame below it, NULL if there is none. */
struct where {
	const struct def_python_frame *line;
	const struct def_python_frame *inner;
	const struct def_module *module; /* who asked, NULL unknown */
	struct native_speaker native;    /* without Python frames: the function that asked */
	bool is_library;                 /* `line` is a library's: no user's frame was found */
	bool is_autograd;                /* no Python frame, and the thread is autograd's */
	bool may_be_autograd; /* no Python frame, PyTorch asked, and the thread is not known */
	bool is_cut;          /* the stack was too deep: outer frames are missing */
};

/* `stack` and `thread` may be 0 (unknown) or unknown ids. */
struct where where_find(const struct defs *, uint32_t stack, uint32_t thread);

/* Where `line` is inside a call of a module (nn.Module) or the construction of an object: the user's line that called the
 * outermost module, or constructs that object. NULL: it is in neither. */
const struct def_python_frame *where_find_caller(const struct defs *, uint32_t stack);

/* Do both stand for the same line (or, without one, for the same module)? `inner` does not count.
 */
bool where_is_same(const struct where *, const struct where *);
uint64_t where_hash(const struct where *);

/* "train.py:38 forward", "torch/optim/adamw.py:96 _init_group", "(backward) MmBackward0", "take
 * (trainer)", "trainer.c:12 take", "(autograd thread)", "libnccl.so.2", "unknown". */
void where_add_line(struct text *, const struct defs *, const struct where *);
/* "functional.py linear"; nothing if there is no inner frame. */
void where_add_inner(struct text *, const struct where *);
/* The line, and " › " and the inner frame if there is one. */
void where_add(struct text *, const struct defs *, const struct where *, bool ascii);

/* A frame as people know its file: "train.py:38 forward"; and in full, not escaped. */
void where_add_frame(struct text *, const struct defs *, const struct def_python_frame *);
void where_add_python_frame(struct text *, const struct def_python_frame *);
/* The same of a place in native code: "src/trainer.c:12 take". */
void where_add_place(struct text *, const struct defs *, const struct def_place *);
/* The package that a file belongs to ("torch", "Python"), in `name` and its length; 0: it is the
 * user's. */
size_t where_package(const struct defs *, const char *file, const char **name);

#endif
