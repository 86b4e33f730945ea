/* Two processes: one obtains linear memory, a pool's and physical memory, and starts the other, which gets at all of
 * it by handle. Each prints a JSON line: who it is, what it obtained itself, what the device says it uses. */
#include <cuda.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB  ((size_t)1 << 20)
#define FILE_DESCRIPTOR CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

struct passed {
	CUipcMemHandle linear;
	CUmemPoolPtrExportData ordered;
	int pool, physical; /* descriptors */
};

static void must(CUresult result)
{
	if (!result)
		return;
	fprintf(stderr, "CUDA error %d\n", (int)result);
	exit(1);
}

static void begin(void)
{
	CUcontext context;
	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&context, 0));
	must(cuCtxSetCurrent(context));
}

static void tell(const char *who, size_t live)
{
	size_t unused, total;
	must(cuMemGetInfo(&unused, &total));
	printf("{\"who\": \"%s\", \"pid\": %d, \"live_bytes\": %zu, \"used_bytes\": %zu}\n", who, (int)getpid(), live,
	       total - unused);
	fflush(stdout);
}

static CUmemoryPool make_pool(void)
{
	CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .handleTypes = FILE_DESCRIPTOR,
				      .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemoryPool pool;
	must(cuMemPoolCreate(&pool, &properties));
	return pool;
}

static CUmemGenericAllocationHandle make_physical(size_t bytes)
{
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .requestedHandleTypes = FILE_DESCRIPTOR,
					   .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemGenericAllocationHandle handle;
	must(cuMemCreate(&handle, bytes, &properties, 0));
	return handle;
}

/* In the other process: nothing of this is its own but 2 MiB. */
static int import_all(const struct passed *passed)
{
	CUdeviceptr linear, ordered, place, own;
	CUmemoryPool pool;
	CUmemGenericAllocationHandle physical;
	begin();
	must(cuMemAlloc(&own, 2 * MIB));
	must(cuIpcOpenMemHandle(&linear, passed->linear, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	must(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)passed->pool, FILE_DESCRIPTOR, 0));
	CUmemPoolPtrExportData data = passed->ordered;
	must(cuMemPoolImportPointer(&ordered, pool, &data));
	must(cuMemImportFromShareableHandle(&physical, (void *)(intptr_t)passed->physical, FILE_DESCRIPTOR));
	must(cuMemAddressReserve(&place, 6 * MIB, 0, 0, 0));
	must(cuMemMap(place, 6 * MIB, 0, physical, 0));
	must(cuMemRelease(physical));
	tell("importer", 2 * MIB);
	must(cuIpcCloseMemHandle(linear));
	must(cuMemUnmap(place, 6 * MIB));
	return 0;
}

static void start_other(char *program, const struct passed *passed)
{
	int ends[2], status;
	if (pipe(ends) || write(ends[1], passed, sizeof *passed) != (ssize_t)sizeof *passed)
		exit(1);
	fcntl(passed->pool, F_SETFD, 0);
	fcntl(passed->physical, F_SETFD, 0);
	pid_t child = fork();
	if (!child) {
		dup2(ends[0], 0);
		execl(program, program, "import", (char *)NULL);
		_exit(1);
	}
	if (waitpid(child, &status, 0) != child || status)
		exit(1);
}

int main(int count, char **words)
{
	struct passed passed;
	CUdeviceptr linear, ordered;
	if (count > 1)
		return read(0, &passed, sizeof passed) == (ssize_t)sizeof passed ? import_all(&passed) : 1;
	begin();
	must(cuMemAlloc(&linear, 4 * MIB));
	CUmemoryPool pool = make_pool();
	must(cuMemAllocFromPoolAsync(&ordered, 32 * MIB, pool, 0));
	CUmemGenericAllocationHandle physical = make_physical(6 * MIB);
	must(cuIpcGetMemHandle(&passed.linear, linear));
	must(cuMemPoolExportPointer(&passed.ordered, ordered));
	must(cuMemPoolExportToShareableHandle(&passed.pool, pool, FILE_DESCRIPTOR, 0));
	must(cuMemExportToShareableHandle(&passed.physical, physical, FILE_DESCRIPTOR, 0));
	start_other(words[0], &passed);
	tell("exporter", 42 * MIB);
	return 0;
}
