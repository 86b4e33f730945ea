/*
 * What the files of the stand-in libcudart share.  One source is compiled against the headers of
 * CUDA 12.8 and of 13 and gives libcudart.so.12 and libcudart.so.13; with those of 12.8 and
 * RUNTIME_VERSION 11070 it gives libcudart.so.11.0, in which a few entries are different.
 *
 * The runtime keeps no memory and no streams of its own: it calls the driver, and finds it the way
 * the real one does (runtime_driver.c).  Numbers of CUresult and cudaError_t are the same.
 */
#ifndef SIMGPU_RUNTIME_H
#define SIMGPU_RUNTIME_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "sim.h"

/* 12.x headers map these names to the _v2 that they export; here both are written out. */
#undef cudaGetDeviceProperties
#undef cudaStreamGetCaptureInfo

#ifndef RUNTIME_VERSION
#define RUNTIME_VERSION CUDART_VERSION /* what it says it is */
#endif

/* The newest spelling of an entry whose arguments changed that these headers can call. */
#define RUNTIME_CAPTURE_INFO_VERSION (CUDART_VERSION >= 13000 ? 12030 : 12000)

#define RUNTIME_ADD_NODE_VERSION     (CUDART_VERSION >= 13000 ? 12030 : 12020)
#if CUDART_VERSION >= 13000
#define RUNTIME_DRIVER_ENTRIES_13(X) X(cuMemGetDefaultMemPool, 0) X(cuMemGetMemPool, 0) X(cuMemSetMemPool, 0)
#else
#define RUNTIME_DRIVER_ENTRIES_13(X)
#endif

/* X(driver entry, version asked for); 0 stands for the version of this runtime. */
#define RUNTIME_DRIVER_ENTRIES(X)                               \
	X(cuInit, 0)                                            \
	X(cuDriverGetVersion, 0)                                \
	X(cuDeviceGetCount, 0)                                  \
	X(cuDeviceGetName, 0)                                   \
	X(cuDeviceGetUuid, 0)                                   \
	X(cuDeviceTotalMem, 0)                                  \
	X(cuDeviceGetAttribute, 0)                              \
	X(cuDeviceGetPCIBusId, 0)                               \
	X(cuDeviceGetByPCIBusId, 0)                             \
	X(cuDeviceCanAccessPeer, 0)                             \
	X(cuDeviceGetP2PAttribute, 0)                           \
	X(cuDevicePrimaryCtxRetain, 0)                          \
	X(cuDevicePrimaryCtxReset, 0)                           \
	X(cuDevicePrimaryCtxSetFlags, 0)                        \
	X(cuDevicePrimaryCtxGetState, 0)                        \
	X(cuCtxGetCurrent, 0)                                   \
	X(cuCtxSetCurrent, 0)                                   \
	X(cuCtxSynchronize, 12000)                              \
	X(cuCtxGetLimit, 0)                                     \
	X(cuCtxSetLimit, 0)                                     \
	X(cuCtxGetStreamPriorityRange, 0)                       \
	X(cuMemGetInfo, 0)                                      \
	X(cuMemAlloc, 0)                                        \
	X(cuMemAllocPitch, 0)                                   \
	X(cuMemAllocManaged, 0)                                 \
	X(cuMemFree, 0)                                         \
	X(cuMemHostAlloc, 0)                                    \
	X(cuMemFreeHost, 0)                                     \
	X(cuMemHostRegister, 0)                                 \
	X(cuMemHostUnregister, 0)                               \
	X(cuMemHostGetDevicePointer, 0)                         \
	X(cuMemHostGetFlags, 0)                                 \
	X(cuArray3DCreate, 0)                                   \
	X(cuArrayDestroy, 0)                                    \
	X(cuMipmappedArrayCreate, 0)                            \
	X(cuMipmappedArrayDestroy, 0)                           \
	X(cuMemAllocAsync, 0)                                   \
	X(cuMemAllocFromPoolAsync, 0)                           \
	X(cuMemFreeAsync, 0)                                    \
	X(cuDeviceGetDefaultMemPool, 0)                         \
	X(cuDeviceGetMemPool, 0)                                \
	X(cuDeviceSetMemPool, 0)                                \
	X(cuDeviceGetGraphMemAttribute, 0)                      \
	X(cuDeviceSetGraphMemAttribute, 0)                      \
	X(cuDeviceGraphMemTrim, 0)                              \
	X(cuMemPoolCreate, 0)                                   \
	X(cuMemPoolDestroy, 0)                                  \
	X(cuMemPoolGetAttribute, 0)                             \
	X(cuMemPoolSetAttribute, 0)                             \
	X(cuMemPoolSetAccess, 0)                                \
	X(cuMemPoolGetAccess, 0)                                \
	X(cuMemPoolTrimTo, 0)                                   \
	X(cuMemPoolExportToShareableHandle, 0)                  \
	X(cuMemPoolImportFromShareableHandle, 0)                \
	X(cuMemPoolExportPointer, 0)                            \
	X(cuMemPoolImportPointer, 0)                            \
	RUNTIME_DRIVER_ENTRIES_13(X)                            \
	X(cuPointerGetAttribute, 0)                             \
	X(cuIpcGetMemHandle, 0)                                 \
	X(cuIpcOpenMemHandle, 0)                                \
	X(cuIpcCloseMemHandle, 0)                               \
	X(cuImportExternalMemory, 0)                            \
	X(cuExternalMemoryGetMappedBuffer, 0)                   \
	X(cuExternalMemoryGetMappedMipmappedArray, 0)           \
	X(cuDestroyExternalMemory, 0)                           \
	X(cuIpcGetEventHandle, 0)                               \
	X(cuIpcOpenEventHandle, 0)                              \
	X(cuMemcpy, 0)                                          \
	X(cuMemcpyAsync, 0)                                     \
	X(cuMemcpy2D, 0)                                        \
	X(cuMemcpy2DAsync, 0)                                   \
	X(cuMemsetD8, 0)                                        \
	X(cuMemsetD8Async, 0)                                   \
	X(cuStreamCreateWithPriority, 0)                        \
	X(cuStreamDestroy, 0)                                   \
	X(cuStreamQuery, 0)                                     \
	X(cuStreamSynchronize, 0)                               \
	X(cuStreamWaitEvent, 0)                                 \
	X(cuStreamGetPriority, 0)                               \
	X(cuStreamGetFlags, 0)                                  \
	X(cuStreamGetId, 0)                                     \
	X(cuStreamAddCallback, 0)                               \
	X(cuStreamIsCapturing, 0)                               \
	X(cuStreamBeginCapture, 0)                              \
	X(cuStreamBeginCaptureToGraph, 0)                       \
	X(cuStreamEndCapture, 0)                                \
	X(cuStreamGetCaptureInfo, RUNTIME_CAPTURE_INFO_VERSION) \
	X(cuThreadExchangeStreamCaptureMode, 0)                 \
	X(cuLaunchHostFunc, 0)                                  \
	X(cuEventCreate, 0)                                     \
	X(cuEventDestroy, 0)                                    \
	X(cuEventQuery, 0)                                      \
	X(cuEventRecord, 0)                                     \
	X(cuEventRecordWithFlags, 0)                            \
	X(cuEventSynchronize, 0)                                \
	X(cuEventElapsedTime, 0)                                \
	X(cuGraphCreate, 0)                                     \
	X(cuGraphDestroy, 0)                                    \
	X(cuGraphGetNodes, 0)                                   \
	X(cuGraphAddMemAllocNode, 0)                            \
	X(cuGraphAddMemFreeNode, 0)                             \
	X(cuGraphAddNode, RUNTIME_ADD_NODE_VERSION)             \
	X(cuGraphDebugDotPrint, 0)                              \
	X(cuGraphInstantiateWithFlags, 0)                       \
	X(cuGraphExecDestroy, 0)                                \
	X(cuGraphLaunch, 0)                                     \
	X(cuGraphUpload, 0)                                     \
	X(cuGraphRetainUserObject, 0)                           \
	X(cuUserObjectCreate, 0)                                \
	X(cuUserObjectRelease, 0)                               \
	X(cuLibraryLoadData, 0)                                 \
	X(cuLibraryUnload, 0)                                   \
	X(cuLibraryGetKernel, 0)                                \
	X(cuLibraryGetGlobal, 0)                                \
	X(cuLaunchKernel, 0)                                    \
	X(cuLaunchCooperativeKernel, 0)

