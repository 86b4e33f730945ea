/* Cases of driver_calls.c: copies and launches. They leave no event in a program that is not
 * PyTorch's: what they tell is only about its blocks. */
#ifndef TESTS_DRIVER_WORK_H
#define TESTS_DRIVER_WORK_H

static char host_bytes[64];

/* Both ends are the host's: no memory is needed that would be an event. */
#define COPY_CASES(symbol, to_type, from_type, ...)                                              \
	void case_##symbol(void)                                                                 \
	{                                                                                        \
		static char to[sizeof host_bytes];                                               \
		CALL(call_##symbol((to_type)to, (from_type)host_bytes,                           \
				   sizeof to __VA_OPT__(, ) __VA_ARGS__));                       \
		expect_nothing();                                                                \
	}

COPY_CASES(cuMemcpy, CUdeviceptr, CUdeviceptr)
COPY_CASES(cuMemcpy_ptds, CUdeviceptr, CUdeviceptr)
COPY_CASES(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, stream)
COPY_CASES(cuMemcpyAsync_ptsz, CUdeviceptr, CUdeviceptr, stream)
COPY_CASES(cuMemcpyHtoD_v2, CUdeviceptr, const void *)
COPY_CASES(cuMemcpyHtoD_v2_ptds, CUdeviceptr, const void *)
COPY_CASES(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, stream)
COPY_CASES(cuMemcpyHtoDAsync_v2_ptsz, CUdeviceptr, const void *, stream)
COPY_CASES(cuMemcpyDtoH_v2, void *, CUdeviceptr)
COPY_CASES(cuMemcpyDtoH_v2_ptds, void *, CUdeviceptr)
COPY_CASES(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, stream)
COPY_CASES(cuMemcpyDtoHAsync_v2_ptsz, void *, CUdeviceptr, stream)

static CUDA_MEMCPY2D rows_to(void *to)
{
	return (CUDA_MEMCPY2D){
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = host_bytes,
		.srcPitch = 8,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (CUdeviceptr)to,
		.dstPitch = 8,
		.WidthInBytes = 8,
		.Height = 8,
	};
}

#define ROWS_CASES(symbol, ...)                                                 \
	void case_##symbol(void)                                                \
	{                                                                       \
		static char to[sizeof host_bytes];                              \
		CUDA_MEMCPY2D rows_of_bytes = rows_to(to);                      \
		CALL(call_##symbol(&rows_of_bytes __VA_OPT__(, ) __VA_ARGS__)); \
		expect_nothing();                                               \
	}

ROWS_CASES(cuMemcpy2D_v2)
ROWS_CASES(cuMemcpy2D_v2_ptds)
ROWS_CASES(cuMemcpy2DAsync_v2, stream)
ROWS_CASES(cuMemcpy2DAsync_v2_ptsz, stream)

/* Which function is launched is not looked at by the simulated GPU. */
#define LAUNCH_CASES(symbol, ...)                                                              \
	void case_##symbol(void)                                                               \
	{                                                                                      \
		CUfunction function = (CUfunction)host_bytes;                                  \
		CALL(call_##symbol(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL __VA_ARGS__)); \
		expect_nothing();                                                              \
	}
LAUNCH_CASES(cuLaunchKernel, , NULL)
LAUNCH_CASES(cuLaunchKernel_ptsz, , NULL)
LAUNCH_CASES(cuLaunchCooperativeKernel)
LAUNCH_CASES(cuLaunchCooperativeKernel_ptsz)

#define LAUNCH_EX_CASES(symbol)                                                           \
	void case_##symbol(void)                                                          \
	{                                                                                 \
		CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, stream, NULL, 0};          \
		CALL(call_##symbol(&config, (CUfunction)host_bytes, NULL, NULL));         \
		expect_nothing();                                                         \
	}
LAUNCH_EX_CASES(cuLaunchKernelEx)
LAUNCH_EX_CASES(cuLaunchKernelEx_ptsz)

#endif
