/*
 * The stand-in for libcupti: subscriptions and settings. One subscriber at a time, as with the
 * genuine one; nothing is ever called back about API calls. Owns who the subscriber is.
 */
#include <stdbool.h>

#include "sim_api.h"

enum cupti_result { SUCCESS = 0, MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39 };

#define CUPTI_API_VERSION 26

static bool is_subscribed;

SIM_API(int, cuptiGetVersion, uint32_t *version)
{
	*version = CUPTI_API_VERSION;
	return SUCCESS;
}

SIM_API(int, cuptiGetResultString, int result, const char **text)
{
	switch (result) {
	case SUCCESS:
		*text = "CUPTI_SUCCESS";
		break;
	case MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
		*text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
		break;
	default:
		*text = "not supported by the simulated CUPTI";
	}
	return SUCCESS;
}

SIM_API(int, cuptiGetCallbackName, int domain, uint32_t id, const char **name)
{
	*name = "simulated";
	return SUCCESS;
}

SIM_API(int, cuptiSubscribe, void **subscriber, void *callback, void *user)
{
	static char one_subscriber;

	if (__atomic_exchange_n(&is_subscribed, true, __ATOMIC_ACQ_REL))
		return MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	*subscriber = &one_subscriber;
	return SUCCESS;
}

SIM_API(int, cuptiUnsubscribe, void *subscriber)
{
	__atomic_store_n(&is_subscribed, false, __ATOMIC_RELEASE);
	return SUCCESS;
}

SIM_API(int, cuptiActivityPopExternalCorrelationId, int kind, uint64_t *last_id)
{
	if (last_id)
		*last_id = 0;
	return SUCCESS;
}

SIM_ACCEPT(cuptiActivityEnableCudaEventDeviceTimestamps)
SIM_ACCEPT(cuptiActivityEnableDriverApi)
SIM_ACCEPT(cuptiActivityEnableRuntimeApi)
SIM_ACCEPT(cuptiActivityPushExternalCorrelationId)
SIM_ACCEPT(cuptiActivityRegisterTimestampCallback)
SIM_ACCEPT(cuptiActivitySetAttribute)
SIM_ACCEPT(cuptiEnableCallback)
SIM_ACCEPT(cuptiEnableDomain)
SIM_ACCEPT(cuptiFinalize)
