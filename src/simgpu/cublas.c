/*
 * The stand-in for libcublas: handles keep their settings, products are accepted and nothing is
 * computed.
 *
 * Owns the handle. A scalar that a call returns to the host (a norm, a dot product) is zero, and a
 * factorisation reports no error; nothing else is written, neither here nor on the device. cuBLAS
 * allocates nothing here: PyTorch gives every handle a workspace of its own, of a size that it
 * chooses by the card.
 */
#include "sim_cublas.h"

#include "sim_driver.h"
#include "sim_first_use.h"

#include <stdlib.h>
#include <string.h>

struct cublas_handle {
	void *stream;
	int pointer_mode;
	int math_mode;
	int atomics_mode;
	int sm_count_target;
};

SIM_API(int, cublasCreate_v2, struct cublas_handle **handle)
{
	if (sim_first_use(SIM_CODE_cublas) != 0)
		return CUBLAS_ALLOC_FAILED;
	*handle = calloc(1, sizeof(**handle));
	return *handle ? CUBLAS_SUCCESS : CUBLAS_ALLOC_FAILED;
}

SIM_API(int, cublasDestroy_v2, struct cublas_handle *handle)
{
	free(handle);
	return CUBLAS_SUCCESS;
}

SIM_API(int, cublasGetVersion_v2, struct cublas_handle *handle, int *version)
{
	*version = CUBLAS_VERSION_NUMBER;
	return CUBLAS_SUCCESS;
}

SIM_API(int, cublasGetProperty, int part, int *value)
{
	return cublas_property(part, value);
}

SIM_API(const char *, cublasGetStatusName, int status)
{
	return status == CUBLAS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_NOT_SUPPORTED";
}

SIM_API(const char *, cublasGetStatusString, int status)
{
	return status == CUBLAS_SUCCESS ? "success" : "not supported by the simulated cuBLAS";
}

