/*
 * What the simulated driver tells the simulated CUPTI: each allocation and release that the program
 * asks for, as it happens. The libraries meet through cuGetExportTable, under an id that only
 * they know, as the genuine ones do under ids of their own.
 */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#define SIM_WATCH_ID "simgpu watch  1" /* 16 bytes with the zero */

#define SIM_WATCH_NO_STREAM UINT32_MAX

enum sim_memory_kind { SIM_MEMORY_DEVICE, SIM_MEMORY_MANAGED, SIM_MEMORY_PINNED, SIM_MEMORY_ARRAY };

struct sim_memory_event {
	enum sim_memory_kind kind;
	bool is_release;
	bool is_async;
	int device;
	uint32_t context_id;
	uint32_t stream_id;
	uint64_t address, bytes;
	uint64_t pool; /* its handle, 0 none */
};

enum sim_pool_operation { SIM_POOL_CREATED = 1, SIM_POOL_DESTROYED, SIM_POOL_TRIMMED };

struct sim_pool_event {
	enum sim_pool_operation operation;
	bool is_imported;
	int device;
	uint64_t address;
	size_t keep_bytes, reserved_bytes, threshold_bytes, used_bytes;
};

/* Called with the driver's lock held, so in the order of what happens; must not call the driver. */
struct sim_watcher {
	void (*memory)(const struct sim_memory_event *event);
	void (*pool)(const struct sim_pool_event *event);
};

struct sim_watch_table {
	size_t bytes;                                     /* of this struct */
	void (*watch)(const struct sim_watcher *watcher); /* NULL: no more */
	uint32_t (*context_id)(CUcontext context);
	void (*forget)(uint64_t address, size_t bytes); /* device memory reads as zeros again */
	/* Small contents, no work of any stream. False: there is no such memory. */
	bool (*read)(uint64_t address, void *contents, size_t bytes);
	bool (*write)(uint64_t address, const void *contents, size_t bytes);
};

#endif
