/*
 * The stand-in for libcusolver: factorisations are accepted and state a workspace, and nothing is
 * computed. The `info` of a call lies in device memory and is left alone; it reads as zero, success.
 *
 * Owns the handles, which hold nothing. Every workspace is stated as one matrix of the problem: an
 * assumption, the real ones are not published. PyTorch allocates what is stated by its allocator.
 */
#include "sim_api.h"

#include <limits.h>

enum cusolver_status { CUSOLVER_SUCCESS = 0 };

/* An address for handles and parameter objects, of which nothing is ever asked. */
static char nothing_inside;

static int make_nothing(void **object)
{
    *object = &nothing_inside;
    return CUSOLVER_SUCCESS;
}

#define CREATE_AND_DESTROY(create, destroy)                                                        \
    SIM_API(int, create, void **object)                                                            \
    {                                                                                              \
        return make_nothing(object);                                                               \
    }                                                                                              \
    SIM_ACCEPT(destroy)

CREATE_AND_DESTROY(cusolverDnCreate, cusolverDnDestroy)
CREATE_AND_DESTROY(cusolverDnCreateGesvdjInfo, cusolverDnDestroyGesvdjInfo)
CREATE_AND_DESTROY(cusolverDnCreateParams, cusolverDnDestroyParams)
CREATE_AND_DESTROY(cusolverDnCreateSyevjInfo, cusolverDnDestroySyevjInfo)
SIM_ACCEPT(cusolverDnSetStream)
SIM_ACCEPT(cusolverDnXgesvdjSetMaxSweeps)
SIM_ACCEPT(cusolverDnXgesvdjSetSortEig)
SIM_ACCEPT(cusolverDnXgesvdjSetTolerance)

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

/* A typed call: its work is accepted, its question about a workspace answered. */
#define TYPED(name, rows, columns, ...)                                                            \
    SIM_ACCEPT(cusolverDn##name)                                                                   \
    SIM_API(int, cusolverDn##name##_bufferSize, void *handle, __VA_ARGS__)                         \
    {                                                                                              \
        return state_elements(rows, columns, elements);                                            \
    }

#define EVERY_TYPE(T)                                                                              \
    SIM_ACCEPT(cusolverDn##T##getrs)                                                               \
    SIM_ACCEPT(cusolverDn##T##potrfBatched)                                                        \
    SIM_ACCEPT(cusolverDn##T##potrs)                                                               \
    SIM_ACCEPT(cusolverDn##T##potrsBatched)                                                        \
    TYPED(T##geqrf, m, n, int m, int n, void *a, int a_stride, int *elements)                      \
    TYPED(T##gesvd, m, n, int m, int n, int *elements)                                             \
    TYPED(T##getrf, m, n, int m, int n, void *a, int a_stride, int *elements)                      \
    TYPED(T##potrf, n, n, int uplo, int n, void *a, int a_stride, int *elements)                   \
    TYPED(T##sytrf, n, n, int n, void *a, int a_stride, int *elements)                             \
    TYPED(T##gesvdj, m, n, int job, int economy, int m, int n, void *a, int a_stride, void *s,     \
          void *u, int u_stride, void *v, int v_stride, int *elements, void *parameters)           \
    TYPED(T##gesvdjBatched, m, n, int job, int m, int n, void *a, int a_stride, void *s, void *u,  \
          int u_stride, void *v, int v_stride, int *elements, void *parameters, int batch_count)   \
    TYPED(T##gesvdaStridedBatched, m, n, int job, int rank, int m, int n, void *a, int a_stride,   \
          long long a_step, void *s, long long s_step, void *u, int u_stride, long long u_step,    \
          void *v, int v_stride, long long v_step, int *elements, int batch_count)

EVERY_TYPE(S)
EVERY_TYPE(D)
EVERY_TYPE(C)
EVERY_TYPE(Z)

/* Real and complex matrices have different names for the same thing. */
#define EIGENVALUES(name)                                                                          \
    TYPED(name##evd, n, n, int job, int uplo, int n, void *a, int a_stride, void *w,               \
          int *elements)                                                                           \
    TYPED(name##evj, n, n, int job, int uplo, int n, void *a, int a_stride, void *w,               \
          int *elements, void *parameters)                                                         \
    TYPED(name##evjBatched, n, n, int job, int uplo, int n, void *a, int a_stride, void *w,        \
          int *elements, void *parameters, int batch_count)

EIGENVALUES(Ssy)
EIGENVALUES(Dsy)
EIGENVALUES(Che)
EIGENVALUES(Zhe)

#define ORTHOGONAL(generate, multiply)                                                             \
    TYPED(generate, m, n, int m, int n, int k, void *a, int a_stride, void *tau, int *elements)    \
    TYPED(multiply, m, n, int side, int transpose, int m, int n, int k, void *a, int a_stride,     \
          void *tau, void *c, int c_stride, int *elements)

ORTHOGONAL(Sorgqr, Sormqr)
ORTHOGONAL(Dorgqr, Dormqr)
ORTHOGONAL(Cungqr, Cunmqr)
ORTHOGONAL(Zungqr, Zunmqr)

SIM_ACCEPT(cusolverDnXgeev)
SIM_ACCEPT(cusolverDnXgeqrf)
SIM_ACCEPT(cusolverDnXpotrf)
SIM_ACCEPT(cusolverDnXpotrs)
SIM_ACCEPT(cusolverDnXsyevBatched)
SIM_ACCEPT(cusolverDnXsyevd)
SIM_ACCEPT(cusolverDnXsytrs)

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
