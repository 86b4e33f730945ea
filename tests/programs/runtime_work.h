/* Cases of runtime_calls.c: copies and launches, as in driver_work.h. */
#ifndef TESTS_RUNTIME_WORK_H
#define TESTS_RUNTIME_WORK_H

static char host_bytes[64];

/* Both ends are the host's: no memory is needed that would be an event. */
#define COPY_CASES(symbol, ...)                                                               \
	void case_##symbol(void)                                                              \
	{                                                                                     \
		static char to[sizeof host_bytes];                                            \
		CALL(RT(symbol)(to, host_bytes, sizeof to, cudaMemcpyDefault __VA_OPT__(, )   \
					__VA_ARGS__));                                        \
		expect_nothing();                                                             \
	}
COPY_CASES(cudaMemcpy)
COPY_CASES(cudaMemcpy_ptds)
COPY_CASES(cudaMemcpyAsync, stream)
COPY_CASES(cudaMemcpyAsync_ptsz, stream)

#define ROWS_CASES(symbol, ...)                                                             \
	void case_##symbol(void)                                                            \
	{                                                                                   \
		static char to[sizeof host_bytes];                                          \
		CALL(RT(symbol)(to, 8, host_bytes, 8, 8, 8, cudaMemcpyDefault __VA_OPT__(, ) \
					__VA_ARGS__));                                      \
		expect_nothing();                                                           \
	}
ROWS_CASES(cudaMemcpy2D)
ROWS_CASES(cudaMemcpy2D_ptds)
ROWS_CASES(cudaMemcpy2DAsync, stream)
ROWS_CASES(cudaMemcpy2DAsync_ptsz, stream)

/* Which function is launched is not looked at by the simulated GPU. */
#define LAUNCH_CASES(symbol)                                                                  \
	void case_##symbol(void)                                                              \
	{                                                                                     \
		const dim3 one = {1, 1, 1};                                                   \
		CALL(RT(symbol)(host_bytes, one, one, NULL, 0, stream));                      \
		expect_nothing();                                                             \
	}
LAUNCH_CASES(cudaLaunchKernel)
LAUNCH_CASES(cudaLaunchKernel_ptsz)
LAUNCH_CASES(cudaLaunchCooperativeKernel)
LAUNCH_CASES(cudaLaunchCooperativeKernel_ptsz)

#define LAUNCH_EX_CASES(symbol)                                                               \
	void case_##symbol(void)                                                              \
	{                                                                                     \
		cudaLaunchConfig_t config = {.gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}};    \
		CALL(RT(symbol)(&config, host_bytes, NULL));                                  \
		expect_nothing();                                                             \
	}
LAUNCH_EX_CASES(cudaLaunchKernelExC)
LAUNCH_EX_CASES(cudaLaunchKernelExC_ptsz)

#endif
