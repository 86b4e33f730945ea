/*
 * The stand-in for libcusolver: factorisations state a workspace, report success and are not
 * computed.
 *
 * Owns the handles. The one thing a call writes is its `info`, a word of device memory for every
 * matrix: zero, success. PyTorch reads it back, and would take what the block held before for an
 * error. Every workspace is stated as one matrix of the problem: an assumption, the real ones are
 * not published. PyTorch allocates what is stated by its own allocator.
 */
#include "sim_api.h"

#include "sim_driver.h"
#include "sim_first_use.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>

enum cusolver_status { CUSOLVER_SUCCESS = 0, CUSOLVER_ALLOC_FAILED = 2 };

struct cusolver_handle {
	void *stream;
};

/* 12.0 with CUDA 13, 11.7 with CUDA 11 and 12: what a program built for it takes. */
SIM_API(int, cusolverGetVersion, int *version)
{
	*version = SIM_CUDA_MAJOR == 13 ? 12004 : 11703;
	return CUSOLVER_SUCCESS;
}

SIM_API(int, cusolverDnCreate, struct cusolver_handle **handle)
{
	if (sim_first_use(SIM_CODE_cusolver) != 0)
		return CUSOLVER_ALLOC_FAILED;
	*handle = calloc(1, sizeof(**handle));
	return *handle ? CUSOLVER_SUCCESS : CUSOLVER_ALLOC_FAILED;
}

SIM_API(int, cusolverDnDestroy, struct cusolver_handle *handle)
{
	free(handle);
	return CUSOLVER_SUCCESS;
}

SIM_API(int, cusolverDnSetStream, struct cusolver_handle *handle, void *stream)
{
	handle->stream = stream;
	return CUSOLVER_SUCCESS;
}

/* Parameter objects: of these nothing is ever asked. */
static int make_parameters(void **object)
{
	static char nothing_inside;

	*object = &nothing_inside;
	return CUSOLVER_SUCCESS;
}

#define PARAMETERS(create, destroy)             \
	SIM_API(int, create, void **object)     \
	{                                       \
		return make_parameters(object); \
	}                                       \
	SIM_ACCEPT(destroy)

PARAMETERS(cusolverDnCreateGesvdjInfo, cusolverDnDestroyGesvdjInfo)
PARAMETERS(cusolverDnCreateParams, cusolverDnDestroyParams)
PARAMETERS(cusolverDnCreateSyevjInfo, cusolverDnDestroySyevjInfo)
SIM_ACCEPT(cusolverDnXgesvdjSetMaxSweeps)
SIM_ACCEPT(cusolverDnXgesvdjSetSortEig)
SIM_ACCEPT(cusolverDnXgesvdjSetTolerance)

/* --- the work ---
 *
 * Of a call's parameters only two matter: where its `info` is, and for a batch how many there are.
 * They are found by position, the handle being number 1: in the x86-64 calling convention every
 * parameter that is an integer or a pointer takes one slot, and these calls have no others.
 */

static void *parameter_at(va_list *parameters, int position)
{
	for (int i = 2; i < position; i++)
		(void)va_arg(*parameters, void *);
	return va_arg(*parameters, void *);
}

