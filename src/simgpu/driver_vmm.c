/*
 * Virtual memory: physical allocations behind handles, reserved addresses, and the mappings between
 * them.  An allocation lives, and is charged, while a handle or a mapping holds it: a handle for each
 * create, retain and import.  Owns the lists of allocations and of mappings.
 */
#include <stdlib.h>

#include "driver.h"

struct allocation {
	size_t bytes;
	unsigned handle_count; /* without one its handle is nobody's, and it can be had from a mapping only */
	unsigned mapping_count;
	CUmemAllocationProp properties;
	struct allocation *next;
};

struct mapping {
	CUdeviceptr address;
	size_t bytes;
	size_t offset_bytes;
	struct allocation *allocation;
	struct mapping *next;
};

static struct allocation *allocations;
static struct mapping *mappings;

/* ---- allocations ---- */

static bool is_on_device(const struct allocation *allocation)
{
	return allocation->properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

static struct allocation *allocation_find(CUmemGenericAllocationHandle handle)
{
	struct allocation *allocation = allocations;

	while (allocation != NULL && (uintptr_t)allocation != handle)
		allocation = allocation->next;
	return allocation != NULL && allocation->handle_count > 0 ? allocation : NULL;
}

static void allocation_unlink(struct allocation *allocation)
{
	struct allocation **link = &allocations;

	while (*link != allocation)
		link = &(*link)->next;
	*link = allocation->next;
}

static void allocation_end_if_unused(struct allocation *allocation)
{
	if (allocation->handle_count > 0 || allocation->mapping_count > 0)
		return;
	if (is_on_device(allocation)) {
		int device = allocation->properties.location.id;
		device_uncharge(device, allocation->bytes, allocation->bytes);
		driver_machine.devices[device].free_count++;
	}
	allocation_unlink(allocation);
	free(allocation);
}

static CUresult allocation_charge(const struct allocation *allocation)
{
	if (!is_on_device(allocation))
		return CUDA_SUCCESS;
	int device = allocation->properties.location.id;
	CUresult result = device_charge(device, allocation->bytes, allocation->bytes);
	if (result == CUDA_SUCCESS)
		driver_machine.devices[device].allocation_count++;
	return result;
}

static CUresult check_properties(size_t bytes, const CUmemAllocationProp *properties)
{
	if (properties == NULL || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes == 0 || bytes % DRIVER_PAGE_BYTES != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		return driver_check_device(properties->location.id);
	return driver_check_ready();
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
				       CUmemAllocationGranularity_flags option)
{
	if (bytes == NULL || properties == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = DRIVER_PAGE_BYTES;
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
		     const CUmemAllocationProp *properties, unsigned long long flags)
{
	CUresult result = check_properties(bytes, properties);

	if (result == CUDA_SUCCESS && (handle == NULL || flags != 0))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	struct allocation *allocation = malloc(sizeof(*allocation));
	if (allocation == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*allocation = (struct allocation){
		.bytes = bytes, .handle_count = 1, .properties = *properties};
	pthread_mutex_lock(&driver_lock);
	result = allocation_charge(allocation);
	if (result == CUDA_SUCCESS) {
		allocation->next = allocations;
		allocations = allocation;
		*handle = (uintptr_t)allocation;
	}
	pthread_mutex_unlock(&driver_lock);
	if (result != CUDA_SUCCESS)
		free(allocation);
	return result;
}

CUresult allocation_make(CUmemGenericAllocationHandle *handle, size_t bytes)
{
	struct allocation *allocation = calloc(1, sizeof(*allocation));

	if (allocation == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	allocation->bytes = bytes;
	allocation->handle_count = 1;
	pthread_mutex_lock(&driver_lock);
	allocation->next = allocations;
	allocations = allocation;
	pthread_mutex_unlock(&driver_lock);
	*handle = (uintptr_t)allocation;
	return CUDA_SUCCESS;
}

CUresult allocation_size(CUmemGenericAllocationHandle handle, size_t *bytes)
{
	pthread_mutex_lock(&driver_lock);
	const struct allocation *allocation = allocation_find(handle);
	if (allocation != NULL)
		*bytes = allocation->bytes;
	pthread_mutex_unlock(&driver_lock);
	return allocation != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&driver_lock);
	struct allocation *allocation = allocation_find(handle);
	if (allocation != NULL) {
		allocation->handle_count--;
		allocation_end_if_unused(allocation);
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult allocation_retain(CUmemGenericAllocationHandle handle)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&driver_lock);
	struct allocation *allocation = allocation_find(handle);
	if (allocation != NULL) {
		allocation->handle_count++;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
						CUmemGenericAllocationHandle handle)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&driver_lock);
	struct allocation *allocation = allocation_find(handle);
	if (allocation != NULL) {
		*properties = allocation->properties;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&driver_lock);
	return result;
}

/* ---- address space ---- */

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint,
			     unsigned long long flags)
{
	int device;
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS)
		return result;
	bool is_power_of_two = (alignment & (alignment - 1)) == 0;
	if (address == NULL || bytes == 0 || bytes % DRIVER_PAGE_BYTES != 0 || !is_power_of_two)
		return CUDA_ERROR_INVALID_VALUE;
	if (alignment < DRIVER_PAGE_BYTES)
		alignment = DRIVER_PAGE_BYTES;
	device = context_device();
	struct block block = {
		.size_bytes = bytes,
		.span_bytes = bytes,
		.kind = BLOCK_RESERVED,
		.device = device,
	};
	pthread_mutex_lock(&driver_lock);
	result = block_insert(&block, alignment);
	pthread_mutex_unlock(&driver_lock);
	if (result == CUDA_SUCCESS)
		*address = block.address;
	return result;
}

static bool overlaps(const struct mapping *mapping, CUdeviceptr address, size_t bytes)
{
	return mapping->address < address + bytes && address < mapping->address + mapping->bytes;
}

static bool is_mapped(CUdeviceptr address, size_t bytes)
{
	for (const struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next) {
		if (overlaps(mapping, address, bytes))
			return true;
	}
	return false;
}

/* The reservation that holds [address, address + bytes), or NULL. */
static struct block *reservation_find(CUdeviceptr address, size_t bytes)
{
	struct block *block = block_find(address);

	if (block == NULL || block->kind != BLOCK_RESERVED)
		return NULL;
	return bytes <= block->span_bytes - (address - block->address) ? block : NULL;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&driver_lock);
	struct block *block = reservation_find(address, bytes);
	bool is_whole = block != NULL && block->address == address && block->span_bytes == bytes;
	if (is_whole && !is_mapped(address, bytes)) {
		block_remove(block);
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&driver_lock);
	return result;
}

