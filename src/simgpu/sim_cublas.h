/*
 * What the stand-ins for cuBLAS and cuBLASLt share. Values are those of NVIDIA's public API
 * reference; only what is acted on has a name here.
 */
#ifndef SIM_CUBLAS_H
#define SIM_CUBLAS_H

#include "sim_api.h"

#ifndef SIM_CUDA_MAJOR
#error "simgpu.mk says which CUDA the library is for"
#endif

/* A version that both wheels accept: major × 10000, no minor release. */
#define CUBLAS_VERSION_NUMBER (SIM_CUDA_MAJOR * 10000)

enum cublas_status {
	CUBLAS_SUCCESS = 0,
	CUBLAS_ALLOC_FAILED = 3,
	CUBLAS_INVALID_VALUE = 7,
	CUBLAS_NOT_SUPPORTED = 15,
};

/* Where the caller's scalars live. */
enum cublas_pointer_mode { POINTER_HOST = 0, POINTER_DEVICE = 1 };

/* libraryPropertyType: 0 major, 1 minor, 2 patch level. */
static inline int cublas_property(int part, int *value)
{
	if (part < 0 || part > 2)
		return CUBLAS_INVALID_VALUE;
	*value = part == 0 ? SIM_CUDA_MAJOR : 0;
	return CUBLAS_SUCCESS;
}

#endif