#define SETTING(name, type, member)                                              \
	SIM_API(int, cublasSet##name, struct cublas_handle *handle, type value)  \
	{                                                                        \
		handle->member = value;                                          \
		return CUBLAS_SUCCESS;                                           \
	}                                                                        \
	SIM_API(int, cublasGet##name, struct cublas_handle *handle, type *value) \
	{                                                                        \
		*value = handle->member;                                         \
		return CUBLAS_SUCCESS;                                           \
	}

SETTING(AtomicsMode, int, atomics_mode)
SETTING(MathMode, int, math_mode)
SETTING(PointerMode_v2, int, pointer_mode)
SETTING(SmCountTarget, int, sm_count_target)
SETTING(Stream_v2, void *, stream)

SIM_ACCEPT(cublasSetWorkspace_v2)

/* --- work for the device --- */

#define ACCEPT_REAL(operation)         \
	SIM_ACCEPT(cublasS##operation) \
	SIM_ACCEPT(cublasD##operation)

#define ACCEPT_COMPLEX(operation)      \
	SIM_ACCEPT(cublasC##operation) \
	SIM_ACCEPT(cublasZ##operation)

#define ACCEPT_ALL(operation) ACCEPT_REAL(operation) ACCEPT_COMPLEX(operation)

ACCEPT_ALL(axpy_v2)
ACCEPT_ALL(copy_v2)
ACCEPT_ALL(gemmBatched)
ACCEPT_ALL(gemmStridedBatched)
ACCEPT_ALL(gemm_v2)
ACCEPT_ALL(gemv_v2)
ACCEPT_ALL(rot_v2)
ACCEPT_ALL(scal_v2)
ACCEPT_ALL(swap_v2)
ACCEPT_ALL(symm_v2)
ACCEPT_ALL(symv_v2)
ACCEPT_ALL(syr2_v2)
ACCEPT_ALL(syr2k_v2)
ACCEPT_ALL(syr_v2)
ACCEPT_ALL(syrk_v2)
ACCEPT_ALL(trmm_v2)
ACCEPT_ALL(trmv_v2)
ACCEPT_ALL(trsmBatched)
ACCEPT_ALL(trsm_v2)
ACCEPT_ALL(trsv_v2)
ACCEPT_REAL(ger_v2)
ACCEPT_REAL(rotm_v2)
ACCEPT_COMPLEX(gerc_v2)
ACCEPT_COMPLEX(geru_v2)
ACCEPT_COMPLEX(hemm_v2)
ACCEPT_COMPLEX(hemv_v2)
ACCEPT_COMPLEX(her2_v2)
ACCEPT_COMPLEX(her2k_v2)
ACCEPT_COMPLEX(her_v2)
ACCEPT_COMPLEX(herk_v2)
SIM_ACCEPT(cublasCsrot_v2)
SIM_ACCEPT(cublasCsscal_v2)
SIM_ACCEPT(cublasZdrot_v2)
SIM_ACCEPT(cublasZdscal_v2)
SIM_ACCEPT(cublasGemmBatchedEx)
SIM_ACCEPT(cublasGemmEx)
SIM_ACCEPT(cublasGemmStridedBatchedEx)
SIM_ACCEPT(cublasSgemmEx)
SIM_ACCEPT(cublasSetMatrixAsync)
SIM_ACCEPT(cublasSetVectorAsync)

/* --- results for the host --- */

static int zero_result(const struct cublas_handle *handle, void *result, size_t bytes)
{
	if (handle->pointer_mode == POINTER_HOST)
		memset(result, 0, bytes);
	return CUBLAS_SUCCESS;
}

#define SCALAR_OF_ONE(name, bytes)                                                             \
	SIM_API(int, name, struct cublas_handle *handle, int count, const void *x, int x_step, \
		void *result)                                                                  \
	{                                                                                      \
		return zero_result(handle, result, bytes);                                     \
	}

#define SCALAR_OF_TWO(name, bytes)                                                             \
	SIM_API(int, name, struct cublas_handle *handle, int count, const void *x, int x_step, \
		const void *y, int y_step, void *result)                                       \
	{                                                                                      \
		return zero_result(handle, result, bytes);                                     \
	}

SCALAR_OF_ONE(cublasSasum_v2, 4)
SCALAR_OF_ONE(cublasDasum_v2, 8)
SCALAR_OF_ONE(cublasScasum_v2, 4)
SCALAR_OF_ONE(cublasDzasum_v2, 8)
SCALAR_OF_ONE(cublasSnrm2_v2, 4)
SCALAR_OF_ONE(cublasDnrm2_v2, 8)
SCALAR_OF_ONE(cublasScnrm2_v2, 4)
SCALAR_OF_ONE(cublasDznrm2_v2, 8)
SCALAR_OF_TWO(cublasSdot_v2, 4)
SCALAR_OF_TWO(cublasDdot_v2, 8)
SCALAR_OF_TWO(cublasCdotc_v2, 8)
SCALAR_OF_TWO(cublasCdotu_v2, 8)
SCALAR_OF_TWO(cublasZdotc_v2, 16)
SCALAR_OF_TWO(cublasZdotu_v2, 16)

/* cudaDataType → bytes, as far as a dot product has such a result */
static size_t result_bytes(int type)
{
	enum {
		REAL_HALF = 2,
		REAL_DOUBLE = 1,
		COMPLEX_FLOAT = 4,
		COMPLEX_DOUBLE = 5,
		BFLOAT16 = 14
	};

	switch (type) {
	case REAL_HALF:
	case BFLOAT16:
		return 2;
	case REAL_DOUBLE:
	case COMPLEX_FLOAT:
		return 8;
	case COMPLEX_DOUBLE:
		return 16;
	default:
		return 4;
	}
}

SIM_API(int, cublasDotEx, struct cublas_handle *handle, int count, const void *x, int x_type,
	int x_step, const void *y, int y_type, int y_step, void *result, int result_type,
	int execution_type)
{
	return zero_result(handle, result, result_bytes(result_type));
}

/* An index counts from 1; with every element zero the first is the largest and the smallest. */
static int first_index(const struct cublas_handle *handle, int count, int *result)
{
	if (handle->pointer_mode == POINTER_HOST)
		*result = count > 0;
	return CUBLAS_SUCCESS;
}

#define INDEX_OF_ONE(name)                                                                     \
	SIM_API(int, name, struct cublas_handle *handle, int count, const void *x, int x_step, \
		int *result)                                                                   \
	{                                                                                      \
		return first_index(handle, count, result);                                     \
	}

INDEX_OF_ONE(cublasIsamax_v2)
INDEX_OF_ONE(cublasIdamax_v2)
INDEX_OF_ONE(cublasIcamax_v2)
INDEX_OF_ONE(cublasIzamax_v2)
INDEX_OF_ONE(cublasIsamin_v2)
INDEX_OF_ONE(cublasIdamin_v2)
INDEX_OF_ONE(cublasIcamin_v2)
INDEX_OF_ONE(cublasIzamin_v2)

/* Copies to the host: the columns read as zeros, what lies between them stays. */
SIM_API(int, cublasGetMatrixAsync, int rows, int columns, int element_bytes, const void *device,
	int device_stride, void *host, int host_stride, void *stream)
{
	size_t column_bytes = (size_t)rows * (size_t)element_bytes;
	size_t stride_bytes = (size_t)host_stride * (size_t)element_bytes;

	for (int i = 0; i < columns; i++)
		memset((char *)host + (size_t)i * stride_bytes, 0, column_bytes);
	return CUBLAS_SUCCESS;
}

SIM_API(int, cublasGetVectorAsync, int count, int element_bytes, const void *device,
	int device_step, void *host, int host_step, void *stream)
{
	return cublasGetMatrixAsync(1, count, element_bytes, device, device_step, host, host_step,
				    stream);
}

/*
 * The `info` of an LU factorisation lies in device memory, one word a matrix, and says which pivot
 * is zero: none. That of the other calls is the host's and says which argument was wrong: none.
 */
#define FACTORISATION(type)                                                                       \
	SIM_API(int, cublas##type##getrfBatched, struct cublas_handle *handle, int n, void *a,    \
		int a_stride, int *pivots, int *device_info, int batch_count)                     \
	{                                                                                         \
		sim_driver_zero_words(device_info, (size_t)batch_count, handle->stream);          \
		return CUBLAS_SUCCESS;                                                            \
	}                                                                                         \
	SIM_API(int, cublas##type##geqrfBatched, void *handle, int m, int n, void *a,             \
		int a_stride, void *tau, int *info, int batch_count)                              \
	{                                                                                         \
		*info = 0;                                                                        \
		return CUBLAS_SUCCESS;                                                            \
	}                                                                                         \
	SIM_API(int, cublas##type##getrsBatched, void *handle, int transpose, int n, int columns, \
		void *a, int a_stride, const int *pivots, void *b, int b_stride, int *info,       \
		int batch_count)                                                                  \
	{                                                                                         \
		*info = 0;                                                                        \
		return CUBLAS_SUCCESS;                                                            \
	}                                                                                         \
	SIM_API(int, cublas##type##gelsBatched, void *handle, int transpose, int m, int n,        \
		int columns, void *a, int a_stride, void *c, int c_stride, int *info,             \
		int *device_info, int batch_count)                                                \
	{                                                                                         \
		*info = 0;                                                                        \
		return CUBLAS_SUCCESS;                                                            \
	}

FACTORISATION(S)
FACTORISATION(D)
FACTORISATION(C)
FACTORISATION(Z)
