/* C++ exceptions and forced unwinds (pthread_cancel) may pass through a hooked call; the cleanup of the wrapper then
 * runs under the unwinder that is at work. A copy of libgcc's in this library would not be that one, and would bring
 * abort and malloc along. So the two functions that the compiler calls for a cleanup are found where the unwinder
 * lives, in libgcc_s.so.1, which is loaded by whoever raises or cancels. Where it is not (a program with a private
 * copy of libgcc), the cleanup is passed over, and call_open notices the stale call by its frame. x86-64 only. */
#include <stddef.h>

#include "recorder/elf.h"

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void *exceptions_find_personality(void);
HIDDEN void *exceptions_find_resume(void);

HIDDEN void *exceptions_find_personality(void)
{
	return elf_find_in("libgcc_s.so.1", "__gcc_personality_v0", NULL);
}

HIDDEN void *exceptions_find_resume(void)
{
	return elf_find_in("libgcc_s.so.1", "_Unwind_Resume", NULL);
}

/* Arguments are saved around the look-up; %rsp is 16-byte aligned at each call. 8 is _URC_CONTINUE_UNWIND: without
 * the real personality no cleanup is entered, so the end of _Unwind_Resume is never reached without one. */
__asm__(".text\n"
	".hidden __gcc_personality_v0\n.globl __gcc_personality_v0\n.type __gcc_personality_v0,@function\n"
	"__gcc_personality_v0:\n"
	"	push %rdi\n	push %rsi\n	push %rdx\n	push %rcx\n	push %r8\n"
	"	call exceptions_find_personality\n"
	"	pop %r8\n	pop %rcx\n	pop %rdx\n	pop %rsi\n	pop %rdi\n"
	"	test %rax, %rax\n	je 1f\n	jmp *%rax\n"
	"1:	mov $8, %eax\n	ret\n"
	".size __gcc_personality_v0, .-__gcc_personality_v0\n"

	".hidden _Unwind_Resume\n.globl _Unwind_Resume\n.type _Unwind_Resume,@function\n"
	"_Unwind_Resume:\n"
	"	push %rdi\n"
	"	call exceptions_find_resume\n"
	"	pop %rdi\n"
	"	test %rax, %rax\n	je 1f\n	jmp *%rax\n"
	"1:	ud2\n"
	".size _Unwind_Resume, .-_Unwind_Resume\n");
