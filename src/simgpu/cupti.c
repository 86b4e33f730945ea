/*
 * The stand-in for libcupti: subscriptions and activity kinds are accepted, and no activity ever
 * arrives, because the simulated GPU does no work that would take time.
 *
 * Owns nothing. Must answer cuptiActivityGetNextRecord with "no more records": PyTorch's profiler
 * calls it until it does.
 */
#include "sim_api.h"

#include <time.h>

enum cupti_result { CUPTI_SUCCESS = 0, CUPTI_MAX_LIMIT_REACHED = 12 };

#define CUPTI_API_VERSION 26

SIM_API(int, cuptiGetVersion, uint32_t *version)
{
	*version = CUPTI_API_VERSION;
	return CUPTI_SUCCESS;
}

SIM_API(int, cuptiGetResultString, int result, const char **text)
{
	*text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "not supported by the simulated CUPTI";
	return CUPTI_SUCCESS;
}

SIM_API(int, cuptiGetCallbackName, int domain, uint32_t id, const char **name)
{
	*name = "simulated";
	return CUPTI_SUCCESS;
}

SIM_API(int, cuptiSubscribe, void **subscriber, void *callback, void *user)
{
	static char one_subscriber;

	*subscriber = &one_subscriber;
	return CUPTI_SUCCESS;
}

/* Nanoseconds of the same clock that PyTorch's profiler converts to. */
SIM_API(int, cuptiGetTimestamp, uint64_t *timestamp_ns)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*timestamp_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	return CUPTI_SUCCESS;
}

SIM_API(int, cuptiActivityGetNextRecord, uint8_t *buffer, size_t valid_bytes, void **record)
{
	return CUPTI_MAX_LIMIT_REACHED;
}

SIM_API(int, cuptiActivityGetNumDroppedRecords, void *context, uint32_t stream, size_t *dropped)
{
	*dropped = 0;
	return CUPTI_SUCCESS;
}

SIM_API(int, cuptiActivityPopExternalCorrelationId, int kind, uint64_t *last_id)
{
	if (last_id)
		*last_id = 0;
	return CUPTI_SUCCESS;
}

SIM_ACCEPT(cuptiActivityDisable)
SIM_ACCEPT(cuptiActivityEnable)
SIM_ACCEPT(cuptiActivityEnableCudaEventDeviceTimestamps)
SIM_ACCEPT(cuptiActivityEnableDriverApi)
SIM_ACCEPT(cuptiActivityEnableRuntimeApi)
SIM_ACCEPT(cuptiActivityFlushAll)
SIM_ACCEPT(cuptiActivityPushExternalCorrelationId)
SIM_ACCEPT(cuptiActivityRegisterCallbacks)
SIM_ACCEPT(cuptiActivityRegisterTimestampCallback)
SIM_ACCEPT(cuptiActivitySetAttribute)
SIM_ACCEPT(cuptiEnableCallback)
SIM_ACCEPT(cuptiEnableDomain)
SIM_ACCEPT(cuptiFinalize)
SIM_ACCEPT(cuptiUnsubscribe)
