/* Native frames: how they are written, and which of a stack's says most. */
#ifndef MT_REPORT_NATIVE_H
#define MT_REPORT_NATIVE_H

#include <stdbool.h>

#include "base/cxx_name.h"
#include "base/text.h"
#include "trace/defs.h"

/* The frame that names what was done. Of PyTorch the backward node, or the operator that was called, past its
 * kernels, the allocator and what only makes a tensor; of other programs the innermost function that
 * is not CUDA's. */
struct native_speaker {
	const struct def_native_frame *frame; /* NULL: nothing is known */
	const struct def_place *place;        /* in its source, NULL without debug information */
	bool is_backward;                     /* a node of autograd's backward pass */
	bool is_pytorch;
};

struct native_speaker native_find_backward(const struct defs *, const struct def_stack *);
struct native_speaker native_find_operator(const struct defs *,
					   const struct def_stack *); /* or other function */

/* The outermost call of an operator, also of one that only makes a tensor; NULL: there is none. */
const struct def_native_frame *native_find_aten(const struct defs *, const struct def_stack *);

/* "MmBackward0", "aten::mm", "take". `name` is valid as far as there is a frame. */
void native_name_speaker(char name[CXX_NAME_BYTES], const struct native_speaker *);

/* "libtorch_cuda.so!at::native::empty_cuda+0x1a2", "libc10_cuda.so+0x1a2b". Not escaped. */
void native_add_frame(struct text *, const struct defs *, const struct def_native_frame *);
/* "file.c:12 function", file names as they are in the debug information. Not escaped. */
void native_add_place(struct text *, const struct def_place *);

#endif
