/* Another library for LD_PRELOAD: a driver that does not tell who its devices are. */
int cuDeviceGetUuid(void *uuid, int device);
int cuDeviceGetUuid_v2(void *uuid, int device);

#define NOT_SUPPORTED 801

int cuDeviceGetUuid(void *uuid, int device)
{
	(void)uuid;
	(void)device;
	return NOT_SUPPORTED;
}

int cuDeviceGetUuid_v2(void *uuid, int device)
{
	return cuDeviceGetUuid(uuid, device);
}
