/* What the programs of this folder need from C: threads that Python does not know, and locks that
 * are held while another thread allocates. Nothing here waits for ever: a thread that is kept
 * waiting is reported. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 600

int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);

/* Allocates and frees `count` times, the first with `bytes` bytes, each next one byte more. */
void allocate(size_t bytes, unsigned count);
void allocate_for_ever(void);
/* Returns when threads have been so often through the loop of allocate_for_ever(). */
void await_rounds(unsigned count);
/* On a thread of its own: allocates `bytes`, calls back, and allocates bytes + 1. */
void allocate_on_foreign_thread(size_t bytes, void (*callback)(void));
/* Allocates as soon as another thread is in hold(), and never before. */
void allocate_while_held(size_t bytes, unsigned count);
/* Waits until another thread is in there: 1, or 0 if none comes. */
int await_ready(void);
/* Lets it go on; returns only when it is through: 1, or 0 if it did not get through. */
int hold(void);
int hold_in_constructor(const char *library); /* a library that calls hold() in its constructor */
int hold_in_iteration(void);                  /* in a callback of dl_iterate_phdr */

void allocate(size_t bytes, unsigned count)
{
	uint64_t address;
	for (unsigned i = 0; i < count; i++) {
		cuMemAlloc_v2(&address, bytes + i);
		cuMemFree_v2(address);
	}
}

static unsigned rounds;

void allocate_for_ever(void)
{
	for (;; usleep(500)) {
		allocate(1, 10);
		__atomic_fetch_add(&rounds, 1, __ATOMIC_SEQ_CST);
	}
}

void await_rounds(unsigned count)
{
	while (__atomic_load_n(&rounds, __ATOMIC_SEQ_CST) < count)
		usleep(500);
}

/* ---------- foreign threads ---------- */

struct foreign {
	size_t bytes;
	void (*callback)(void);
};

static void *foreign_main(void *argument)
{
	const struct foreign *foreign = argument;
	allocate(foreign->bytes, 1);
	foreign->callback();
	allocate(foreign->bytes + 1, 1);
	return NULL;
}

void allocate_on_foreign_thread(size_t bytes, void (*callback)(void))
{
	struct foreign foreign = {bytes, callback};
	pthread_t thread;
	if (pthread_create(&thread, NULL, foreign_main, &foreign))
		abort();
	pthread_join(thread, NULL);
}

/* ---------- held locks ---------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static enum { IDLE, READY, GO, DONE } stage;
static int held_well;

static void set_stage(int next)
{
	pthread_mutex_lock(&lock);
	stage = next;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static int await_stage(int wanted)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&lock);
	while ((int)stage < wanted && !pthread_cond_timedwait(&changed, &lock, &until))
		continue;
	int reached = (int)stage >= wanted;
	pthread_mutex_unlock(&lock);
	return reached;
}

void allocate_while_held(size_t bytes, unsigned count)
{
	set_stage(READY);
	if (await_stage(GO))
		allocate(bytes, count);
	set_stage(DONE);
}

int await_ready(void)
{
	return await_stage(READY);
}

int hold(void)
{
	held_well = await_stage(READY);
	set_stage(GO);
	held_well = held_well && await_stage(DONE);
	stage = IDLE;
	return held_well;
}

int hold_in_constructor(const char *library)
{
	held_well = 0;
	return dlopen(library, RTLD_NOW) && held_well;
}

static int hold_once(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	(void)info, (void)bytes, (void)unused;
	hold();
	return 1;
}

int hold_in_iteration(void)
{
	held_well = 0;
	dl_iterate_phdr(hold_once, NULL);
	return held_well;
}