/* Those that the runtime also asks for with a default stream per thread, for its _ptsz twins. */
#define RUNTIME_THREAD_STREAM_ENTRIES(X) \
	X(cuMemAllocAsync)               \
	X(cuMemAllocFromPoolAsync)       \
	X(cuMemFreeAsync)

#pragma GCC visibility push(hidden)

struct runtime_driver {
#define FIELD(entry, version) __typeof__(entry) *entry;
	RUNTIME_DRIVER_ENTRIES(FIELD)
#undef FIELD
};

struct runtime_thread_driver {
#define FIELD(entry) __typeof__(entry) *entry;
	RUNTIME_THREAD_STREAM_ENTRIES(FIELD)
#undef FIELD
};

/* Filled by the first call below; an entry that the driver lacks answers CUDA_ERROR_NOT_FOUND. */
extern struct runtime_driver runtime_driver;
extern struct runtime_thread_driver runtime_thread_driver;

/* Load and initialise the driver.  Does not make a context and does not set the last error. */
cudaError_t runtime_load(void);
/* The above, and the current device's primary context current in the calling thread. */
cudaError_t runtime_enter(void);
/* Remember an error as the thread's last one, which cudaGetLastError gives and clears. */
cudaError_t runtime_result(int error);

int runtime_device(void); /* of the calling thread */
cudaError_t runtime_use_device(int device);

CUresult runtime_find_entry(const char *symbol, void **function, int version,
			    unsigned long long flags, CUdriverProcAddressQueryResult *status);

/* The body of an entry that does what a driver entry does: RUNTIME_CALL(cuMemFree, address). */
#define RUNTIME_CALL(entry, ...)                                          \
	do {                                                              \
		cudaError_t entered = runtime_enter();                    \
		if (entered != cudaSuccess)                               \
			return runtime_result(entered);                   \
		return runtime_result(runtime_driver.entry(__VA_ARGS__)); \
	} while (0)

/* ---- runtime_fatbin.c: for which GPUs the registered code was built ---- */

struct fatbin_choice { /* the best for a device: 86 is 8.6; 0 none */
	int code, ptx;
};
enum fatbin_answer { FATBIN_UNKNOWN, FATBIN_NONE, FATBIN_FOUND };

struct fatbin;

/* What __cudaRegisterFatBinary() was given.  NULL: no memory. */
struct fatbin *fatbin_note(const void *registered);
void fatbin_note_kernel(const struct fatbin *fatbin, const void *host);
/* UNKNOWN: nothing was understood of what `kernel` was registered with. */
enum fatbin_answer fatbin_choose(const void *kernel, int capability, struct fatbin_choice *);

#pragma GCC visibility pop

#endif
