/* Another interposer of dlsym, as profilers and remote displays have one: it counts the look-ups of names that begin
 * with "cu" and goes on to the next dlsym. At its end it says on stderr how many there were. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static unsigned look_ups;

void *dlsym(void *handle, const char *name)
{
	static void *(*next)(void *, const char *);
	if (!next)
		next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (!strncmp(name, "cu", 2))
		look_ups++;
	return next(handle, name);
}

__attribute__((destructor)) static void tell(void)
{
	dprintf(2, "dlsyms: %u look-ups\n", look_ups);
}
