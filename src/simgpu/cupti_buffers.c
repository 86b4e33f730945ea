/*
 * The buffers of the stand-in libcupti. A client is asked for a buffer on the thread whose call is
 * recorded, and gets it back on a thread of ours, full or at a flush. Owns that thread, which
 * sleeps until there is something to hand over. Must never lose a record unless the client gives
 * no buffer.
 */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "sim_cupti.h"

#define WAITING_MAX 4096 /* full buffers that the client has not got back */

struct buffer {
	uint8_t *bytes;
	size_t room, used, record_count, record_limit;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static struct buffer current;
static struct buffer waiting[WAITING_MAX]; /* a ring */
static size_t first_waiting, waiting_count;
static bool is_handing_over, has_worker;
static size_t dropped;
static uint64_t last_ns;

uint64_t buffers_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	pthread_mutex_lock(&lock);
	last_ns = ns > last_ns ? ns : last_ns + 1;
	ns = last_ns;
	pthread_mutex_unlock(&lock);
	return ns;
}

/* ---- the worker ---- */

static void hand_over(void)
{
	struct buffer buffer = waiting[first_waiting];
	CUpti_BuffersCallbackCompleteFunc call = complete;

	first_waiting = (first_waiting + 1) % WAITING_MAX;
	waiting_count--;
	is_handing_over = true;
	pthread_mutex_unlock(&lock);
	call(NULL, 0, buffer.bytes, buffer.room, buffer.used);
	pthread_mutex_lock(&lock);
	is_handing_over = false;
	pthread_cond_broadcast(&changed);
}

static void *work(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (waiting_count == 0)
			pthread_cond_wait(&changed, &lock);
		hand_over();
	}
	return NULL;
}

static void start_worker(void)
{
	pthread_t thread;

	if (has_worker || pthread_create(&thread, NULL, work, NULL) != 0)
		return;
	pthread_detach(thread);
	has_worker = true;
}

void buffers_set_callbacks(CUpti_BuffersCallbackRequestFunc request_wanted,
			   CUpti_BuffersCallbackCompleteFunc complete_wanted)
{
	pthread_mutex_lock(&lock);
	request = request_wanted;
	complete = complete_wanted;
	pthread_mutex_unlock(&lock);
}

/* ---- filling ---- */

static void retire_current(void)
{
	if (current.used == 0)
		return;
	waiting[(first_waiting + waiting_count++) % WAITING_MAX] = current;
	memset(&current, 0, sizeof(current));
	pthread_cond_broadcast(&changed);
}

static bool has_room(size_t bytes)
{
	bool is_full = current.record_limit != 0 && current.record_count == current.record_limit;
	return current.bytes != NULL && !is_full && current.room - current.used >= bytes;
}

static bool make_room(size_t bytes)
{
	if (has_room(bytes))
		return true;
	retire_current();
	start_worker();
	if (request == NULL || !has_worker || waiting_count == WAITING_MAX)
		return false;
	if (current.bytes == NULL)
		request(&current.bytes, &current.room, &current.record_limit);
	return has_room(bytes);
}

void buffers_add(const void *record, size_t bytes)
{
	pthread_mutex_lock(&lock);
	if (make_room(bytes)) {
		memcpy(current.bytes + current.used, record, bytes);
		current.used += bytes;
		current.record_count++;
		if (current.record_count == current.record_limit)
			retire_current();
	} else {
		dropped++;
	}
	pthread_mutex_unlock(&lock);
}

void buffers_flush(void)
{
	pthread_mutex_lock(&lock);
	retire_current();
	while (has_worker && (waiting_count > 0 || is_handing_over))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

size_t buffers_take_dropped(void)
{
	pthread_mutex_lock(&lock);
	size_t count = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return count;
}
