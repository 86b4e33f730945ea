/* NVIDIA's management library, which says what each process has in use on a device. It is no part of CUDA: its
 * calls touch no context and no stream. Opened at run time if it is there; for the dump thread alone. */
#ifndef MT_RECORDER_NVML_H
#define MT_RECORDER_NVML_H

#include <stdbool.h>
#include <stdint.h>

struct nvml_reading {
	uint64_t own_bytes;   /* in use by this process, 0: processes are not shown */
	uint64_t all_bytes;   /* in use on the device */
	uint64_t total_bytes;
};

/* What of the environment decides which device has which number, read as CUDA does: early, once. */
void nvml_read_environment(void);
/* 0, or -errno: there is none, it does not start, or a parent of this process has it. Stays open. */
int nvml_open(void);
/* -ENODEV: it is not certain which device that is; -EIO: the device does not answer. */
int nvml_read(unsigned ordinal, struct nvml_reading *);

/* A fork waits until the dump thread is out of the library (at most 200 ms): its locks must not be inherited
 * taken. False: a fork is about to happen, come again. */
bool nvml_enter(void);
void nvml_leave(void);

#endif
