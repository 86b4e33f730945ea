/* The reference model's tables, its sums, made anew every time, and its peaks, kept by copying. */
#ifndef TEST_MODEL_REFERENCE_SUMS_H
#define TEST_MODEL_REFERENCE_SUMS_H

#include <stdbool.h>

#include "test_model_kit.h"

enum {
	REF_DEVICES = 2,
	REF_HOST = 2,
	REF_MEMORY = 400,
	REF_MAPPINGS = 400,
	REF_BLOCKS = 400,
	REF_OWNERS = 7
};

struct ref_memory {                 /* a region or a physical handle */
	bool used, is_handle, live; /* live: counts */
	enum memtrace_space space;
	uint64_t address, bytes, born, removed_by;
	uint64_t references, context;
	uint32_t stack, owner;
	unsigned device;
	bool cache, tensor;
};

struct ref_mapping {
	bool used, live, was_cache;
	uint64_t address, bytes, handle, born; /* born: of the handle, 0 unknown */
	bool attached;
	uint64_t removed_by;
};

struct ref_block {
	bool live;
	uint64_t address, bytes;
	uint32_t stack;
	unsigned device;
};

struct ref_sums {
	uint64_t bytes[STACKS_END], count[STACKS_END], allocated, reserved, pytorch_reserved,
		owners[REF_OWNERS];
	uint64_t sequence;
};

struct ref_composition {
	struct ref_sums peak, previous;
	const struct ref_memory *revocable;
	uint64_t allocations, total;
};

struct ref_device {
	bool has_blocks;
	struct ref_composition composition[2]; /* all memory; what is allocated beside blocks */
	uint64_t reserved_allocations, reserved_total, reserved_peak;
	uint64_t block_allocations, block_total, block_peak;
	uint64_t cache_allocations, cache_total, cache_peak;
	uint64_t owner_peak[REF_OWNERS], owner_before[REF_OWNERS]; /* and before the memory that raised it last */
	uint64_t owner_raised_by[REF_OWNERS]; /* its `born` */
};

struct ref_handle_free {
	uint64_t sequence, address, born; /* sequence 0: none */
};

struct reference {
	struct ref_handle_free handle_frees[8];
	struct ref_memory memory[REF_MEMORY];
	struct ref_mapping mappings[REF_MAPPINGS];
	struct ref_block blocks[REF_BLOCKS];
	struct ref_device devices[REF_DEVICES];
	uint64_t boundary[4]; /* where reservations start */
	uint64_t unknown_frees, double_allocations, pinned_peak;
	uint64_t sequence;
};

/* 0 unknown, else the module of the stack. */
static inline uint32_t ref_owner(uint32_t stack)
{
	static const uint32_t owners[STACKS_END] = {
		[TORCH] = MODULE_TORCH,
		[TORCH_OTHER] = MODULE_TORCH,
		[TORCH_EMPTY_CACHE] = MODULE_TORCH,
		[NCCL] = MODULE_NCCL,
		[PROGRAM] = MODULE_PROGRAM,
		[CUBLAS] = MODULE_CUBLAS,
		[RMM] = MODULE_RMM,
	};
	return owners[stack];
}

static inline struct ref_memory *ref_handle(struct reference *r, uint64_t value)
{
	for (int i = 0; i < REF_MEMORY; i++)
		if (r->memory[i].used && r->memory[i].is_handle && r->memory[i].address == value)
			return &r->memory[i];
	return NULL;
}

static inline struct ref_memory *ref_mapped(struct reference *r, const struct ref_mapping *mapping)
{
	struct ref_memory *h =
		mapping->live && mapping->attached ? ref_handle(r, mapping->handle) : NULL;
	return h && h->born == mapping->born ? h : NULL;
}

static inline bool ref_is_array(const struct ref_memory *memory)
{
	return memory->space == MEMTRACE_SPACE_ARRAY;
}

/* ---------- sums, from nothing ---------- */

