/*
 * The stand-in for libcusparse: products of a sparse with a dense operand and triangular solves are
 * accepted, need no buffer, and are not computed.
 *
 * Owns the descriptors. What depends on computed values is not simulated: sparse times sparse, the
 * sum of two sparse matrices (both ask how many elements the result has) and block-sparse calls.
 */
#include "sim_api.h"
#include "sim_first_use.h"

#include <stdlib.h>

enum cusparse_status { CUSPARSE_SUCCESS = 0, CUSPARSE_ALLOC_FAILED = 2, CUSPARSE_INVALID_VALUE = 3 };

/* One library serves CUDA 12 and 13: of 12.6, as the genuine one of CUDA 13. */
SIM_API(int, cusparseGetVersion, void *handle, int *version)
{
	*version = 12602;
	return CUSPARSE_SUCCESS;
}

SIM_API(int, cusparseGetProperty, unsigned part, int *value)
{
	static const int parts[] = {12, 6, 2}; /* major, minor, patch */

	if (part >= sizeof(parts) / sizeof(parts[0]))
		return CUSPARSE_INVALID_VALUE;
	*value = parts[part];
	return CUSPARSE_SUCCESS;
}

/* Handles, matrices, vectors and the state of a solve; only sparse matrices keep something. */
struct sparse_object {
	int64_t rows;
	int64_t columns;
	int64_t nonzero_count;
};

static int object_new(struct sparse_object **object)
{
	*object = calloc(1, sizeof(**object));
	return *object ? CUSPARSE_SUCCESS : CUSPARSE_ALLOC_FAILED;
}

#define CREATE(name)                                      \
	SIM_API(int, name, struct sparse_object **object) \
	{                                                 \
		return object_new(object);                \
	}

#define DESTROY(name)                                    \
	SIM_API(int, name, struct sparse_object *object) \
	{                                                \
		free(object);                            \
		return CUSPARSE_SUCCESS;                 \
	}

SIM_API(int, cusparseCreate, struct sparse_object **handle)
{
	return sim_first_use(SIM_CODE_cusparse) == 0 ? object_new(handle) : CUSPARSE_ALLOC_FAILED;
}

DESTROY(cusparseDestroy)
CREATE(cusparseCreateMatDescr)
DESTROY(cusparseDestroyMatDescr)
CREATE(cusparseSpSM_createDescr)
DESTROY(cusparseSpSM_destroyDescr)
CREATE(cusparseSpSV_createDescr)
DESTROY(cusparseSpSV_destroyDescr)

/* Dense operands: the parameters after the first are not looked at. */
CREATE(cusparseCreateDnMat)
DESTROY(cusparseDestroyDnMat)
CREATE(cusparseCreateDnVec)
DESTROY(cusparseDestroyDnVec)

static int sparse_new(struct sparse_object **object, int64_t rows, int64_t columns,
		      int64_t nonzero_count)
{
	int status = object_new(object);

	if (status == CUSPARSE_SUCCESS) {
		(*object)->rows = rows;
		(*object)->columns = columns;
		(*object)->nonzero_count = nonzero_count;
	}
	return status;
}

SIM_API(int, cusparseCreateCsr, struct sparse_object **object, int64_t rows, int64_t columns,
	int64_t nonzero_count, void *row_offsets, void *column_indices, void *values,
	int offset_type, int index_type, int base, int value_type)
{
	return sparse_new(object, rows, columns, nonzero_count);
}

SIM_API(int, cusparseCreateCoo, struct sparse_object **object, int64_t rows, int64_t columns,
	int64_t nonzero_count, void *row_indices, void *column_indices, void *values,
	int index_type, int base, int value_type)
{
	return sparse_new(object, rows, columns, nonzero_count);
}

DESTROY(cusparseDestroySpMat)

SIM_API(int, cusparseSpMatGetSize, const struct sparse_object *object, int64_t *rows,
	int64_t *columns, int64_t *nonzero_count)
{
	*rows = object->rows;
	*columns = object->columns;
	*nonzero_count = object->nonzero_count;
	return CUSPARSE_SUCCESS;
}

SIM_API(const char *, cusparseGetErrorString, int status)
{
	return status == CUSPARSE_SUCCESS ? "success" : "not supported by the simulated cuSPARSE";
}

/* --- buffers: none, an assumption --- */

static int no_buffer(size_t *bytes)
{
	*bytes = 0;
	return CUSPARSE_SUCCESS;
}

SIM_API(int, cusparseSpMM_bufferSize, void *handle, int op_a, int op_b, const void *alpha, void *a,
	void *b, const void *beta, void *c, int compute_type, int algorithm, size_t *bytes)
{
	return no_buffer(bytes);
}

SIM_API(int, cusparseSpMV_bufferSize, void *handle, int op_a, const void *alpha, void *a, void *x,
	const void *beta, void *y, int compute_type, int algorithm, size_t *bytes)
{
	return no_buffer(bytes);
}

SIM_API(int, cusparseSDDMM_bufferSize, void *handle, int op_a, int op_b, const void *alpha, void *a,
	void *b, const void *beta, void *c, int compute_type, int algorithm, size_t *bytes)
{
	return no_buffer(bytes);
}

SIM_API(int, cusparseSpSM_bufferSize, void *handle, int op_a, int op_b, const void *alpha, void *a,
	void *b, void *c, int compute_type, int algorithm, void *solve, size_t *bytes)
{
	return no_buffer(bytes);
}

SIM_API(int, cusparseSpSV_bufferSize, void *handle, int op_a, const void *alpha, void *a, void *x,
	void *y, int compute_type, int algorithm, void *solve, size_t *bytes)
{
	return no_buffer(bytes);
}

SIM_API(int, cusparseXcoosort_bufferSizeExt, void *handle, int rows, int columns, int nonzero_count,
	const int *row_indices, const int *column_indices, size_t *bytes)
{
	return no_buffer(bytes);
}

SIM_API(int, cusparseXcsrsort_bufferSizeExt, void *handle, int rows, int columns, int nonzero_count,
	const int *row_offsets, const int *column_indices, size_t *bytes)
{
	return no_buffer(bytes);
}

/* --- settings, and work for the device --- */

SIM_ACCEPT(cusparseCreateIdentityPermutation)
SIM_ACCEPT(cusparseCsrSetPointers)
SIM_ACCEPT(cusparseCsrSetStridedBatch)
SIM_ACCEPT(cusparseDnMatSetStridedBatch)
SIM_ACCEPT(cusparseSDDMM)
SIM_ACCEPT(cusparseSDDMM_preprocess)
SIM_ACCEPT(cusparseSetMatDiagType)
SIM_ACCEPT(cusparseSetMatFillMode)
SIM_ACCEPT(cusparseSetMatIndexBase)
SIM_ACCEPT(cusparseSetMatType)
SIM_ACCEPT(cusparseSetPointerMode)
SIM_ACCEPT(cusparseSetStream)
SIM_ACCEPT(cusparseSpMM)
SIM_ACCEPT(cusparseSpMV)
SIM_ACCEPT(cusparseSpMatSetAttribute)
SIM_ACCEPT(cusparseSpSM_analysis)
SIM_ACCEPT(cusparseSpSM_solve)
SIM_ACCEPT(cusparseSpSV_analysis)
SIM_ACCEPT(cusparseSpSV_solve)
SIM_ACCEPT(cusparseXcoo2csr)
SIM_ACCEPT(cusparseXcoosortByRow)
SIM_ACCEPT(cusparseXcsrsort)
