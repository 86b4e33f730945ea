/*
 * What the stand-in for NCCL shares between its files. Values are those of NVIDIA's public API
 * reference; only what is acted on has a name here.
 */
#ifndef SIM_NCCL_H
#define SIM_NCCL_H

#include "sim_api.h"

#include <cuda.h>

#pragma GCC visibility push(hidden)

enum nccl_result {
	NCCL_SUCCESS = 0,
	NCCL_UNHANDLED_CUDA_ERROR = 1,
	NCCL_SYSTEM_ERROR = 2,
	NCCL_INVALID_ARGUMENT = 4,
	NCCL_INVALID_USAGE = 5,
};

/* ncclUniqueId travels by value */
struct nccl_unique_id {
	char text[128];
};

/* Device memory taken from the driver, outside PyTorch's allocator. */
struct nccl_memory {
	struct nccl_memory *next;
	CUdeviceptr address;
	size_t bytes;
	int is_mapped; /* created and mapped; otherwise one cuMemAlloc */
	CUmemGenericAllocationHandle handle;
};

struct nccl_comm {
	int rank_count;
	int rank;
	int device;
	int has_channels; /* the first collective has been through here */
	struct nccl_memory *memory;
};

/* The calling thread's current device; 0 when there is no context. */
int nccl_current_device(void);

/* Takes `bytes` on a device and puts them in front of *list. An nccl_result. */
int nccl_memory_take(struct nccl_memory **list, int device, size_t bytes);

/* Gives one piece back to the driver. It must not be in a list any more. */
void nccl_memory_drop(struct nccl_memory *memory);

/* What a new communicator takes, and what its first collective takes. An nccl_result. */
int nccl_take_init_buffers(struct nccl_comm *comm);
int nccl_take_channel_buffers(struct nccl_comm *comm);

/* Copies on the device, in stream order. Nothing when both are the same. An nccl_result. */
int nccl_copy(void *to, const void *from, size_t bytes, CUstream stream);

#pragma GCC visibility pop

#endif
