/*
 * What the stand-in NVML asks the stand-in driver, past the CUDA API: a tracer that reads NVML must
 * not be seen to call CUDA.
 */
#ifndef SIM_ACCOUNT_H
#define SIM_ACCOUNT_H

#include <stddef.h>

#include "sim_api.h"

struct sim_account {
	size_t own_bytes;    /* in use by this process; 0 before its first context */
	size_t others_bytes; /* in use by other processes (SIMGPU_OTHERS) */
	size_t total_bytes;
};

/* 0, or -1 for a device that is not there or while CUDA is not initialised in this process. */
SIM_EXPORT int simgpuAccount(int device, struct sim_account *account);

#endif
