/*
 * The stand-in for libnvToolsExt.so.1, which PyTorch up to 2.2 links: ranges for a profiler's time line.
 * Owns nothing: there is no profiler, and the calls take no memory.
 */
#include "sim_api.h"

SIM_API(void, nvtxMarkA, const char *message)
{
}

SIM_API(int, nvtxRangePushA, const char *message)
{
	return 0; /* the depth */
}

SIM_API(int, nvtxRangePop, void)
{
	return 0;
}

SIM_API(uint64_t, nvtxRangeStartA, const char *message)
{
	return 1;
}

SIM_API(void, nvtxRangeEnd, uint64_t range)
{
}
