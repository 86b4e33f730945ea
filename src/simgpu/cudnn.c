/*
 * The stand-in for libcudnn.so.9, part one: handles, versions, error texts, and the list of calls
 * that are work for the device.
 *
 * Owns the handle. Work on the device is accepted and never done: tensors keep what they hold. What
 * is in no file of this library answers CUDNN_STATUS_NOT_SUPPORTED from its generated stub.
 */
#define _GNU_SOURCE
#include "sim_cudnn.h"
#include "sim_first_use.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* PyTorch refuses a library older than the one it was compiled with: 9.10 (2.8), 9.26 (2.15). */
#ifndef CUDNN_VERSION_NUMBER
#define CUDNN_VERSION_NUMBER 92600
#endif

struct cudnn_handle {
	void *stream;
};

SIM_API(size_t, cudnnGetVersion, void)
{
	return CUDNN_VERSION_NUMBER;
}

/* The genuine library is built once for each CUDA; one stand-in serves all, so it asks. */
SIM_API(size_t, cudnnGetCudartVersion, void)
{
	int (*runtime_version)(int *) = dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion");
	int version = 0;

	if (runtime_version)
		runtime_version(&version);
	return (size_t)version;
}

/* part: 0 major, 1 minor, 2 patch level */
SIM_API(int, cudnnGetProperty, int part, int *value)
{
	const int parts[] = {CUDNN_VERSION_NUMBER / 10000, CUDNN_VERSION_NUMBER / 100 % 100,
			     CUDNN_VERSION_NUMBER % 100};

	if (part < 0 || part > 2)
		return CUDNN_BAD_PARAM;
	*value = parts[part];
	return CUDNN_SUCCESS;
}

SIM_API(const char *, cudnnGetErrorString, int status)
{
	switch (status) {
	case CUDNN_SUCCESS:
		return "CUDNN_STATUS_SUCCESS";
	case CUDNN_BAD_PARAM:
		return "CUDNN_STATUS_BAD_PARAM";
	case CUDNN_NOT_SUPPORTED:
		return "CUDNN_STATUS_NOT_SUPPORTED";
	case CUDNN_ALLOC_FAILED:
		return "CUDNN_STATUS_ALLOC_FAILED";
	default:
		return "CUDNN_UNKNOWN_STATUS";
	}
}

SIM_API(void, cudnnGetLastErrorString, char *message, size_t max_bytes)
{
	if (max_bytes)
		snprintf(message, max_bytes, "%s", "simulated cuDNN keeps no error text");
}

SIM_API(int, cudnnCreate, struct cudnn_handle **handle)
{
	if (sim_first_use(SIM_CODE_cudnn) != 0)
		return CUDNN_ALLOC_FAILED;
	*handle = calloc(1, sizeof(**handle));
	return *handle ? CUDNN_SUCCESS : CUDNN_ALLOC_FAILED;
}

SIM_API(int, cudnnDestroy, struct cudnn_handle *handle)
{
	free(handle);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnSetStream, struct cudnn_handle *handle, void *stream)
{
	handle->stream = stream;
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnGetStream, struct cudnn_handle *handle, void **stream)
{
	*stream = handle->stream;
	return CUDNN_SUCCESS;
}

SIM_ACCEPT(cudnnBatchNormalizationBackwardEx)
SIM_ACCEPT(cudnnBatchNormalizationForwardInference)
SIM_ACCEPT(cudnnBatchNormalizationForwardTrainingEx)
SIM_ACCEPT(cudnnConvolutionBackwardData)
SIM_ACCEPT(cudnnConvolutionBackwardFilter)
SIM_ACCEPT(cudnnConvolutionBiasActivationForward)
SIM_ACCEPT(cudnnConvolutionForward)
SIM_ACCEPT(cudnnCTCLoss)
SIM_ACCEPT(cudnnCTCLoss_v8)
SIM_ACCEPT(cudnnPoolingForward)
SIM_ACCEPT(cudnnRNNBackwardData_v8)
SIM_ACCEPT(cudnnRNNBackwardWeights_v8)
SIM_ACCEPT(cudnnRNNForward)
SIM_ACCEPT(cudnnSpatialTfGridGeneratorBackward)
SIM_ACCEPT(cudnnSpatialTfGridGeneratorForward)
SIM_ACCEPT(cudnnSpatialTfSamplerBackward)
SIM_ACCEPT(cudnnSpatialTfSamplerForward)
