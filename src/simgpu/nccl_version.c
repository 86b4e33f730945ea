/*
 * Which NCCL the stand-in is: that of SIMGPU_NCCL_VERSION, else the one that the program's PyTorch was
 * built with and would bring along, else a fixed one.  Must never load PyTorch.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim.h"
#include "sim_nccl.h"

/* Without PyTorch, and what its 2.8 and later accept. */
#define DEFAULT_VERSION 22707

static int version = DEFAULT_VERSION;

static int number_of(long major, long minor, long patch)
{
	return (int)(major * 10000 + minor * 100 + patch);
}

/* "2.21.5", or 22105 as NCCL itself writes it. */
static int version_of_text(const char *text)
{
	long parts[3] = {0};

	for (int i = 0; i < 3 && text != NULL && *text != '\0'; i++) {
		char *end;
		parts[i] = strtol(text, &end, 10);
		text = *end == '.' ? end + 1 : NULL;
	}
	return parts[0] >= 10000 ? (int)parts[0] : number_of(parts[0], parts[1], parts[2]);
}

/* torch::cuda::nccl::version() answers what PyTorch was compiled against, in 32, 16 and 16 bits; it
 * calls nobody.  0: there is no PyTorch in the process. */
static int version_of_torch(void)
{
	void *torch = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
	uint64_t (*ask)(void) = NULL;

	if (torch == NULL)
		return 0;
	*(void **)&ask = dlsym(torch, "_ZN5torch4cuda4nccl7versionEv");
	uint64_t packed = ask != NULL ? ask() : 0;
	dlclose(torch);
	return number_of((long)(packed >> 32), (long)(packed >> 16 & 0xffff), (long)(packed & 0xffff));
}

static void find_version(void)
{
	const char *text = getenv("SIMGPU_NCCL_VERSION");
	bool is_set = text != NULL && *text != '\0';
	int found = is_set ? version_of_text(text) : version_of_torch();

	if (found >= 20000)
		version = found;
	else if (is_set)
		sim_warn("SIMGPU_NCCL_VERSION=%s is no version of NCCL 2, such as 2.21.5", text);
}

int nccl_version(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_version);
	return version;
}
