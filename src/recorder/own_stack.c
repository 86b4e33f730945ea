/* Owns the change of stacks. It keeps nothing: the stack is mapped for one call. */
#include "recorder/own_stack.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES (256u << 10)

struct call {
	void (*function)(void *);
	void *argument;
};

/* makecontext() passes ints. */
static void begin(unsigned high, unsigned low)
{
	const struct call *call = (const void *)((uintptr_t)high << 32 | low);
	call->function(call->argument);
}

void own_stack_run(void (*function)(void *), void *argument)
{
	const struct call call = { function, argument };
	uintptr_t address = (uintptr_t)&call;
	ucontext_t here, there;
	void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED || getcontext(&there)) {
		function(argument);
		return;
	}
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	makecontext(&there, (void (*)(void))begin, 2, (unsigned)(address >> 32), (unsigned)address);
	swapcontext(&here, &there);
	munmap(stack, STACK_BYTES);
}
