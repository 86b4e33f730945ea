/* A library that opens another by its bare name: only its own RUNPATH leads there. */
#include <dlfcn.h>
#include <stddef.h>

int outer_opens_inner(void);

int outer_opens_inner(void)
{
	void *inner = dlopen("libinner.so", RTLD_NOW | RTLD_LOCAL);
	int (*answer)(void) = inner ? (int (*)(void))dlsym(inner, "inner_answer") : NULL;
	return answer ? answer() : -1;
}
