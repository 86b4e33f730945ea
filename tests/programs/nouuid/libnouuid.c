/* Another library for LD_PRELOAD: a driver that does not tell who its devices are, and says on stderr that it was
 * asked. */
#include <stdio.h>

int cuDeviceGetUuid(void *uuid, int device);
int cuDeviceGetUuid_v2(void *uuid, int device);

#define NOT_SUPPORTED 801

int cuDeviceGetUuid(void *uuid, int device)
{
	(void)uuid;
	dprintf(2, "who is %d?\n", device);
	return NOT_SUPPORTED;
}

int cuDeviceGetUuid_v2(void *uuid, int device)
{
	return cuDeviceGetUuid(uuid, device);
}
