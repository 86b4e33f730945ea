/*
 * Arrays and mipmapped arrays: memory with a layout of the driver's own, so they have an account
 * and no contents.  Owns the list of both; their bytes are charged in pages, as the layout of a
 * real one is not public.  A sparse one costs nothing: memory is mapped into it.
 */
#include <stdlib.h>

#include "driver_stream.h"

#define NO_MEMORY_YET (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)
#define LEVELS_MAX    32

struct CUarray_st {
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	int device;
	size_t asked_bytes, charge_bytes;
	CUcontext context;
	bool is_mipmap;
	bool is_imported; /* its memory is another's */
	struct CUarray_st *next;
};

static CUarray arrays;

static CUmipmappedArray mipmap_of(CUarray array)
{
	return (CUmipmappedArray)(void *)array;
}

static CUarray array_of(CUmipmappedArray mipmap)
{
	return (CUarray)(void *)mipmap;
}

/* ---- sizes ---- */

static size_t format_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	default:
		return 4;
	}
}

static size_t at_level(size_t extent, unsigned level)
{
	return extent >> level != 0 ? extent >> level : 1;
}

static bool has_layers(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	return (descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
}

/* Bytes of a level's elements; SIZE_MAX when no machine has as many. */
static size_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned level)
{
	size_t bytes = format_bytes(descriptor->Format) * descriptor->NumChannels;
	const size_t extents[] = {at_level(descriptor->Width, level),
				  at_level(descriptor->Height, level),
				  at_level(descriptor->Depth, has_layers(descriptor) ? 0 : level)};

	for (int i = 0; i < 3; i++) {
		if (__builtin_mul_overflow(bytes, extents[i], &bytes))
			return SIZE_MAX;
	}
	return bytes;
}

/* As many levels as the largest extent can be halved, and one. */
static unsigned level_count(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned wanted)
{
	size_t depth = has_layers(descriptor) ? 1 : descriptor->Depth;
	size_t largest = descriptor->Width | descriptor->Height | depth;
	unsigned count = 1;

	while (count < wanted && count < LEVELS_MAX && largest >> count != 0)
		count++;
	return count;
}

static size_t array_asked_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)
{
	size_t bytes = 0;

	if ((descriptor->Flags & NO_MEMORY_YET) != 0)
		return 0;
	for (unsigned level = 0; level < levels; level++) {
		if (__builtin_add_overflow(bytes, level_bytes(descriptor, level), &bytes))
			return SIZE_MAX;
	}
	return bytes;
}

/* ---- making and ending ---- */

static void tell_watcher(CUarray array, bool is_release)
{
	const struct watched_array watched = {array, array->asked_bytes, array->device, array->context};

	watch_note_array(&watched, is_release);
}

static CUresult array_enter(CUarray array)
{
	pthread_mutex_lock(&driver_lock);
	CUresult result = device_charge(array->device, array->charge_bytes, array->asked_bytes);
	if (result == CUDA_SUCCESS) {
		driver_machine.devices[array->device].allocation_count++;
		array->next = arrays;
		arrays = array;
		if (!array->is_imported)
			tell_watcher(array, false);
	}
	pthread_mutex_unlock(&driver_lock);
	return result;
}

static CUresult array_make(CUarray *made, const struct CUarray_st *wanted)
{
	const CUDA_ARRAY3D_DESCRIPTOR *descriptor = &wanted->descriptor;
	int device;
	CUresult result = context_require(&device);

	if (result == CUDA_SUCCESS)
		result = capture_check_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	if (made == NULL || descriptor->Width == 0 || descriptor->NumChannels == 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUarray array = malloc(sizeof(*array));
	if (array == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*array = *wanted;
	array->device = device;
	array->context = context_of_memory();
	array->charge_bytes = sim_round_up(array->asked_bytes, DRIVER_PAGE_BYTES);
	result = array_enter(array);
	if (result == CUDA_SUCCESS)
		*made = array;
	else
		free(array);
	return result;
}

static void array_end(struct CUarray_st **link)
{
	CUarray array = *link;

	*link = array->next;
	device_uncharge(array->device, array->charge_bytes, array->asked_bytes);
	driver_machine.devices[array->device].free_count++;
	free(array);
}

static CUresult array_destroy(CUarray array, bool is_mipmap)
{
	CUresult result = capture_check_unsafe();
	struct CUarray_st **link = &arrays;

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	while (*link != NULL && *link != array)
		link = &(*link)->next;
	bool is_known = *link != NULL && array->is_mipmap == is_mipmap;
	if (is_known) {
		tell_watcher(array, true);
		array_end(link);
	}
	pthread_mutex_unlock(&driver_lock);
	return is_known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void arrays_end(CUcontext context)
{
	struct CUarray_st **link = &arrays;

	while (*link != NULL) {
		if ((*link)->context == context)
			array_end(link);
		else
			link = &(*link)->next;
	}
}

/* ---- arrays ---- */

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	if (descriptor == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	struct CUarray_st wanted = {
		.descriptor = *descriptor,
		.asked_bytes = array_asked_bytes(descriptor, 1),
	};
	return array_make(array, &wanted);
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
	if (descriptor == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR wanted = {
		.Width = descriptor->Width,
		.Height = descriptor->Height,
		.Format = descriptor->Format,
		.NumChannels = descriptor->NumChannels,
	};
	return cuArray3DCreate(array, &wanted);
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array)
{
	if (array == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	*descriptor = array->descriptor;
	return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array)
{
	return array_destroy(array, false);
}

/* ---- mipmapped arrays ---- */

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
				unsigned levels)
{
	CUarray made;

	if (array == NULL || descriptor == NULL || levels == 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct CUarray_st wanted = {
		.descriptor = *descriptor,
		.asked_bytes = array_asked_bytes(descriptor, level_count(descriptor, levels)),
		.is_mipmap = true,
	};
	CUresult result = array_make(&made, &wanted);
	if (result == CUDA_SUCCESS)
		*array = mipmap_of(made);
	return result;
}

CUresult mipmap_import(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	struct CUarray_st wanted = {.descriptor = *descriptor, .is_mipmap = true, .is_imported = true};
	CUarray made;
	CUresult result = array_make(&made, &wanted);

	if (result == CUDA_SUCCESS)
		*array = mipmap_of(made);
	return result;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	return array_destroy(array_of(array), true);
}

/* ---- sparse arrays ---- */

/* What is mapped where nobody can look, since arrays have no contents. */
CUresult cuMemMapArrayAsync(CUarrayMapInfo *parts, unsigned count, CUstream stream)
{
	CUresult result = driver_check_ready();

	if (result == CUDA_SUCCESS && (parts == NULL || count == 0))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}