static inline void ref_add(struct ref_sums *sums, uint32_t stack, uint64_t bytes)
{
	sums->bytes[stack] += bytes;
	sums->count[stack]++;
	sums->allocated += bytes;
}

static inline void ref_sum(struct reference *r, unsigned device, bool all, struct ref_sums *sums)
{
	*sums = (struct ref_sums){.sequence = r->sequence};
	for (int i = 0; i < REF_MEMORY; i++) {
		const struct ref_memory *m = &r->memory[i];
		if (!m->used || !m->live || m->device != device)
			continue;
		sums->reserved += m->bytes;
		sums->owners[m->owner] += m->bytes;
		if (all || !m->cache)
			ref_add(sums, m->stack, m->bytes);
		if (m->tensor || (m->cache && !m->is_handle))
			sums->pytorch_reserved += m->bytes;
	}
	for (int i = 0; i < REF_MAPPINGS; i++) {
		const struct ref_memory *m = ref_mapped(r, &r->mappings[i]);
		if (m && m->device == device && m->cache)
			sums->pytorch_reserved += r->mappings[i].bytes;
	}
	for (int i = 0; i < REF_BLOCKS && !all; i++)
		if (r->blocks[i].live && r->blocks[i].device == device)
			ref_add(sums, r->blocks[i].stack, r->blocks[i].bytes);
}

static inline uint64_t ref_pytorch_allocated(const struct reference *r, unsigned device,
					     uint64_t *count)
{
	uint64_t bytes = 0;
	*count = 0;
	for (int i = 0; i < REF_BLOCKS; i++)
		if (r->blocks[i].live && r->blocks[i].device == device) {
			bytes += r->blocks[i].bytes;
			++*count;
		}
	for (int i = 0; i < REF_MEMORY; i++)
		if (r->memory[i].used && r->memory[i].live && r->memory[i].tensor &&
		    r->memory[i].device == device) {
			bytes += r->memory[i].bytes;
			++*count;
		}
	return bytes;
}

static inline uint64_t ref_pinned(const struct reference *r)
{
	uint64_t bytes = 0;
	for (int i = 0; i < REF_MEMORY; i++)
		if (r->memory[i].used && r->memory[i].live && r->memory[i].device == REF_HOST)
			bytes += r->memory[i].bytes;
	return bytes;
}

/* ---------- peaks, by copying ---------- */

static inline void ref_raise(uint64_t *peak, uint64_t value)
{
	if (value > *peak)
		*peak = value;
}

static inline void ref_touch(struct reference *r, unsigned device)
{
	for (int i = 0; i < 2 && device < REF_DEVICES; i++)
		r->devices[device].composition[i].revocable = NULL;
}

/* After something was added. */
static inline void ref_rise(struct reference *r, unsigned device, const struct ref_memory *memory)
{
	uint64_t count;
	ref_raise(&r->pinned_peak, ref_pinned(r));
	if (device >= REF_DEVICES)
		return;
	struct ref_device *d = &r->devices[device];
	struct ref_sums sums;
	for (int i = 0; i < 2; i++) {
		struct ref_composition *c = &d->composition[i];
		ref_sum(r, device, !i, &sums);
		if (sums.allocated > c->peak.allocated) {
			c->previous = c->peak;
			c->peak = sums;
			c->revocable = memory;
		}
	}
	ref_raise(&d->reserved_peak, sums.reserved);
	ref_raise(&d->cache_peak, sums.pytorch_reserved);
	ref_raise(&d->block_peak, ref_pytorch_allocated(r, device, &count));
	for (int i = 0; i < REF_OWNERS; i++) {
		if (memory && sums.owners[i] > d->owner_peak[i] && d->owner_raised_by[i] != memory->born) {
			d->owner_before[i] = d->owner_peak[i];
			d->owner_raised_by[i] = memory->born;
		}
		ref_raise(&d->owner_peak[i], sums.owners[i]);
	}
}

#endif
