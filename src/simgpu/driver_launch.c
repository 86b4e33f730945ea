/*
 * Launches, which do nothing, and what is asked about functions before one: attributes and
 * occupancy, answered with the figures of a plain kernel.  Owns no state.  A function handle may be
 * an address of the program's own (the runtime passes such), so it must never be followed.
 */
#include <string.h>

#include "driver_stream.h"

#define PLAIN_KERNEL_REGISTERS          32
#define PLAIN_BLOCKS_PER_MULTIPROCESSOR 2
#define PLAIN_BLOCK_THREADS             256

static CUresult launch(CUstream stream)
{
	CUresult result = code_use(SIM_CODE_kernels);

	if (result == CUDA_SUCCESS)
		capture_note_work(stream, CU_GRAPH_NODE_TYPE_KERNEL);
	return result;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
			unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
			CUstream stream, void **arguments, void **extra)
{
	return launch(stream);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
			  void **extra)
{
	return launch(config->hStream);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
				   unsigned grid_z, unsigned block_x, unsigned block_y,
				   unsigned block_z, unsigned shared_bytes, CUstream stream,
				   void **arguments)
{
	return launch(stream);
}

/* ---- attributes ---- */

static int function_attribute(CUfunction_attribute attribute)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		return 1024;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		return PLAIN_KERNEL_REGISTERS;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		return driver_machine.card->capability;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		return 48 * 1024;
	default:
		return 0;
	}
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	*value = function_attribute(attribute);
	return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
			      CUdevice device)
{
	*value = function_attribute(attribute);
	return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
			      CUdevice device)
{
	return CUDA_SUCCESS;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
	return CUDA_SUCCESS;
}

/* ---- occupancy ---- */

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction function,
						     int block_threads, size_t shared_bytes)
{
	*count = PLAIN_BLOCKS_PER_MULTIPROCESSOR;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, CUfunction function,
							      int block_threads,
							      size_t shared_bytes, unsigned flags)
{
	*count = PLAIN_BLOCKS_PER_MULTIPROCESSOR;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid_blocks, int *block_threads, CUfunction function,
					  CUoccupancyB2DSize shared_of, size_t shared_bytes,
					  int limit)
{
	*grid_blocks = PLAIN_BLOCKS_PER_MULTIPROCESSOR * driver_machine.card->multiprocessor_count;
	*block_threads = PLAIN_BLOCK_THREADS;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function, const CUlaunchConfig *config)
{
	*count = 8;
	return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
				void *address, const cuuint64_t *dimensions,
				const cuuint64_t *strides, const cuuint32_t *box,
				const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
				CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
				CUtensorMapFloatOOBfill fill)
{
	memset(map, 0, sizeof(*map));
	return CUDA_SUCCESS;
}

/* cudaProfiler.h is in no header package. */
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);

CUresult cuProfilerStart(void)
{
	return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
	return CUDA_SUCCESS;
}
