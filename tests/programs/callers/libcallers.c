/* A library that wraps a function and finds the real one by RTLD_NEXT, each time anew: the answer depends on who
 * asks. Whoever asks in its name gives it itself, and it never returns. */
#include <dlfcn.h>
#include <unistd.h>

static int depth;

pid_t getppid(void)
{
	pid_t (*next)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "getppid");
	if (!next || depth++)
		return -1;
	pid_t parent = next();
	depth--;
	return parent;
}
