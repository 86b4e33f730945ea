/* Memory that no allocation accounts for, a step at a time:
 *
 *   readings MODULES       a context, so many modules and libraries, and 64 MiB that stay
 *   readings MODULES oom   and then more than the device has
 *   readings forks         memory, and children that end at once
 *   readings managed       managed memory, which the simulated GPU has in the host's
 *   readings two           memory on devices 0 and 2, and a module on the latter
 *
 * It asks the driver nothing: what is in use, somebody else has to read. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB   ((size_t)1 << 20)
#define FORKS 200

#define MUST(call) must(#call, call)

static void must(const char *call, CUresult result)
{
	if (result) {
		fprintf(stderr, "%s: error %d\n", call, (int)result);
		exit(1);
	}
}

static void use(CUdevice device)
{
	CUcontext context;
	MUST(cuDevicePrimaryCtxRetain(&context, device));
	MUST(cuCtxSetCurrent(context));
}

static CUdeviceptr take(size_t bytes)
{
	CUdeviceptr pointer;
	MUST(cuMemAlloc(&pointer, bytes));
	return pointer;
}

static void load(int count)
{
	CUmodule module;
	CUlibrary library;
	for (int i = 0; i < count; i++) {
		if (i % 2)
			MUST(cuLibraryLoadData(&library, "", NULL, NULL, 0, NULL, NULL, 0));
		else
			MUST(cuModuleLoadData(&module, ""));
	}
}

static int fork_often(void)
{
	for (int i = 0; i < FORKS; i++) {
		CUdeviceptr pointer = take(2 * MIB); /* a new peak: it is read */
		pid_t child = fork();
		if (!child)
			_exit(0);
		int status;
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			return 1;
		(void)pointer;
	}
	return 0;
}

static int use_managed(void)
{
	CUdeviceptr pointer;
	take(64 * MIB);
	MUST(cuMemAllocManaged(&pointer, 32 * MIB, CU_MEM_ATTACH_GLOBAL));
	return 0;
}

static int use_two(void)
{
	take(64 * MIB);
	use(2);
	take(2 * MIB);
	load(1);
	return 0;
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "0";
	MUST(cuInit(0));
	use(0);
	if (!strcmp(what, "two"))
		return use_two();
	if (!strcmp(what, "managed"))
		return use_managed();
	if (!strcmp(what, "forks"))
		return fork_often();
	take(64 * MIB);
	load(atoi(what));
	if (count > 2) {
		CUdeviceptr pointer;
		printf("%d\n", (int)cuMemAlloc(&pointer, 1000 << 20));
	}
	return 0;
}
