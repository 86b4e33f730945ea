/* Threads that allocate and free at once, each other's memory too, so that addresses are re-used
 * across threads all the time.
 *
 *   threads THREADS CALLS_PER_THREAD
 *
 * Prints what is true at its end: "allocations A frees F live_bytes B live_count N". */
#include <cuda.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MAILBOXES 64
#define OWN_MAX   32

struct allocation {
	CUdeviceptr address;
	size_t bytes;
};

static _Atomic(struct allocation *) mailboxes[MAILBOXES];
static atomic_ullong allocations, frees, live_bytes;
static unsigned long calls_per_thread;

static uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static struct allocation *allocate(uint64_t *state)
{
	struct allocation *made = malloc(sizeof *made);
	made->bytes = 512 + random_next(state) % 1000000;
	if (cuMemAlloc(&made->address, made->bytes)) {
		fprintf(stderr, "threads: out of addresses\n");
		exit(1);
	}
	atomic_fetch_add(&allocations, 1);
	atomic_fetch_add(&live_bytes, made->bytes);
	return made;
}

static void release(struct allocation *allocation)
{
	if (cuMemFree(allocation->address)) {
		fprintf(stderr, "threads: free failed\n");
		exit(1);
	}
	atomic_fetch_add(&frees, 1);
	atomic_fetch_sub(&live_bytes, allocation->bytes);
	free(allocation);
}

static void *work(void *seed)
{
	uint64_t state = (uintptr_t)seed * 7919u;
	struct allocation *own[OWN_MAX];
	unsigned own_count = 0;
	for (unsigned long call = 0; call < calls_per_thread;) {
		if (own_count && (own_count == OWN_MAX || random_next(&state) % 2)) {
			/* Into somebody's mailbox; what lay there is freed here. */
			unsigned box = random_next(&state) % MAILBOXES;
			struct allocation *old = atomic_exchange(&mailboxes[box], own[--own_count]);
			if (old) {
				release(old);
				call++;
			}
		} else {
			own[own_count++] = allocate(&state);
			call++;
		}
	}
	while (own_count)
		release(own[--own_count]);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
	calls_per_thread = argc > 2 ? strtoul(argv[2], NULL, 10) : 10000;
	pthread_t threads[256];
	cuInit(0);
	for (unsigned i = 0; i < count && i < 256; i++)
		pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1));
	for (unsigned i = 0; i < count && i < 256; i++)
		pthread_join(threads[i], NULL);
	unsigned live_count = 0;
	for (unsigned i = 0; i < MAILBOXES; i++)
		live_count += mailboxes[i] != NULL;
	printf("allocations %llu frees %llu live_bytes %llu live_count %u\n",
	       (unsigned long long)allocations, (unsigned long long)frees,
	       (unsigned long long)live_bytes, live_count);
	return 0;
}
