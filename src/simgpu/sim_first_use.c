/*
 * First uses of a library's code, told to the driver. Owns the way there. Must never load the
 * driver: without one there is no device.
 */
#define _GNU_SOURCE
#include "sim_first_use.h"

#include <dlfcn.h>
#include <pthread.h>

static __typeof__(simgpuFirstUse) *tell;

static void find(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (library)
		tell = dlsym(library, "simgpuFirstUse");
}

int sim_first_use(enum sim_code code)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find);
	return tell ? tell(code) : 0;
}
