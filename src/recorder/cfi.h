/* What the call frame information of a module says about one instruction: how to get from a frame to its caller,
 * for the three registers that a walk needs. x86-64 only. Reads memory that the loader mapped; no lock, no
 * allocation. */
#ifndef MT_RECORDER_CFI_H
#define MT_RECORDER_CFI_H

#include <stdint.h>

enum cfi_kind {
	CFI_END,      /* the outermost frame, or no information: the walk ends here */
	CFI_SP,       /* caller's frame address = rsp + cfa_offset */
	CFI_BP,       /* … = rbp + cfa_offset */
	CFI_SP_DEREF, /* … = the word at rsp + cfa_offset */
	CFI_BP_DEREF, /* … = the word at rbp + cfa_offset; rbp relative to rbp */
	CFI_SIGNAL,   /* a signal frame: all registers lie in the ucontext at rsp */
	CFI_HARD      /* information that is not understood here: the walk is truncated */
};

#define CFI_BP_KEPT INT16_MAX /* the frame did not save rbp */

struct cfi_rule {
	int32_t cfa_offset;
	int16_t bp_offset; /* of the saved rbp from the caller's frame address, or CFI_BP_KEPT */
	uint8_t kind;
};

/* The rule at the instruction `pc` (for a return address: that of the call, one byte before it). */
struct cfi_rule cfi_rule_at(uintptr_t pc);

/* The range of the function that contains `pc`, as its unwind information states it. 0 when unknown. */
int cfi_function_at(uintptr_t pc, uintptr_t *start, uintptr_t *end);

#endif
