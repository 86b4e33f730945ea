/*
 * State and services that the files of the stand-in libcuda.so.1 share, grouped by the file that
 * defines them.  The handles of cuda.h are pointers to structures that it leaves open; they are
 * completed here, so no handle needs a cast.
 *
 * Unless said otherwise a function below takes no lock and wants driver_lock held: one lock guards
 * everything, because no call ever waits for a device.  Results are CUresult as in cuda.h.
 */
#ifndef SIMGPU_DRIVER_H
#define SIMGPU_DRIVER_H

#include <cuda.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "sim.h"
#include "sim_account.h"
#include "sim_card.h"
#include "sim_machine.h"

#pragma GCC visibility push(hidden)

#define DRIVER_DEVICES_MAX SIM_MACHINE_DEVICES
#define DRIVER_PAGE_BYTES \
	(2 * SIM_MIB)           /* large allocations and all physical memory come in these */
#define DRIVER_UNIT_BYTES   512 /* small ones in these */
#define DRIVER_SHADOW_BYTES SIM_MIB /* a copy up to this size keeps its contents */

extern pthread_mutex_t driver_lock;

/* ---- driver_device.c: the machine ---- */

struct driver_device {
	int place; /* in the machine: the devices that the program sees may be some of its */
	size_t total_bytes;
	size_t used_bytes;     /* context, linear, pools' reserved, physical allocations */
	size_t overhead_bytes; /* of them: contexts and code */
	size_t slack_bytes;    /* of them: what nobody asked for, by rounding or in pools' reserve */
	size_t managed_bytes;  /* beside them: in use, and charged to nobody */
	size_t peak_bytes;     /* of used_bytes */
	unsigned long long allocation_count;
	unsigned long long free_count;
	struct CUmemPoolHandle_st *default_pool;
	struct CUmemPoolHandle_st *current_pool;
};

struct driver_machine {
	int device_count;     /* that the program sees */
	int place_count;      /* that there are */
	size_t total_bytes;   /* of each */
	size_t context_bytes; /* charged when a device's primary context is first retained */
	size_t module_bytes;  /* charged for each module or library that is loaded */
	bool is_late;         /* work is in progress until the host waits for it */
	size_t others_bytes;  /* in use on each device by other processes */
	const struct sim_card *card;
	struct driver_device devices[DRIVER_DEVICES_MAX];
};
extern struct driver_machine driver_machine;

/*
 * Without lock.  CUDA_SUCCESS once cuInit has been called in this process,
 * CUDA_ERROR_NOT_INITIALIZED before and in a forked child.
 */
CUresult driver_check_ready(void);
CUresult driver_check_device(CUdevice device); /* without lock; the above and a valid ordinal */

/* ---- driver_account.c: what is in use ---- */

void account_open(void); /* reads the settings that it needs */
size_t device_free_bytes(int device);
/* Take memory of a device, or CUDA_ERROR_OUT_OF_MEMORY and nothing taken.  A program asked for
 * `asked_bytes` of them. */
CUresult device_charge(int device, size_t bytes, size_t asked_bytes);
void device_uncharge(int device, size_t bytes, size_t asked_bytes);
/* Memory that is charged already, by a pool, is given to the program or comes back from it. */
void device_hand_out(int device, size_t asked_bytes);
void device_take_back(int device, size_t asked_bytes);
/* The same as the first two for what has no size that a program could ask for. */
CUresult device_charge_overhead(int device, size_t bytes);
void device_uncharge_overhead(int device, size_t bytes);
void device_note_managed(int device, ptrdiff_t bytes); /* more, or less */

/* ---- driver_machine.c: a machine that processes share; without one, nothing of it does anything ---- */

void machine_join(void); /* reads SIMGPU_MACHINE.  Devices are told by their places */
/* Around a look at what is free and the taking of it.  True: machine_unlock() has to follow. */
bool machine_lock(void);
void machine_unlock(void);
void machine_set_used(int place, size_t bytes); /* by this process */
/* All processes together have so much in use now; while machine_lock() holds. */
void machine_note_peak(int place, size_t bytes, unsigned process_count);
void machine_note_host_short(void); /* without lock */
/* Without lock.  The other processes that have memory of a device: how many were listed. */
unsigned machine_others(int place, struct sim_process *list, unsigned room);
size_t machine_others_bytes(int place, unsigned *count); /* without lock */

