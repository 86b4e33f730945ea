/*
 * Memory shared by handle.  A physical allocation or a pool can be exported as a file descriptor
 * and imported again, and linear memory by its IPC handle: in the same process too, which a card
 * refuses for the latter, so that importers can be tested alone.  Each process has a machine of its
 * own: what another one exported has its size here and costs nothing, but contents are not shared,
 * and its end is not noticed.  Owns the list of open IPC handles.
 */
#define _GNU_SOURCE /* memfd_create */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

/* What an exported descriptor holds. */
struct ticket {
	char mark[16];
	pid_t process;
	int device;
	size_t bytes;
	uintptr_t handle;
};
static const char memory_mark[16] = "simgpu memory", pool_mark[16] = "simgpu pool";

/* ---- file descriptors ---- */

static CUresult ticket_write(int *descriptor, const char *mark, struct ticket ticket)
{
	ticket.process = getpid();
	memcpy(ticket.mark, mark, sizeof(ticket.mark));
	*descriptor = memfd_create(mark, MFD_CLOEXEC);
	if (*descriptor < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (pwrite(*descriptor, &ticket, sizeof(ticket), 0) == (ssize_t)sizeof(ticket))
		return CUDA_SUCCESS;
	close(*descriptor);
	return CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult ticket_read(struct ticket *ticket, int descriptor, const char *mark)
{
	bool is_ours = pread(descriptor, ticket, sizeof(*ticket), 0) == (ssize_t)sizeof(*ticket) &&
		       memcmp(ticket->mark, mark, sizeof(ticket->mark)) == 0;

	return is_ours ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	struct ticket ticket = {.handle = handle};

	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = allocation_size(handle, &ticket.bytes);
	return result == CUDA_SUCCESS ? ticket_write(shared, memory_mark, ticket) : result;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared,
					CUmemAllocationHandleType type)
{
	struct ticket ticket;

	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = ticket_read(&ticket, (int)(intptr_t)shared, memory_mark);
	if (result == CUDA_SUCCESS && ticket.process != getpid())
		return allocation_make(handle, ticket.bytes);
	if (result == CUDA_SUCCESS)
		result = allocation_retain(ticket.handle);
	if (result == CUDA_SUCCESS)
		*handle = ticket.handle;
	return result;
}

CUresult cuMemPoolExportToShareableHandle(void *shared, CUmemoryPool pool,
					  CUmemAllocationHandleType type, unsigned long long flags)
{
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	struct ticket ticket = {.handle = (uintptr_t)pool};
	pthread_mutex_lock(&driver_lock);
	bool is_known = is_pool(pool);
	if (is_known)
		ticket.device = pool->device;
	pthread_mutex_unlock(&driver_lock);
	return is_known ? ticket_write(shared, pool_mark, ticket) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shared,
					    CUmemAllocationHandleType type,
					    unsigned long long flags)
{
	struct ticket ticket;

	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = ticket_read(&ticket, (int)(intptr_t)shared, pool_mark);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	bool is_there = ticket.process != getpid() || is_pool((CUmemoryPool)ticket.handle);
	*pool = is_there && ticket.device < driver_machine.device_count ? pool_import(ticket.device)
									 : NULL;
	pthread_mutex_unlock(&driver_lock);
	return *pool != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- pointers ---- */

/* What stands in an IPC handle and in the data of an exported pointer: 64 opaque bytes. */
struct shared_pointer {
	pid_t process;
	CUdeviceptr address;
	size_t bytes;
	int device;
};

static CUresult pointer_export(void *data, CUdeviceptr address, enum block_kind kind)
{
	struct shared_pointer shared = {.process = getpid()};

	pthread_mutex_lock(&driver_lock);
	const struct block *block = block_find(address);
	bool is_known = block != NULL && block->kind == kind;
	if (is_known) {
		shared.address = block->address;
		shared.bytes = block->span_bytes;
		shared.device = block->device;
	}
	pthread_mutex_unlock(&driver_lock);
	memset(data, 0, sizeof(CUipcMemHandle));
	memcpy(data, &shared, sizeof(shared));
	return is_known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult pointer_import(CUdeviceptr *address, const struct shared_pointer *shared,
			       enum block_kind kind)
{
	struct block block = {
		.size_bytes = shared->bytes,
		.span_bytes = shared->bytes,
		.kind = kind,
		.device = shared->device,
	};

	if (shared->process == 0 || shared->bytes == 0 ||
	    shared->device >= driver_machine.device_count)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = block_insert(&block, DRIVER_PAGE_BYTES);
	if (result == CUDA_SUCCESS)
		*address = block.address;
	return result;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr address)
{
	return pointer_export(data, address, BLOCK_POOL);
}

CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool,
				CUmemPoolPtrExportData *data)
{
	struct shared_pointer shared;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	memcpy(&shared, data, sizeof(shared));
	pthread_mutex_lock(&driver_lock);
	if (is_pool(pool) && pool->is_imported)
		result = pointer_import(address, &shared, BLOCK_IMPORTED);
	pthread_mutex_unlock(&driver_lock);
	return result;
}

/* ---- IPC handles: opened twice, one is at the same address and counts ---- */

static struct opened {
	struct shared_pointer exported;
	CUdeviceptr address;
	unsigned count;
	struct opened *next;
} * opened_handles;

static struct opened **opened_find(CUdeviceptr address)
{
	struct opened **link = &opened_handles;

	while (*link != NULL && (*link)->address != address)
		link = &(*link)->next;
	return link;
}

static struct opened *opened_find_exported(const struct shared_pointer *shared)
{
	struct opened *opened = opened_handles;

	while (opened != NULL && (opened->exported.process != shared->process ||
				  opened->exported.address != shared->address))
		opened = opened->next;
	return opened;
}

static CUresult open_handle(CUdeviceptr *address, const struct shared_pointer *shared)
{
	struct opened *opened = opened_find_exported(shared);

	if (opened == NULL) {
		CUdeviceptr placed;
		CUresult result = pointer_import(&placed, shared, BLOCK_IPC);
		opened = result == CUDA_SUCCESS ? malloc(sizeof(*opened)) : NULL;
		if (opened == NULL)
			return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
		*opened = (struct opened){*shared, placed, 0, opened_handles};
		opened_handles = opened;
	}
	opened->count++;
	*address = opened->address;
	return CUDA_SUCCESS;
}

static CUresult close_handle(CUdeviceptr address)
{
	struct opened **link = opened_find(address);
	struct opened *opened = *link;

	if (opened == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (--opened->count > 0)
		return CUDA_SUCCESS;
	block_remove(block_find(address));
	*link = opened->next;
	free(opened);
	return CUDA_SUCCESS;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
	return pointer_export(handle, address, BLOCK_LINEAR);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
	struct shared_pointer shared;
	int device;
	CUresult result = context_require(&device);

	if (result == CUDA_SUCCESS && flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	memcpy(&shared, &handle, sizeof(shared));
	pthread_mutex_lock(&driver_lock);
	result = open_handle(address, &shared);
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
	pthread_mutex_lock(&driver_lock);
	CUresult result = close_handle(address);
	pthread_mutex_unlock(&driver_lock);
	return result;
}

/* All work is done when a call returns: another process's event has nothing to wait for. */
CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	if (handle == NULL || event == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	memset(handle, 0, sizeof(*handle));
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	return cuEventCreate(event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
}
