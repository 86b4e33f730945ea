/*
 * Contexts: one primary a device, further ones by cuCtxCreate, and each thread's stack of them.
 * Owns the charge that a context makes on its device.  Its end drops what was obtained in it.
 */
#include <stdlib.h>

#include "driver_stream.h"

#define STACK_DEPTH 64

static struct CUctx_st primaries[DRIVER_DEVICES_MAX];
static __thread CUcontext stack[STACK_DEPTH]; /* of the calling thread; the last one is current */
static __thread int depth;
static uint32_t last_id = DRIVER_DEVICES_MAX; /* of contexts; a primary one has its device's */

static CUcontext current(void)
{
	return depth > 0 ? stack[depth - 1] : NULL;
}

CUcontext context_primary(int device)
{
	primaries[device].device = device;
	primaries[device].id = (uint32_t)device + 1;
	return &primaries[device];
}

CUcontext context_of_memory(void)
{
	CUcontext context = current();
	return context != NULL && context->is_green ? context_primary(context->device) : context;
}

int context_device(void)
{
	CUcontext context = current();
	return context != NULL ? context->device : 0;
}

CUresult context_require(int *device)
{
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (current() == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = current()->device;
	return CUDA_SUCCESS;
}

/* ---- primary contexts ---- */

static CUresult primary_retain(CUdevice device)
{
	CUcontext context = context_primary(device);
	CUresult result = CUDA_SUCCESS;

	if (context->retain_count == 0)
		result = device_charge_overhead(device, driver_machine.context_bytes);
	if (result == CUDA_SUCCESS)
		context->retain_count++;
	return result;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	CUresult result = driver_check_device(device);

	if (result != CUDA_SUCCESS)
		return result;
	if (context == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	result = primary_retain(device);
	pthread_mutex_unlock(&driver_lock);
	if (result == CUDA_SUCCESS)
		*context = context_primary(device);
	return result;
}

static void primary_end(CUdevice device)
{
	memory_end(context_primary(device));
	code_end(context_primary(device));
	device_uncharge_overhead(device, driver_machine.context_bytes);
	context_primary(device)->retain_count = 0;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	CUresult result = driver_check_device(device);

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	CUcontext context = context_primary(device);
	if (context->retain_count == 0)
		result = CUDA_ERROR_INVALID_CONTEXT;
	else if (context->retain_count == 1)
		primary_end(device);
	else
		context->retain_count--;
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	CUresult result = driver_check_device(device);

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	if (context_primary(device)->retain_count > 0)
		primary_end(device);
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
	CUresult result = driver_check_device(device);

	if (result == CUDA_SUCCESS)
		context_primary(device)->flags = flags;
	return result;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *is_active)
{
	CUresult result = driver_check_device(device);

	if (result != CUDA_SUCCESS)
		return result;
	if (flags != NULL)
		*flags = context_primary(device)->flags;
	if (is_active != NULL)
		*is_active = context_primary(device)->retain_count > 0;
	return CUDA_SUCCESS;
}

/* ---- the stack ---- */

CUresult cuCtxGetCurrent(CUcontext *context)
{
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS)
		return result;
	*context = current();
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (depth == 0)
		depth = 1;
	stack[depth - 1] = context;
	if (context == NULL)
		depth--;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
	if (context == NULL || depth == STACK_DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	stack[depth++] = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
	if (depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (context != NULL)
		*context = stack[depth];
	return CUDA_SUCCESS;
}

/* Another context on a device costs what the primary one costs. */
static CUresult context_create(CUcontext *context, unsigned flags, CUdevice device)
{
	CUresult result = driver_check_device(device);

	if (result != CUDA_SUCCESS)
		return result;
	CUcontext created = calloc(1, sizeof(*created));
	if (created == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*created = (struct CUctx_st){.device = device, .retain_count = 1, .flags = flags};
	created->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&driver_lock);
	result = device_charge_overhead(device, driver_machine.context_bytes);
	pthread_mutex_unlock(&driver_lock);
	if (result != CUDA_SUCCESS) {
		free(created);
		return result;
	}
	*context = created;
	return cuCtxPushCurrent(created);
}

#undef cuCtxCreate
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
	return context_create(context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *parameters, int count,
			unsigned flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *parameters, int count,
			unsigned flags, CUdevice device)
{
	return context_create(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned flags,
			CUdevice device)
{
	return context_create(context, flags, device);
}

static bool is_primary(CUcontext context)
{
	return context >= primaries && context < primaries + DRIVER_DEVICES_MAX;
}

CUresult cuCtxDestroy(CUcontext context)
{
	if (context == NULL || is_primary(context) || context->is_green)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (current() == context)
		depth--;
	pthread_mutex_lock(&driver_lock);
	memory_end(context);
	code_end(context);
	device_uncharge_overhead(context->device, driver_machine.context_bytes);
	pthread_mutex_unlock(&driver_lock);
	free(context);
	return CUDA_SUCCESS;
}

/* ---- what a program asks of a context ---- */

CUresult cuCtxGetDevice(CUdevice *device)
{
	return context_require(device);
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
	if (context == NULL)
		return context_require(device);
	*device = context->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
	*version = 3020;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *flags)
{
	int device;
	CUresult result = context_require(&device);

	if (result == CUDA_SUCCESS)
		*flags = current()->flags;
	return result;
}

CUresult cuCtxSetFlags(unsigned flags)
{
	int device;
	CUresult result = context_require(&device);

	if (result == CUDA_SUCCESS)
		current()->flags = flags;
	return result;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
	CUcontext of = context != NULL ? context : current();

	if (of == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	*id = (unsigned long long)(uintptr_t)of;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	const struct CUctx_st *context = context_of_memory();
	size_t stack_bytes = context != NULL ? code_stack(context) : SIM_KIB;

	*value = limit == CU_LIMIT_STACK_SIZE ? stack_bytes : 8 * SIM_MIB;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	CUcontext context = context_of_memory();

	if (limit != CU_LIMIT_STACK_SIZE || context == NULL)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&driver_lock);
	CUresult result = code_set_stack(context, value);
	pthread_mutex_unlock(&driver_lock);
	return result;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	*config = CU_FUNC_CACHE_PREFER_NONE;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	if (least != NULL)
		*least = 0;
	if (greatest != NULL)
		*greatest = -5;
	return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	return peer != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	return peer != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult synchronize(int device)
{
	CUresult result = capture_check_unsafe();

	if (result == CUDA_SUCCESS)
		result = streams_wait(device);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	streams_finish(device);
	pools_settle();
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	int device;
	CUresult result = context_require(&device);

	return result == CUDA_SUCCESS ? synchronize(device) : result;
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
	return synchronize(context != NULL ? context->device : context_device());
}
