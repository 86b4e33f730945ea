/* What the frames of a stack say about the work that was being done: which file and function of
 * PyTorch, which exported native symbol. One table for the recorder, which looks for the phase of a
 * thread, and the model, which names memory. Paths are compared by their end, never whole. */
#ifndef MT_TRACE_MARKS_H
#define MT_TRACE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/defs.h"

/* What a Python frame is. The innermost one of a stack that is anything is the stack's context. */
enum mark {
	MARK_USER, /* none: the program's own code */
	MARK_BACKWARD,      /* autograd's engine was entered */
	MARK_BACKWARD_CALL, /* torch.autograd.backward itself */
	MARK_GRAD_CALL,     /* torch.autograd.grad itself */
	MARK_FUNCTION,      /* a torch.autograd.Function in backward */
	MARK_OPTIMIZER,     /* Optimizer.step of any class */
	MARK_OPTIMIZER_LOAD,
	MARK_PARAMETER,     /* makes or moves parameters */
	MARK_COPY,
	MARK_INIT,
	MARK_LOAD,          /* torch.load */
	MARK_FORWARD,       /* Module.__call__; forward of the program's, if no autograd.Function calls it */
	MARK_DDP_INIT,
	MARK_COMMUNICATION, /* FSDP */
	MARK_USER_INIT,     /* __init__ of the program's classes */
	MARK_CLOSURE,
	MARK_COUNT
};

/* More of a stack than its innermost mark: one bit a mark (1u << mark), and these. */
#define MARK_FLAG(mark)   (1u << (mark))
#define MARK_ZERO_GRAD    MARK_FLAG(MARK_COUNT)
#define MARK_INIT_GROUP   MARK_FLAG(MARK_COUNT + 1)
#define MARK_OPTIMIZER_FILE MARK_FLAG(MARK_COUNT + 2)
#define MARK_CHECKPOINT   MARK_FLAG(MARK_COUNT + 3)
#define MARK_COMPILED     MARK_FLAG(MARK_COUNT + 4) /* ahead-of-time autograd: torch.compile */
#define MARK_LIBRARY      MARK_FLAG(MARK_COUNT + 5) /* the innermost frame is an installed package's */
#define MARK_USER_BASE    MARK_FLAG(MARK_COUNT + 6) /* the outermost frame is not PyTorch's */
#define MARK_IS_PYTHON    MARK_FLAG(MARK_COUNT + 7) /* there are Python frames */
#define MARK_AUTOCAST_END MARK_FLAG(MARK_COUNT + 8) /* an autocast region is being left */
#define MARK_TRANSFORM    MARK_FLAG(MARK_COUNT + 9) /* inside a transform of torch.func */
#define MARK_STEP_METHOD  MARK_FLAG(MARK_COUNT + 10) /* inside a method of the program's named "step" */

/* Of native frames. */
#define MARK_WORKSPACE    (1u << 0)
#define MARK_REDUCER      (1u << 1)
#define MARK_ENGINE       (1u << 2)
#define MARK_FACTORY      (1u << 3) /* the operator that Python called makes a tensor from nothing */
#define MARK_ZEROS        (1u << 4) /* … of one value, or uninitialised */
#define MARK_CLONE        (1u << 5)
#define MARK_CAST         (1u << 7) /* autocast makes a copy in another precision */
#define MARK_DRAW         (1u << 6) /* … of integers at random: which rows of the data come next */
#define MARK_JOIN         (1u << 8) /* … one of several */
#define MARK_RECORDED     (1u << 9) /* autograd was asked; it is not in torch.inference_mode() */
#define MARK_EMPTY        (1u << 10) /* … uninitialised */

/* A Python frame: enum mark, and flags of it in *flags. */
enum mark mark_of_python(const char *file, const char *function, uint32_t *flags);
/* A native frame by its mangled symbol: flags; 0: it says nothing. An operator's are those of the
 * operator. */
uint32_t mark_of_symbol(const char *symbol);
/* True if a symbol matters to mark_of_symbol() even when it says nothing: an operator's entry. */
bool mark_is_operator(const char *symbol);

bool mark_is_torch(const char *file);
/* Of a function named "step": which it is, a hash; else 0. */
uint32_t mark_step_class(const char *file, const char *function);

#define MARKS_PLACES 4

struct stack_marks {
	uint32_t flags;
	uint8_t context; /* enum mark */
	uint16_t native;
	uint32_t step_site; /* the program's Python frame that called Optimizer.step, 0 none */
	uint32_t step_class; /* whose step it is: a hash of its name, 0 not known */
	uint32_t site;      /* the innermost Python frame that is not PyTorch's, 0 none */
	struct code_place {
		uint32_t function, line; /* hashes, 0 none; a line has a frame for each call in it */
	} places[MARKS_PLACES]; /* of the program's frames, innermost first */
};
void marks_of_stack(const struct defs *, uint32_t stack, struct stack_marks *);

/* Takes Python frames one by one, innermost first. */
struct marks_walk {
	struct stack_marks marks;
	bool has_user, is_outermost_torch, is_site_next;
	bool is_forward; /* the last frame is a method of the program's named "forward" */
	uint32_t count;
	uint32_t step_class; /* of the outermost step so far */
	uint8_t beyond_closure; /* enum mark: what the context is if no optimizer called that */
};
void marks_walk_python(struct marks_walk *, const char *file, const char *function, uint32_t frame);
void marks_walk_end(struct marks_walk *);

#endif
