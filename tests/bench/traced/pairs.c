/* Pairs of calls to time: an allocation and a free, on libraries that do nearly nothing, with and
 * without memtrace in between. Both a program and, for Python, a library with pairs_burst_below().
 *   pairs                      bursts of every kind: "KIND THREADS NS_A_PAIR", the median of the
 *                              bursts; then "clock 1 NS", "counter 1 NS", "addition 1 NS": one
 *                              reading of the clock, of the processor's counter, one atomic addition
 *   pairs flood THREADS PAIRS  no pauses, so that the ring is full: "flood EVENTS SECONDS
 *                              DUMP_THREAD_SECONDS", the second of processor time
 *   pairs live COUNT           leaves COUNT blocks allocated: "live RSS_KIB"
 * A burst fills a fraction of the ring, and the pause after it is long enough for the ring to be
 * emptied: what is timed is the calling thread, not the wait for the dump thread. */
#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define BURST_EVENTS   8192
#define BURSTS         60
#define PAUSE_US       6000
#define SETTLE_US      300000 /* then the dump thread has taken all */
#define THREADS_MAX    16
#define FLOOR_READINGS 10000
#define BLOCK_BYTES    512
#define LIVE_BLOCKS    64 /* a free takes the block of so many pairs ago */
#define SEGMENT_BYTES  (2u << 20)

int cuInit(unsigned flags);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
/* c10::reportMemoryUsageToProfiler, as PyTorch's allocator calls it; the device is {CUDA, 0}. */
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, int64_t, size_t, size_t,
							   uint64_t);
#define report_usage _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define CUDA_0       1

/* What ATen calls before it asks for the memory of a tensor, and the allocator before it looks for some. */
size_t _ZN2at6detail30computeStorageNbytesContiguousEN3c108ArrayRefIlEEmm(const int64_t *, size_t, size_t, size_t);
size_t _ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm(size_t);
#define compute_bytes _ZN2at6detail30computeStorageNbytesContiguousEN3c108ArrayRefIlEEmm
#define round_up      _ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm

enum kind { DRIVER, BLOCK, TENSOR };

double pairs_burst_below(unsigned frames, int kind, unsigned pairs);

static uint64_t time_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void driver_pairs(unsigned pairs)
{
	uint64_t address;
	for (unsigned i = 0; i < pairs; i++) {
		cuMemAlloc_v2(&address, 4096);
		cuMemFree_v2(address);
	}
}

__attribute__((noinline)) static void allocate(uint64_t address, size_t bytes, bool is_tensor)
{
	if (is_tensor)
		round_up(bytes);
	report_usage((void *)address, (int64_t)bytes, 0, 0, CUDA_0);
	__asm__ volatile("" ::: "memory"); /* not a tail call */
}

static void block_pairs(unsigned pairs, bool is_tensor)
{
	static const int64_t sizes[] = {BLOCK_BYTES / 4};
	static __thread uint64_t segment, next;
	if (!segment) {
		cuMemAlloc_v2(&segment, SEGMENT_BYTES);
		for (; next < LIVE_BLOCKS; next++)
			report_usage((void *)(segment + next * BLOCK_BYTES), BLOCK_BYTES, 0, 0,
				     CUDA_0);
	}
	for (unsigned i = 0; i < pairs; i++, next++) {
		uint64_t new = next % (SEGMENT_BYTES / BLOCK_BYTES);
		uint64_t old = (next - LIVE_BLOCKS) % (SEGMENT_BYTES / BLOCK_BYTES);
		size_t bytes = is_tensor ? compute_bytes(sizes, 1, 4, 0) : BLOCK_BYTES;
		allocate(segment + new *BLOCK_BYTES, bytes, is_tensor);
		report_usage((void *)(segment + old * BLOCK_BYTES), -BLOCK_BYTES, 0, 0, CUDA_0);
	}
}

/* ns of processor time a pair, of one burst on this thread: others may be using the machine. */
static double pairs_burst(int kind, unsigned pairs)
{
	uint64_t start = time_ns(CLOCK_THREAD_CPUTIME_ID);
	if (kind == DRIVER)
		driver_pairs(pairs);
	else
		block_pairs(pairs, kind == TENSOR);
	return (double)(time_ns(CLOCK_THREAD_CPUTIME_ID) - start) / pairs;
}

/* The same, called through so many frames more. */
__attribute__((noinline)) double pairs_burst_below(unsigned frames, int kind, unsigned pairs)
{
	double each =
		frames ? pairs_burst_below(frames - 1, kind, pairs) : pairs_burst(kind, pairs);
	__asm__ volatile("" ::: "memory"); /* not a tail call */
	return each;
}

/* ---------- bursts on threads ---------- */

struct work {
	enum kind kind;
	unsigned pairs, bursts, pause_us;
	pthread_barrier_t *together;
	double *each; /* ns a pair, a burst */
};

