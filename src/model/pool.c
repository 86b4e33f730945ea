/* Pools of stream-ordered memory. How a pool grows is the driver's secret and nothing here guesses
 * it: only what the program itself reads from a pool is told. Owns the table of pools, which says
 * on which device each is and whether it may be the one that PyTorch uses. */
#include <errno.h>
#include <string.h>

#include "model/model_private.h"

enum attribute { /* CUmemPool_attribute, cudaMemPoolAttr */
		 RESERVED_CURRENT = 5,
		 RESERVED_HIGH,
		 USED_CURRENT,
		 USED_HIGH
};

enum created {
	CREATED_OWN = 0,
	CREATED_DEFAULT = 1 /* others: a device's current pool, whichever it is */
};

static struct pool *find_pool(struct model *m, uint64_t address)
{
	struct pool *pool;
	TABLE_FIND(m->pools, &address, pool);
	return pool;
}

static struct pool *add_pool(struct model *m, uint64_t address)
{
	struct pool *pool = model_new(m, sizeof *pool);
	if (!pool)
		return NULL;
	pool->address = address;
	TABLE_ADD(m->pools, address, pool);
	return m->failed ? NULL : pool;
}

int pool_restore(struct model *m, const struct pool *saved)
{
	struct pool *pool = find_pool(m, saved->address);
	if (!pool && !(pool = add_pool(m, saved->address)))
		return -ENOMEM;
	pool->device = saved->device;
	pool->is_own = saved->is_own;
	pool->is_destroyed = saved->is_destroyed;
	return 0;
}

/* A value is given out again after a pool was destroyed, so the last word counts; but a program
 * that only asks for the current pool says nothing of where it came from. */
static void note_create(struct model *m, const struct event *e)
{
	struct pool *pool = find_pool(m, e->address);
	bool is_new = !pool || pool->is_destroyed;
	if (!pool && !(pool = add_pool(m, e->address)))
		return;
	pool->device = e->device;
	pool->is_destroyed = false;
	if (e->extra == CREATED_OWN || e->extra == CREATED_DEFAULT)
		pool->is_own = e->extra == CREATED_OWN;
	else if (is_new)
		pool->is_own = false;
}

static void note_destroy(struct model *m, const struct event *e)
{
	struct pool *pool = find_pool(m, e->address);
	undo_begin(m, e);
	if (!pool || pool->is_destroyed)
		note_unknown_free(m, e);
	else
		pool->is_destroyed = true;
}

void pool_keep(struct model *m, uint64_t address)
{
	struct pool *pool = find_pool(m, address);
	if (pool)
		pool->is_destroyed = false;
}

uint8_t pool_device(struct model *m, const struct event *e)
{
	const struct pool *pool = e->flags & MEMTRACE_ASYNC_POOL ? find_pool(m, e->extra) : NULL;
	return pool && pool->device != MEMTRACE_DEVICE_UNKNOWN ? pool->device : e->device;
}

/* A high-water mark can be reset by the program; ours is the highest since the start. */
static void raise_to(uint64_t *high_bytes, uint64_t bytes)
{
	if (bytes > *high_bytes)
		*high_bytes = bytes;
}

static void note_figure(struct pool_reads *reads, uint64_t attribute, uint64_t bytes)
{
	switch (attribute) {
	case RESERVED_CURRENT:
		reads->has_reserved = true;
		reads->reserved_bytes = bytes;
		raise_to(&reads->reserved_high_bytes, bytes);
		break;
	case RESERVED_HIGH:
		reads->has_reserved_high = true;
		raise_to(&reads->reserved_high_bytes, bytes);
		break;
	case USED_CURRENT:
		reads->has_used = true;
		reads->used_bytes = bytes;
		raise_to(&reads->used_high_bytes, bytes);
		break;
	case USED_HIGH:
		reads->has_used_high = true;
		raise_to(&reads->used_high_bytes, bytes);
		break;
	}
}

/* PyTorch reads the device's default pool. What the program reads from a pool that it made is no
 * figure of PyTorch's, unless PyTorch reads it. */
static void note_read(struct model *m, const struct event *e)
{
	const struct pool *pool = find_pool(m, e->address);
	bool by_pytorch = stack_facts(m, e->stack)->owner == OWNER_PYTORCH;
	if (pool && pool->is_own && !by_pytorch)
		return;
	uint8_t ordinal = pool ? pool->device : e->device;
	if (e->extra < RESERVED_CURRENT || ordinal == MEMTRACE_DEVICE_UNKNOWN)
		return;
	struct device *d = device_of(m, ordinal);
	if (d)
		note_figure(&d->now.reads, e->extra, e->bytes);
}

void pool_note(struct model *m, const struct event *e)
{
	if (e->what == MEMTRACE_POOL_CREATE)
		note_create(m, e);
	else if (e->what == MEMTRACE_POOL_DESTROY)
		note_destroy(m, e);
	else if (e->what == MEMTRACE_POOL_READ)
		note_read(m, e);
}

/* After a reading `used` moves with what is obtained and given back, in the pool's granules. */
void pool_note_tensor(struct device *d, enum change change, uint64_t bytes)
{
	struct pool_reads *reads = &d->now.reads;
	uint64_t rounded_bytes = (bytes + 511) / 512 * 512;
	if (!reads->has_used)
		return;
	bool is_more = change == CHANGE_OBTAINED || change == CHANGE_KEPT;
	if (!is_more && rounded_bytes > reads->used_bytes)
		rounded_bytes = reads->used_bytes;
	reads->used_bytes = bytes_change(reads->used_bytes, change, rounded_bytes);
	raise_to(&reads->used_high_bytes, reads->used_bytes);
}
