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
	size_t others_bytes; /* in use by other processes (SIMGPU_OTHERS, SIMGPU_MACHINE) */
	size_t total_bytes;
};

/* By its place in the machine, whatever CUDA_VISIBLE_DEVICES says. 0, or -1 for a device that is not
 * there or while CUDA is not initialised in this process. */
SIM_EXPORT int simgpuAccount(int place, struct sim_account *account);

struct sim_process {
	unsigned pid;
	size_t used_bytes;
};

#define SIM_PROCESSES_MAX 130

/* A device's UUID in words: with its place in the machine, from 1. */
#define SIM_UUID_FORMAT "GPU-73696d75-6c61-7465-6400-0000000000%02x"

/* The processes that use a device: this one, those that share its machine, and one that stands for
 * SIMGPU_OTHERS. How many there are, at most SIM_PROCESSES_MAX; or -1 as above. */
SIM_EXPORT int simgpuProcesses(int place, struct sim_process list[SIM_PROCESSES_MAX]);

/* For who sees the program's look-ups: a name of CUDA's that was asked for and is not there is told, once. */
SIM_EXPORT void simgpuNameMissing(const char *symbol);

#endif
