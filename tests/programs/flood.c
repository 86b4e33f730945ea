/* Very many calls from one thread, with exact figures of their own: some memory that stays, some that
 * comes and goes, a peak now and then.
 *
 *   flood EVENTS PAGE
 *
 * PAGE (a file) always holds the figures after the last call that returned, struct figures; they are
 * printed at the end too. */
#include <cuda.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIVE_MAX 2000

static struct figures {
	uint64_t calls; /* stored last */
	uint64_t allocations, frees;
	uint64_t live_bytes, peak_bytes, total_bytes;
} *figures;

static struct {
	CUdeviceptr address;
	size_t bytes;
} live[LIVE_MAX];
static unsigned live_count;

static uint32_t random_next(void)
{
	static uint64_t state = 1;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

static void allocate(size_t bytes)
{
	CUdeviceptr address;
	if (cuMemAlloc(&address, bytes))
		exit(1);
	live[live_count].address = address;
	live[live_count++].bytes = bytes;
	figures->allocations++;
	figures->live_bytes += bytes;
	figures->total_bytes += bytes;
	if (figures->live_bytes > figures->peak_bytes)
		figures->peak_bytes = figures->live_bytes;
}

static void release(unsigned index)
{
	if (cuMemFree(live[index].address))
		exit(1);
	figures->frees++;
	figures->live_bytes -= live[index].bytes;
	live[index] = live[--live_count];
}

static void call(uint64_t number)
{
	/* Fuller and emptier again, each time a little fuller than before. */
	uint64_t wave = number / 100000;
	unsigned wanted = wave % 2 ? 200 : 400 + (unsigned)(wave * 7 % 1500);
	if (live_count && (live_count >= LIVE_MAX || random_next() % (live_count + wanted) >= wanted))
		release(random_next() % 4 ? live_count - 1 : random_next() % live_count);
	else
		allocate(1 + random_next() % (2u << 20)); /* packs badly */
	__atomic_store_n(&figures->calls, number + 1, __ATOMIC_RELEASE);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	int fd = open(argv[2], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 4096))
		return 2;
	figures = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	uint64_t count = strtoull(argv[1], NULL, 10);
	for (uint64_t i = 0; i < count; i++)
		call(i);
	printf("allocations %" PRIu64 " frees %" PRIu64 " live_bytes %" PRIu64 " peak_bytes %" PRIu64
	       " total_bytes %" PRIu64 "\n",
	       figures->allocations, figures->frees, figures->live_bytes, figures->peak_bytes,
	       figures->total_bytes);
	return 0;
}