static void *bursts(void *argument)
{
	struct work *work = argument;
	pairs_burst(work->kind, 16); /* starts the recording and makes this thread known */
	for (unsigned i = 0; i < work->bursts; i++) {
		usleep(work->pause_us);
		pthread_barrier_wait(work->together);
		work->each[i] = pairs_burst(work->kind, work->pairs);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void run_threads(const struct work *model, unsigned count, double *each)
{
	pthread_t threads[THREADS_MAX];
	struct work works[THREADS_MAX];
	pthread_barrier_t together;
	pthread_barrier_init(&together, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		works[i] = *model;
		works[i].together = &together;
		works[i].each = each + i * model->bursts;
		pthread_create(&threads[i], NULL, bursts, &works[i]);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void measure(const char *name, enum kind kind, unsigned threads)
{
	static double each[BURSTS * THREADS_MAX];
	struct work work = {.kind = kind,
			    .pairs = BURST_EVENTS / 2 / threads,
			    .bursts = BURSTS,
			    .pause_us = PAUSE_US};
	run_threads(&work, threads, each);
	unsigned all = BURSTS * threads;
	qsort(each, all, sizeof *each, compare);
	printf("%s %u %.2f\n", name, threads, each[all / 2]);
}

/* Seconds of processor time that the thread named memtrace has had; 0 when there is none. */
static double dump_thread_seconds(void)
{
	char path[300], text[64];
	unsigned long long ns = 0;
	const struct dirent *task;
	DIR *tasks = opendir("/proc/self/task");
	while (tasks && (task = readdir(tasks))) {
		snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
		FILE *comm = fopen(path, "r");
		bool is_ours =
			comm && fgets(text, sizeof text, comm) && !strcmp(text, "memtrace\n");
		if (comm)
			fclose(comm);
		snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
		FILE *times = is_ours ? fopen(path, "r") : NULL;
		if (times && fscanf(times, "%llu", &ns) != 1)
			ns = 0;
		if (times)
			fclose(times);
	}
	if (tasks)
		closedir(tasks);
	return (double)ns / 1e9;
}

/* What no recorder of events can do without: the time, by clock_gettime or by the processor's
 * counter, and a number of its own. */
static uint64_t sum;

static void read_clock(void)
{
	sum += time_ns(CLOCK_MONOTONIC);
}

static void read_counter(void)
{
	sum += __rdtsc();
}

static void add_atomically(void)
{
	__atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED);
}

static double once_ns(void (*what)(void))
{
	double best = 1e9;
	for (int round = 0; round < 20; round++) {
		uint64_t start = time_ns(CLOCK_THREAD_CPUTIME_ID);
		for (int i = 0; i < FLOOR_READINGS; i++)
			what();
		double each = (double)(time_ns(CLOCK_THREAD_CPUTIME_ID) - start) / FLOOR_READINGS;
		best = each < best ? each : best;
	}
	return best;
}

static void flood(unsigned threads, unsigned pairs)
{
	double each[THREADS_MAX];
	struct work work = {.kind = BLOCK, .pairs = pairs / threads, .bursts = 1};
	uint64_t start = time_ns(CLOCK_MONOTONIC);
	run_threads(&work, threads, each);
	double seconds = (double)(time_ns(CLOCK_MONOTONIC) - start) / 1e9;
	usleep(SETTLE_US);
	printf("flood %u %.4f %.4f\n", pairs / threads * threads * 2, seconds,
	       dump_thread_seconds());
}

/* ---------- memory ---------- */

static long rss_kib(void)
{
	char line[256];
	long kib = 0;
	FILE *status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof line, status))
		if (!strncmp(line, "VmRSS:", 6))
			kib = atol(line + 6);
	if (status)
		fclose(status);
	return kib;
}

static void live(unsigned count)
{
	uint64_t segment = 0;
	for (unsigned i = 0; i < count; i++) {
		unsigned place = i % (SEGMENT_BYTES / BLOCK_BYTES);
		if (!place)
			cuMemAlloc_v2(&segment, SEGMENT_BYTES);
		report_usage((void *)(segment + place * BLOCK_BYTES), BLOCK_BYTES, 0, 0, CUDA_0);
		if (i % BURST_EVENTS == BURST_EVENTS - 1)
			usleep(10000);
	}
	usleep(SETTLE_US);
	printf("live %ld\n", rss_kib());
}

int main(int argc, char **argv)
{
	cuInit(0);
	if (argc == 4 && !strcmp(argv[1], "flood")) {
		flood((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	} else if (argc == 3 && !strcmp(argv[1], "live")) {
		live((unsigned)atoi(argv[2]));
	} else {
		measure("driver", DRIVER, 1);
		measure("block", BLOCK, 1);
		measure("block", BLOCK, 2);
		measure("block", BLOCK, 4);
		measure("tensor", TENSOR, 1);
		printf("clock 1 %.2f\n", once_ns(read_clock));
		printf("counter 1 %.2f\n", once_ns(read_counter));
		printf("addition 1 %.2f\n", once_ns(add_atomically));
	}
	return 0;
}
