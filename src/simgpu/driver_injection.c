/*
 * A library that the user has put into the process: at the first cuInit the driver opens what
 * CUDA_INJECTION64_PATH names and calls its InitializeInjection, as the genuine one does. Owns
 * nothing. What the library answers is not looked at.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver.h"

void injection_run(void)
{
	static bool is_done;
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*initialize)(void);

	if (path == NULL || *path == '\0' || __atomic_exchange_n(&is_done, true, __ATOMIC_ACQ_REL))
		return;
	void *library = dlopen(path, RTLD_LAZY);
	if (library == NULL) {
		sim_warn("CUDA_INJECTION64_PATH: %s", dlerror());
		return;
	}
	initialize = (int (*)(void))dlsym(library, "InitializeInjection");
	if (initialize != NULL)
		initialize();
}