#define SOLVE(name, info_position)                                                 \
	SIM_API(int, cusolverDn##name, struct cusolver_handle *handle, ...)        \
	{                                                                          \
		va_list parameters;                                                \
		va_start(parameters, handle);                                      \
		sim_driver_zero_words(parameter_at(&parameters, info_position), 1, \
				      handle->stream);                             \
		va_end(parameters);                                                \
		return CUSOLVER_SUCCESS;                                           \
	}

/* The number of matrices is the parameter `count_after` places behind `info`. */
#define SOLVE_BATCH(name, info_position, count_after)                                  \
	SIM_API(int, cusolverDn##name, struct cusolver_handle *handle, ...)            \
	{                                                                              \
		va_list parameters;                                                    \
		va_start(parameters, handle);                                          \
		void *info = parameter_at(&parameters, info_position);                 \
		int count = (int)(intptr_t)parameter_at(&parameters, 1 + count_after); \
		sim_driver_zero_words(info, (size_t)count, handle->stream);            \
		va_end(parameters);                                                    \
		return CUSOLVER_SUCCESS;                                               \
	}

/* --- workspaces: in elements by the typed calls, in bytes by the newer ones --- */

static int state_elements(long long rows, long long columns, int *elements)
{
	long long wanted = rows * columns;

	*elements = wanted < INT_MAX ? (int)wanted : INT_MAX;
	return CUSOLVER_SUCCESS;
}

#define LARGEST_ELEMENT_BYTES 16 /* complex double: the type is not looked at */

static int state_bytes(int64_t rows, int64_t columns, size_t *device_bytes, size_t *host_bytes)
{
	*device_bytes = (size_t)rows * (size_t)columns * LARGEST_ELEMENT_BYTES;
	*host_bytes = 0;
	return CUSOLVER_SUCCESS;
}

#define WORKSPACE(name, rows, columns, ...)                                    \
	SIM_API(int, cusolverDn##name##_bufferSize, void *handle, __VA_ARGS__) \
	{                                                                      \
		return state_elements(rows, columns, elements);                \
	}

/* --- the typed calls --- */

#define EVERY_TYPE(T)                                                                            \
	SOLVE(T##geqrf, 9)                                                                       \
	SOLVE(T##gesvd, 16)                                                                      \
	SOLVE(T##gesvdj, 15)                                                                     \
	SOLVE(T##getrf, 8)                                                                       \
	SOLVE(T##getrs, 10)                                                                      \
	SOLVE(T##potrf, 8)                                                                       \
	SOLVE(T##potrs, 9)                                                                       \
	SOLVE(T##sytrf, 9)                                                                       \
	SOLVE_BATCH(T##gesvdaStridedBatched, 19, 2)                                              \
	SOLVE_BATCH(T##gesvdjBatched, 14, 2)                                                     \
	SOLVE_BATCH(T##potrfBatched, 6, 1)                                                       \
	SOLVE(T##potrsBatched, 9)                                                                \
	WORKSPACE(T##geqrf, m, n, int m, int n, void *a, int a_stride, int *elements)            \
	WORKSPACE(T##gesvd, m, n, int m, int n, int *elements)                                   \
	WORKSPACE(T##getrf, m, n, int m, int n, void *a, int a_stride, int *elements)            \
	WORKSPACE(T##potrf, n, n, int uplo, int n, void *a, int a_stride, int *elements)         \
	WORKSPACE(T##sytrf, n, n, int n, void *a, int a_stride, int *elements)                   \
	WORKSPACE(T##gesvdj, m, n, int job, int economy, int m, int n, void *a, int a_stride,    \
		  void *s, void *u, int u_stride, void *v, int v_stride, int *elements,          \
		  void *parameters)                                                              \
	WORKSPACE(T##gesvdjBatched, m, n, int job, int m, int n, void *a, int a_stride, void *s, \
		  void *u, int u_stride, void *v, int v_stride, int *elements, void *parameters, \
		  int batch_count)                                                               \
	WORKSPACE(T##gesvdaStridedBatched, m, n, int job, int rank, int m, int n, void *a,       \
		  int a_stride, long long a_step, void *s, long long s_step, void *u,            \
		  int u_stride, long long u_step, void *v, int v_stride, long long v_step,       \
		  int *elements, int batch_count)

EVERY_TYPE(S)
EVERY_TYPE(D)
EVERY_TYPE(C)
EVERY_TYPE(Z)

/* Real and complex matrices have different names for the same thing. */
#define EIGENVALUES(name)                                                                    \
	SOLVE(name##evd, 10)                                                                 \
	SOLVE(name##evj, 10)                                                                 \
	SOLVE_BATCH(name##evjBatched, 10, 2)                                                 \
	WORKSPACE(name##evd, n, n, int job, int uplo, int n, void *a, int a_stride, void *w, \
		  int *elements)                                                             \
	WORKSPACE(name##evj, n, n, int job, int uplo, int n, void *a, int a_stride, void *w, \
		  int *elements, void *parameters)                                           \
	WORKSPACE(name##evjBatched, n, n, int job, int uplo, int n, void *a, int a_stride,   \
		  void *w, int *elements, void *parameters, int batch_count)

EIGENVALUES(Ssy)
EIGENVALUES(Dsy)
EIGENVALUES(Che)
EIGENVALUES(Zhe)

#define ORTHOGONAL(generate, multiply)                                                   \
	SOLVE(generate, 10)                                                              \
	SOLVE(multiply, 14)                                                              \
	WORKSPACE(generate, m, n, int m, int n, int k, void *a, int a_stride, void *tau, \
		  int *elements)                                                         \
	WORKSPACE(multiply, m, n, int side, int transpose, int m, int n, int k, void *a, \
		  int a_stride, void *tau, void *c, int c_stride, int *elements)

ORTHOGONAL(Sorgqr, Sormqr)
ORTHOGONAL(Dorgqr, Dormqr)
ORTHOGONAL(Cungqr, Cunmqr)
ORTHOGONAL(Zungqr, Zunmqr)

/* --- the calls that take the type as a parameter --- */

SOLVE(Xgeev, 22)
SOLVE(Xgeqrf, 15)
SOLVE(Xpotrf, 13)
SOLVE(Xpotrs, 12)
SOLVE(Xsyevd, 16)
SOLVE(Xsytrs, 16)
SOLVE_BATCH(XsyevBatched, 16, 1)

SIM_API(int, cusolverDnXgeev_bufferSize, void *handle, void *parameters, int left, int right,
	int64_t n, int a_type, void *a, int64_t a_stride, int w_type, void *w, int left_type,
	void *left_vectors, int64_t left_stride, int right_type, void *right_vectors,
	int64_t right_stride, int compute_type, size_t *device_bytes, size_t *host_bytes)
{
	return state_bytes(n, n, device_bytes, host_bytes);
}

SIM_API(int, cusolverDnXgeqrf_bufferSize, void *handle, void *parameters, int64_t m, int64_t n,
	int a_type, void *a, int64_t a_stride, int tau_type, void *tau, int compute_type,
	size_t *device_bytes, size_t *host_bytes)
{
	return state_bytes(m, n, device_bytes, host_bytes);
}

SIM_API(int, cusolverDnXpotrf_bufferSize, void *handle, void *parameters, int uplo, int64_t n,
	int a_type, void *a, int64_t a_stride, int compute_type, size_t *device_bytes,
	size_t *host_bytes)
{
	return state_bytes(n, n, device_bytes, host_bytes);
}

SIM_API(int, cusolverDnXsyevd_bufferSize, void *handle, void *parameters, int job, int uplo,
	int64_t n, int a_type, void *a, int64_t a_stride, int w_type, void *w, int compute_type,
	size_t *device_bytes, size_t *host_bytes)
{
	return state_bytes(n, n, device_bytes, host_bytes);
}

SIM_API(int, cusolverDnXsyevBatched_bufferSize, void *handle, void *parameters, int job, int uplo,
	int64_t n, int a_type, void *a, int64_t a_stride, int w_type, void *w, int compute_type,
	size_t *device_bytes, size_t *host_bytes, int64_t batch_count)
{
	return state_bytes(n, n, device_bytes, host_bytes);
}

SIM_API(int, cusolverDnXsytrs_bufferSize, void *handle, int uplo, int64_t n, int64_t columns,
	int a_type, void *a, int64_t a_stride, const int64_t *pivots, int b_type, void *b,
	int64_t b_stride, size_t *device_bytes, size_t *host_bytes)
{
	return state_bytes(n, columns, device_bytes, host_bytes);
}