/* ---- mappings ---- */

bool mapping_find(CUdeviceptr address, CUdeviceptr *start, size_t *bytes, int *device)
{
	for (const struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next) {
		if (!overlaps(mapping, address, 1))
			continue;
		*start = mapping->address;
		*bytes = mapping->bytes;
		*device = mapping->allocation->properties.location.id;
		return true;
	}
	return false;
}

static CUresult map(const struct mapping *wanted, CUmemGenericAllocationHandle handle)
{
	struct allocation *allocation = allocation_find(handle);
	size_t end_bytes = wanted->offset_bytes + wanted->bytes;

	if (allocation == NULL || end_bytes < wanted->bytes || end_bytes > allocation->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (reservation_find(wanted->address, wanted->bytes) == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_mapped(wanted->address, wanted->bytes))
		return CUDA_ERROR_INVALID_VALUE;
	struct mapping *mapping = malloc(sizeof(*mapping));
	if (mapping == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*mapping = *wanted;
	mapping->allocation = allocation;
	mapping->next = mappings;
	mappings = mapping;
	allocation->mapping_count++;
	return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset_bytes,
		  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct mapping wanted = {.address = address, .bytes = bytes, .offset_bytes = offset_bytes};

	if (bytes == 0 || bytes % DRIVER_PAGE_BYTES != 0 || address % DRIVER_PAGE_BYTES != 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	CUresult result = map(&wanted, handle);
	pthread_mutex_unlock(&driver_lock);
	return result;
}

/* A mapping is undone whole: bytes that [address, address + bytes) holds of whole mappings. */
static size_t whole_mappings_bytes(CUdeviceptr address, size_t bytes)
{
	size_t found_bytes = 0;

	for (const struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next) {
		bool is_inside = mapping->address >= address &&
				 mapping->address + mapping->bytes <= address + bytes;
		if (is_inside)
			found_bytes += mapping->bytes;
	}
	return found_bytes;
}

static void unmap(CUdeviceptr address, size_t bytes)
{
	struct mapping **link = &mappings;

	while (*link != NULL) {
		struct mapping *mapping = *link;
		if (!overlaps(mapping, address, bytes)) {
			link = &mapping->next;
			continue;
		}
		*link = mapping->next;
		mapping->allocation->mapping_count--;
		allocation_end_if_unused(mapping->allocation);
		free(mapping);
	}
	space_forget(address, bytes);
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&driver_lock);
	if (bytes > 0 && whole_mappings_bytes(address, bytes) == bytes) {
		unmap(address, bytes);
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
			size_t count)
{
	pthread_mutex_lock(&driver_lock);
	bool is_known = reservation_find(address, bytes) != NULL && is_mapped(address, bytes);
	pthread_mutex_unlock(&driver_lock);
	return is_known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
			CUdeviceptr address)
{
	*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&driver_lock);
	for (struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next) {
		if (!overlaps(mapping, (CUdeviceptr)address, 1))
			continue;
		mapping->allocation->handle_count++;
		*handle = (uintptr_t)mapping->allocation;
		result = CUDA_SUCCESS;
		break;
	}
	pthread_mutex_unlock(&driver_lock);
	return result;
}
