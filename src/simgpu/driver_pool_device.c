/*
 * The pools of a device: its default pool, the one that cuMemAllocAsync takes from, and the memory
 * of graphs.  Owns nothing; pools are driver_pool.c's.  Graphs hold no memory of their own here: an
 * allocation under capture comes from the device's pool.
 */
#include "driver.h"

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	CUresult result = driver_check_device(device);

	if (result == CUDA_SUCCESS)
		*pool = driver_machine.devices[device].default_pool;
	return result;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	CUresult result = driver_check_device(device);

	if (result == CUDA_SUCCESS)
		*pool = driver_machine.devices[device].current_pool;
	return result;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	CUresult result = driver_check_device(device);

	if (result != CUDA_SUCCESS)
		return result;
	if (pool == NULL || pool->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	driver_machine.devices[device].current_pool = pool;
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

static bool is_device_location(const CUmemLocation *location)
{
	return location != NULL && location->type == CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
				CUmemAllocationType type)
{
	if (!is_device_location(location))
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuDeviceGetDefaultMemPool(pool, location->id);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	if (!is_device_location(location))
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuDeviceGetMemPool(pool, location->id);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	if (!is_device_location(location))
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuDeviceSetMemPool(location->id, pool);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	CUresult result = driver_check_device(device);

	if (result == CUDA_SUCCESS)
		*(cuuint64_t *)value = 0;
	return result;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	return driver_check_device(device);
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	return driver_check_device(device);
}