/* ---- driver_visible.c ---- */

/* The places of the devices that a program sees on a machine of `count`; how many they are. */
int visible_read(int count, int places[DRIVER_DEVICES_MAX]);

/* ---- driver_card.c: the card that is simulated ---- */

/* The card of SIMGPU_CARD, else one of SIMGPU_CAPABILITY ("9.0", the default) with no memory of its
 * own. */
const struct sim_card *card_from_environment(void);
int card_attribute(const struct sim_card *card, CUdevice_attribute attribute, int place);

/* ---- driver_context.c ---- */

struct CUctx_st {
	int device;
	bool is_green; /* a part of a device: what is obtained in it is the primary context's */
	unsigned retain_count; /* of a primary context; 1 for one made by cuCtxCreate */
	unsigned flags;
	uint32_t id; /* by which CUPTI names it */
	unsigned used_codes; /* a bit for each sim_code; the rest is driver_code.c's too */
	size_t code_bytes, stack_bytes;
};

CUcontext context_primary(int device);
/* Without lock.  Whose memory the calling thread obtains; NULL without a context. */
CUcontext context_of_memory(void);
int context_device(void); /* without lock; device of the calling thread's context, 0 without one */
/* Without lock.  The current device, or NOT_INITIALIZED or INVALID_CONTEXT. */
CUresult context_require(int *device);

/* ---- driver_code.c: code at its first use, stacks ---- */

/* Without lock.  The calling thread's context uses it: charged once. */
CUresult code_use(enum sim_code code);
CUresult code_set_stack(CUcontext context, size_t stack_bytes);
size_t code_stack(const struct CUctx_st *context); /* bytes a thread */
void code_end(CUcontext context);                  /* the context ends */

/* ---- driver_ranges.c: a set of address ranges ---- */

struct range {
	uintptr_t start, end;
};
struct range_set { /* sorted, disjoint, neighbours joined */
	struct range *ranges;
	size_t count, room;
};

int range_set_add(struct range_set *set, uintptr_t start, uintptr_t end); /* 0 or -ENOMEM */
/* Cut `bytes` at a multiple of `alignment` out of the lowest range that has them; 0 when none. */
uintptr_t range_set_take(struct range_set *set, size_t bytes, size_t alignment);

/* ---- driver_space.c: device address space and the blocks in it ---- */

enum block_kind {
	BLOCK_LINEAR,     /* cuMemAlloc and its kin */
	BLOCK_POOL,       /* stream-ordered */
	BLOCK_RESERVED,   /* address space of cuMemAddressReserve */
	BLOCK_GLOBAL,     /* a module's variable */
	BLOCK_GRAPH,      /* of a node that allocates: charged from a launch until it is freed */
	BLOCK_IMPORTED,   /* another's memory, free of charge */
	BLOCK_IPC,        /* likewise; given back by cuIpcCloseMemHandle alone */
	BLOCK_MANAGED,    /* the kinds from here on are memory that the host can follow */
	BLOCK_HOST,       /* pinned */
	BLOCK_REGISTERED, /* the program's own memory, pinned */
};

struct block {
	CUdeviceptr address;
	size_t size_bytes;   /* as asked */
	size_t span_bytes;   /* address space taken */
	size_t charge_bytes; /* device memory taken, of the device or of the pool */
	enum block_kind kind;
	int device;
	unsigned flags;
	bool is_written; /* the shadow may hold something */
	CUmemoryPool pool;
	CUcontext context;          /* that it ends with, or NULL */
	struct graph_memory *graph; /* of a node that allocates */
	unsigned long long id;
};

/* Find the block that holds `address`; the pointer is good until the next insert or removal. */
struct block *block_find(CUdeviceptr address);
/*
 * Give `block` an address (a multiple of `alignment`) for its span_bytes and enter it.  Device
 * kinds get address space without access; managed and host kinds get pages; a registered block
 * brings its own address.  When the process has no room: OPERATING_SYSTEM for device memory, for the
 * rest OUT_OF_MEMORY.
 */
