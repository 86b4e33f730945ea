/*
 * What a program asks about an address: whose memory it is, where its block starts.  Reads the
 * tables of blocks and mappings; owns and changes nothing.
 */
#include <string.h>

#include "driver.h"

/* What is known of one address; a mapped piece of a reservation answers for itself. */
struct pointer {
	CUdeviceptr address;
	struct block block;
	CUdeviceptr start;
	size_t bytes;
	int device;
};

static bool pointer_look_up(struct pointer *pointer, CUdeviceptr address)
{
	bool is_known;

	pthread_mutex_lock(&driver_lock);
	struct block *block = block_find(address);
	is_known = block != NULL;
	if (is_known) {
		*pointer = (struct pointer){address, *block, block->address, block->size_bytes,
					    block->device};
		if (block->kind == BLOCK_RESERVED)
			is_known = mapping_find(address, &pointer->start, &pointer->bytes,
						&pointer->device);
	}
	pthread_mutex_unlock(&driver_lock);
	return is_known;
}

static bool is_host_memory(const struct pointer *pointer)
{
	return pointer->block.kind == BLOCK_HOST || pointer->block.kind == BLOCK_REGISTERED;
}

static bool has_host_address(const struct pointer *pointer)
{
	return is_host_memory(pointer) || pointer->block.kind == BLOCK_MANAGED;
}

static CUresult give_number(void *data, unsigned value)
{
	memcpy(data, &value, sizeof(value));
	return CUDA_SUCCESS;
}

static CUresult give_word(void *data, uint64_t value)
{
	memcpy(data, &value, sizeof(value));
	return CUDA_SUCCESS;
}

static CUresult give_host_address(void *data, const struct pointer *pointer)
{
	if (!has_host_address(pointer))
		return CUDA_ERROR_INVALID_VALUE;
	return give_word(data, pointer->address);
}

static CUresult answer(void *data, CUpointer_attribute attribute, const struct pointer *pointer)
{
	const struct block *block = &pointer->block;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		return give_word(data, (uint64_t)(uintptr_t)context_primary(pointer->device));
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return give_number(data, is_host_memory(pointer) ? CU_MEMORYTYPE_HOST
								 : CU_MEMORYTYPE_DEVICE);
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		return give_word(data, pointer->address);
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return give_host_address(data, pointer);
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		return give_word(data, block->id);
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		return give_number(data, block->kind == BLOCK_MANAGED);
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return give_number(data, (unsigned)pointer->device);
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		return give_word(data, pointer->start);
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		return give_word(data, pointer->bytes);
	case CU_POINTER_ATTRIBUTE_MAPPED:
		return give_number(data, 1);
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		return give_word(data, 0);
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		return give_word(data, (uint64_t)(uintptr_t)block->pool);
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		return give_word(data, pointer->bytes);
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		return give_word(data, pointer->start);
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return give_word(data, block->id);
	default:
		return give_number(data, 0);
	}
}

/* Some questions have an answer for memory that CUDA does not know. */
static CUresult answer_unknown(void *data, CUpointer_attribute attribute)
{
	if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
		give_number(data, (unsigned)CU_DEVICE_INVALID);
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct pointer pointer;
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (data == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!pointer_look_up(&pointer, address))
		return answer_unknown(data, attribute);
	return answer(data, attribute, &pointer);
}

/* Unlike the single question this one succeeds for unknown memory and answers zeros. */
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **data,
				CUdeviceptr address)
{
	struct pointer pointer;
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS)
		return result;
	bool is_known = pointer_look_up(&pointer, address);
	for (unsigned i = 0; i < count; i++) {
		if (is_known)
			answer(data[i], attributes[i], &pointer);
		else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			answer_unknown(data[i], attributes[i]);
		else
			give_number(data[i], 0);
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
			       CUdeviceptr address)
{
	return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr *start, size_t *bytes, CUdeviceptr address)
{
	struct pointer pointer;
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!pointer_look_up(&pointer, address))
		return CUDA_ERROR_NOT_FOUND;
	if (start != NULL)
		*start = pointer.start;
	if (bytes != NULL)
		*bytes = pointer.bytes;
	return CUDA_SUCCESS;
}

/* ---- pinned memory has one address on both sides ---- */

static CUresult find_host_block(CUdeviceptr address, struct pointer *pointer)
{
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS)
		return result;
	bool is_pinned = pointer_look_up(pointer, address) && is_host_memory(pointer);
	return is_pinned ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *host_address, unsigned flags)
{
	struct pointer pointer;
	CUresult result = find_host_block((CUdeviceptr)host_address, &pointer);

	if (result == CUDA_SUCCESS)
		*address = (CUdeviceptr)host_address;
	return result;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *host_address)
{
	struct pointer pointer;
	CUresult result = find_host_block((CUdeviceptr)host_address, &pointer);

	if (result == CUDA_SUCCESS)
		*flags = pointer.block.flags;
	return result;
}
