/* Preloaded before memtrace: passes what PyTorch's allocator says on to memtrace, or past it to
 * PyTorch, as the variable toggle_on says. So one process can be timed with and without memtrace in
 * turn, its allocator being in the same state. Counts block events, and times every 16th inside
 * memtrace: from here until memtrace forwards it to the next library, which is this file again,
 * compiled with -DBEHIND. What one reading of the counter takes is measured beside each, since it is
 * a part of what lies between two. One that took very long was interrupted and is left out. Tail
 * calls keep the caller's address, from which memtrace tells the owner. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define TIMED_EVERY       16
#define INTERRUPTED_TICKS 50000

void toggle_arrived(void);
uint64_t toggle_now(void);

#define PASS(result, library, symbol, parameters, arguments)                          \
	result symbol parameters;                                                     \
	result symbol parameters                                                      \
	{                                                                             \
		static struct way way;                                                \
		return ((__typeof__(symbol) *)find(&way, library, #symbol))arguments; \
	}

#define PASS_EVENT(symbol)                                                           \
	void symbol(void *pointer, int64_t bytes, size_t allocated, size_t reserved, \
		    uint64_t device);                                                \
	void symbol(void *pointer, int64_t bytes, size_t allocated, size_t reserved, \
		    uint64_t device)                                                 \
	{                                                                            \
		static struct way way;                                               \
		EVENT();                                                             \
		((__typeof__(symbol) *)find(&way, "libc10.so", #symbol))(            \
			pointer, bytes, allocated, reserved, device);                \
	}

struct way {
	void *memtrace, *pytorch;
};

static void *find_once(void **slot, void *from, const char *symbol)
{
	void *function = dlsym(from, symbol);
	__atomic_store_n(slot, function, __ATOMIC_RELAXED);
	return function;
}

#ifdef BEHIND
#define EVENT() toggle_arrived()

static void *find(struct way *way, const char *library, const char *symbol)
{
	void *function = __atomic_load_n(&way->pytorch, __ATOMIC_RELAXED);
	return function
		       ? function
		       : find_once(&way->pytorch, dlopen(library, RTLD_NOLOAD | RTLD_LAZY), symbol);
}
#else
#define EVENT() count_event()

uint64_t toggle_on, toggle_events, toggle_timed, toggle_ticks; /* ticks of the time stamp counter */
static __thread uint64_t started, reading __attribute__((tls_model("initial-exec")));

uint64_t toggle_now(void)
{
	return __builtin_ia32_rdtsc();
}

static void count_event(void)
{
	uint64_t number = __atomic_fetch_add(&toggle_events, 1, __ATOMIC_RELAXED);
	if (toggle_on && number % TIMED_EVERY == 0) {
		uint64_t before = toggle_now();
		started = toggle_now();
		reading = started - before;
	}
}

void toggle_arrived(void)
{
	uint64_t ticks = toggle_now() - started;
	if (!started)
		return;
	started = 0;
	if (ticks > INTERRUPTED_TICKS || reading > ticks)
		return;
	__atomic_fetch_add(&toggle_timed, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&toggle_ticks, ticks - reading, __ATOMIC_RELAXED);
}

static void *find(struct way *way, const char *library, const char *symbol)
{
	void **slot = toggle_on ? &way->memtrace : &way->pytorch;
	void *function = __atomic_load_n(slot, __ATOMIC_RELAXED);
	if (function)
		return function;
	return find_once(slot, toggle_on ? RTLD_NEXT : dlopen(library, RTLD_NOLOAD | RTLD_LAZY),
			 symbol);
}
#endif

PASS_EVENT(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)
PASS_EVENT(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)
#ifndef BEHIND
PASS(size_t, "libtorch_cpu.so", _ZN2at6detail30computeStorageNbytesContiguousEN3c108ArrayRefIlEEmm,
     (const int64_t *sizes, size_t dimensions, size_t item, size_t offset),
     (sizes, dimensions, item, offset))
PASS(size_t, "libtorch_cpu.so", _ZN2at6detail20computeStorageNbytesEN3c108ArrayRefIlEES3_mm,
     (const int64_t *sizes, size_t dimensions, const int64_t *strides, size_t stride_count,
      size_t item, size_t offset),
     (sizes, dimensions, strides, stride_count, item, offset))
PASS(void, "libtorch_cuda.so", _ZN2at6native17resize_bytes_cudaEPN3c1011StorageImplEm,
     (void *storage, size_t bytes), (storage, bytes))
#endif