CUresult block_insert(struct block *block, size_t alignment);
void block_remove(struct block *block);

/*
 * Where the contents of [address, address + bytes) are kept: the shadow of device memory, otherwise
 * the memory itself.  *is_device tells which.  NULL when the range leaves its block.
 */
char *space_contents(CUdeviceptr address, size_t bytes, bool *is_device);
/* Forget what a range of device memory holds: it reads as zeros again. */
void space_forget(CUdeviceptr address, size_t bytes);
/* Call `visit` for every block, by address; `visit` must not insert or remove. */
void block_each(void (*visit)(const struct block *block, void *context), void *context);

/* ---- driver_memory.c ---- */

/*
 * Without lock.  Free a linear, managed or stream-ordered block by its first address: a program's
 * call, on a stream or not, or (memory_drop) the work of a graph.
 */
CUresult memory_free(CUdeviceptr address, CUstream stream);
CUresult memory_drop(CUdeviceptr address);
/* Drop what was obtained in a context and ends with it: linear and managed memory, and arrays. */
void memory_end(CUcontext context);

/* ---- driver_array.c ---- */

void arrays_end(CUcontext context); /* as above */
/* Without lock.  A mipmapped array on memory that is another's. */
CUresult mipmap_import(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor);

/* ---- driver_pool.c ---- */

struct CUmemPoolHandle_st {
	int device;
	bool is_destroyed; /* gone for the program, kept for blocks still alive */
	bool is_imported;  /* nothing can be allocated from it */
	size_t used_bytes, used_high_bytes;
	size_t reserved_bytes, reserved_high_bytes;
	size_t threshold_bytes;
	size_t limit_bytes; /* 0: none */
	int reuse_flags[3]; /* follow event dependencies, opportunistic, internal dependencies */
	CUmemPoolProps properties;
	struct CUmemPoolHandle_st *next;
};

/* Make the default pools.  0 or -ENOMEM. */
int pools_init(void);
/* Give back what pools hold beyond their threshold: what a synchronisation does. */
void pools_settle(void);
void pool_return_block(const struct block *block); /* the block's bytes are free for re-use */
/* A pool that stands for another process's; NULL when out of host memory. */
CUmemoryPool pool_import(int device);
bool is_pool(CUmemoryPool pool); /* one that the program may use */

/* ---- driver_vmm.c ---- */

/* The mapping that holds `address`: its first address and size.  False when nothing is mapped. */
bool mapping_find(CUdeviceptr address, CUdeviceptr *start, size_t *bytes, int *device);

/* Without lock.  A handle for `bytes` on no device, which cost nothing. */
CUresult allocation_make(CUmemGenericAllocationHandle *handle, size_t bytes);
/* Without lock.  The bytes of a physical allocation. */
CUresult allocation_size(CUmemGenericAllocationHandle handle, size_t *bytes);
/* Without lock.  One more reference to a physical allocation. */
CUresult allocation_retain(CUmemGenericAllocationHandle handle);

/* ---- driver_watch.c: what CUPTI is told; nothing when nobody watches ---- */

struct watched_array {
	const void *handle;
	size_t bytes;
	int device;
	CUcontext context;
};

/* `stream` is NULL for calls that are not stream-ordered. */
void watch_note_allocation(const struct block *block, CUstream stream);
void watch_note_release(const struct block *block, CUstream stream);
void watch_note_array(const struct watched_array *array, bool is_release);
void watch_note_pool_created(CUmemoryPool pool);
void watch_note_pool_destroyed(CUmemoryPool pool);
void watch_note_pool_trimmed(CUmemoryPool pool, size_t keep_bytes);
/* Without lock.  The table behind SIM_WATCH_ID (sim_watch.h), NULL for any other id. */
const void *watch_export(const CUuuid *id);
/* Without lock.  Device memory reads as zeros again. */
void watch_forget(uint64_t address, size_t bytes);

/* ---- driver_injection.c ---- */

void injection_run(void); /* without lock */

/* ---- driver_entry.c ---- */

extern const struct sim_entry sim_entries[];
extern const size_t sim_entry_count;

#pragma GCC visibility pop

#endif
