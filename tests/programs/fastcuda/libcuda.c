/* A driver that does nothing but hand out addresses, as fast as possible and the last freed one
 * first: the worst case for the order of events across threads. It stands in as libcuda.so.1 for
 * the programs that count events. One spinlock is all the memory of it; sizes are not kept. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDRESSES     65536
#define FIRST_ADDRESS 0x7a0000000000u
#define STRIDE        (2u << 20)
#define OUT_OF_MEMORY 2

typedef int result;

result cuInit(unsigned flags);
result cuMemAlloc_v2(uint64_t *address, size_t bytes);
result cuMemFree_v2(uint64_t address);
result cuMemAlloc(uint32_t *address, uint32_t bytes);
/* For a signal handler that would leave a call: it must not while its thread may hold the lock. */
bool fastcuda_is_locked(void);

static atomic_bool lock;
static uint32_t free_list[ADDRESSES];
static uint32_t free_count, used_count;

static void take_lock(void)
{
	for (unsigned tries = 1; atomic_exchange_explicit(&lock, true, memory_order_acquire); tries++)
		if (tries % 64)
			__builtin_ia32_pause();
		else
			sched_yield(); /* its holder may not be running */
}

static void drop_lock(void)
{
	atomic_store_explicit(&lock, false, memory_order_release);
}

bool fastcuda_is_locked(void)
{
	return atomic_load(&lock);
}

/* A child begins with the lock free, whoever held it in the parent. */
__attribute__((constructor)) static void keep_whole_over_forks(void)
{
	pthread_atfork(take_lock, drop_lock, drop_lock);
}

result cuInit(unsigned flags)
{
	(void)flags;
	return 0;
}

result cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	uint32_t index = ADDRESSES;
	(void)bytes;
	take_lock();
	if (free_count)
		index = free_list[--free_count];
	else if (used_count < ADDRESSES)
		index = used_count++;
	drop_lock();
	if (index == ADDRESSES)
		return OUT_OF_MEMORY;
	*address = FIRST_ADDRESS + (uint64_t)index * STRIDE;
	return 0;
}

result cuMemFree_v2(uint64_t address)
{
	take_lock();
	free_list[free_count++] = (uint32_t)((address - FIRST_ADDRESS) / STRIDE);
	drop_lock();
	return 0;
}

/* What the name meant before CUDA 3.2: a driver still exports it, nobody compiles calls of it. */
result cuMemAlloc(uint32_t *address, uint32_t bytes)
{
	(void)address;
	(void)bytes;
	return OUT_OF_MEMORY;
}
