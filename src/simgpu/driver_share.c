/*
 * Memory shared by handle.  A physical allocation can be exported as a file descriptor and imported
 * again in the same process; between processes nothing is shared, because each has a machine of its
 * own, and every other way answers "not supported".
 */
#define _GNU_SOURCE /* memfd_create */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

/* What an exported descriptor holds. */
struct ticket {
	char mark[16];
	pid_t process;
	CUmemGenericAllocationHandle handle;
};
static const char mark[16] = "simgpu memory";

CUresult cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	struct ticket ticket = {.process = getpid(), .handle = handle};
	CUmemAllocationProp properties;

	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = cuMemGetAllocationPropertiesFromHandle(&properties, handle);
	if (result != CUDA_SUCCESS)
		return result;
	int descriptor = memfd_create(mark, MFD_CLOEXEC);
	if (descriptor < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	memcpy(ticket.mark, mark, sizeof(mark));
	if (pwrite(descriptor, &ticket, sizeof(ticket), 0) != (ssize_t)sizeof(ticket)) {
		close(descriptor);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	*(int *)shared = descriptor;
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared,
					CUmemAllocationHandleType type)
{
	struct ticket ticket;
	int descriptor = (int)(intptr_t)shared;

	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	bool is_ours = pread(descriptor, &ticket, sizeof(ticket), 0) == (ssize_t)sizeof(ticket) &&
		       memcmp(ticket.mark, mark, sizeof(mark)) == 0;
	if (!is_ours)
		return CUDA_ERROR_INVALID_VALUE;
	if (ticket.process != getpid())
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = allocation_retain(ticket.handle);
	if (result == CUDA_SUCCESS)
		*handle = ticket.handle;
	return result;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}
