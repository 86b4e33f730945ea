/*
 * The stand-in for libcufft: plans can be made and run, and nothing is transformed.
 *
 * Owns the numbering of plans. The work area is stated as zero, an assumption: real plans need none
 * for small powers of two, and up to a few times the data otherwise.
 */
#include "sim_api.h"
#include "sim_first_use.h"

enum cufft_result { CUFFT_SUCCESS = 0, CUFFT_ALLOC_FAILED = 2, CUFFT_INVALID_VALUE = 4 };

/* 12.0 with CUDA 13, 11.3 with CUDA 12, 10.9 with CUDA 11: what a program built for it takes. */
SIM_API(int, cufftGetVersion, int *version)
{
	*version = SIM_CUDA_MAJOR == 13 ? 12000 : SIM_CUDA_MAJOR == 12 ? 11303 : 10900;
	return CUFFT_SUCCESS;
}

SIM_API(int, cufftCreate, int *plan)
{
	static int last_plan;

	if (sim_first_use(SIM_CODE_cufft) != 0)
		return CUFFT_ALLOC_FAILED;
	*plan = __atomic_add_fetch(&last_plan, 1, __ATOMIC_RELAXED);
	return CUFFT_SUCCESS;
}

SIM_API(int, cufftXtMakePlanMany, int plan, int rank, long long *sizes, long long *input_embed,
	long long input_stride, long long input_distance, int input_type, long long *output_embed,
	long long output_stride, long long output_distance, int output_type, long long batch_count,
	size_t *work_bytes, int execution_type)
{
	if (rank < 1 || rank > 3)
		return CUFFT_INVALID_VALUE;
	*work_bytes = 0;
	return CUFFT_SUCCESS;
}

SIM_ACCEPT(cufftDestroy)
SIM_ACCEPT(cufftSetAutoAllocation)
SIM_ACCEPT(cufftSetStream)
SIM_ACCEPT(cufftSetWorkArea)
SIM_ACCEPT(cufftXtExec)
