/*
 * What this process has under way with other ranks: a list of works, in the order in which they
 * were asked for. A work reads what it sends as soon as no earlier one still writes to it, says it,
 * and ends when it has heard all that it needs (nccl_exchange.c). Nobody waits when he asks for
 * work; the driver waits for gates (sim_gate.h) when the host does.
 *
 * Owns the list, the gates' numbers, and a thread that moves the list on while no other does. Must
 * never call the driver's API with the list locked, only its table.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "sim.h"
#include "sim_nccl.h"

#define CHECK_MS     100 /* between looks at who is gone */
#define IDLE_TICK_MS 5   /* of the thread, while something is under way */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;
static struct nccl_work *works;
static uint64_t last_gate;
static unsigned shut_count; /* works in the list; read by the driver */

/* ---- what comes before what ---- */

static bool overlaps(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

static bool writes(const struct nccl_work *work, const void *address, size_t bytes)
{
	return overlaps(work->receive, work->receive_bytes, address, bytes);
}

static bool will_read(const struct nccl_work *work, const void *address, size_t bytes)
{
	return !work->is_read && overlaps(work->send, work->send_bytes, address, bytes);
}

/* What has failed neither reads nor writes any more. */
static bool has_failed(const struct nccl_work *work)
{
	return nccl_room_result(work->comm->room, NULL) != NCCL_SUCCESS;
}

static bool may_read(const struct nccl_work *work)
{
	for (const struct nccl_work *earlier = works; earlier != work; earlier = earlier->next) {
		if (!has_failed(earlier) && writes(earlier, work->send, work->send_bytes))
			return false;
	}
	return true;
}

static bool may_write(const struct nccl_work *work)
{
	for (const struct nccl_work *earlier = works; earlier != work; earlier = earlier->next) {
		if (!has_failed(earlier) &&
		    (writes(earlier, work->receive, work->receive_bytes) ||
		     will_read(earlier, work->receive, work->receive_bytes)))
			return false;
	}
	return true;
}

/* A receiver takes messages in order, so that one slot stands for all before it. */
static bool is_next(const struct nccl_work *work)
{
	for (const struct nccl_work *earlier = works; earlier != work; earlier = earlier->next) {
		if (earlier->comm == work->comm && earlier->lane == work->lane)
			return false;
	}
	return true;
}

/* ---- the list; locked ---- */

static void work_free(struct nccl_work *work)
{
	free(work->contents);
	free(work);
}

static void unlink_work(struct nccl_work **link)
{
	struct nccl_work *work = *link;

	*link = work->next;
	__atomic_sub_fetch(&shut_count, 1, __ATOMIC_ACQ_REL);
	work_free(work);
}

static bool may_end(const struct nccl_work *work)
{
	return work->message.kind == NCCL_SEND || (is_next(work) && may_write(work));
}

/* What has failed stays in the list, for those who ask. True: it is done and gone. */
static bool move(struct nccl_work **link)
{
	struct nccl_work *work = *link;

	if (has_failed(work))
		return false;
	if (!work->is_read && may_read(work))
		nccl_read(work);
	if (!work->is_said)
		work->is_said = nccl_say(work);
	if (!work->is_said || !may_end(work) || !nccl_end(work))
		return false;
	unlink_work(link);
	return true;
}

/* The end of one can be the beginning of an earlier one's: until nothing moves. */
static void move_all(void)
{
	bool has_moved = true;

	while (has_moved) {
		has_moved = false;
		for (struct nccl_work **link = &works; *link != NULL;) {
			bool is_gone = move(link);
			has_moved = has_moved || is_gone;
			if (!is_gone)
				link = &(*link)->next;
		}
	}
}

static struct nccl_work *first_of_gate(uint64_t gate)
{
	struct nccl_work *work = works;

	while (work != NULL && work->gate != gate)
		work = work->next;
	return work;
}

static struct nccl_work *first_with(uint64_t address, size_t bytes)
{
	struct nccl_work *work = works;

	while (work != NULL && !writes(work, (void *)address, bytes) &&
	       !will_read(work, (void *)address, bytes))
		work = work->next;
	return work;
}

static void check_all(void)
{
	static uint64_t checked_ns;
	uint64_t now_ns = nccl_clock_ns();

	if (now_ns - checked_ns < CHECK_MS * 1000000U)
		return;
	checked_ns = now_ns;
	for (const struct nccl_work *work = works; work != NULL; work = work->next) {
		if (!has_failed(work))
			nccl_check(work);
	}
}

/* ---- waiting ---- */

/* Locked; unlocked while it waits. The work may be gone then, and its communicator too. */
static void wait_a_little(const struct nccl_work *work, long limit_ms)
{
	struct nccl_room *room = work->comm->room;
	uint64_t gate = work->gate;
	uint32_t heard = nccl_room_bell(room);

	move_all();
	if (first_of_gate(gate) == NULL)
		return;
	nccl_room_hold(room);
	pthread_mutex_unlock(&lock);
	nccl_room_wait(room, heard, limit_ms);
	nccl_room_drop(room);
	pthread_mutex_lock(&lock);
	move_all();
	check_all();
}

static enum sim_gate_state state_of(const struct nccl_work *work)
{
	if (work == NULL)
		return SIM_GATE_OPEN;
	return has_failed(work) ? SIM_GATE_FAILED : SIM_GATE_SHUT;
}

static bool has_patience(const struct nccl_work *work, uint64_t began_ns, long patience_ms)
{
	if (patience_ms < 0)
		return true;
	return !work->is_hurried && nccl_clock_ns() - began_ns < (uint64_t)patience_ms * 1000000U;
}

static enum sim_gate_state wait_gate(uint64_t gate, long patience_ms)
{
	uint64_t began_ns = nccl_clock_ns();
	struct nccl_work *work;

	pthread_mutex_lock(&lock);
	move_all();
	while (state_of(work = first_of_gate(gate)) == SIM_GATE_SHUT &&
	       has_patience(work, began_ns, patience_ms))
		wait_a_little(work, IDLE_TICK_MS);
	enum sim_gate_state state = state_of(work);
	/* Nobody waits for it twice: it may need what the one who asks does next. */
	if (state == SIM_GATE_SHUT && patience_ms > 0)
		work->is_hurried = true;
	pthread_mutex_unlock(&lock);
	return state;
}

static void settle(uint64_t address, size_t bytes)
{
	struct nccl_work *work;

	pthread_mutex_lock(&lock);
	while (state_of(work = first_with(address, bytes)) == SIM_GATE_SHUT)
		wait_a_little(work, IDLE_TICK_MS);
	pthread_mutex_unlock(&lock);
}

/* A rank must not keep the others waiting for what it has to say when something else ended. */
static void *move_on(void *unused)
{
	const struct timespec tick = {0, IDLE_TICK_MS * 1000000};

	for (;;) {
		pthread_mutex_lock(&lock);
		while (works == NULL)
			pthread_cond_wait(&has_work, &lock);
		move_all();
		check_all();
		pthread_mutex_unlock(&lock);
		nanosleep(&tick, NULL);
	}
	return unused;
}

static void begin(void)
{
	static const struct sim_gate_keeper keeper = {wait_gate, settle, &shut_count};
	const struct sim_gate_table *gates = nccl_gates();
	sigset_t all, before;
	pthread_t thread;

	if (gates != NULL)
		gates->keep(&keeper);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, move_on, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- for the calls ---- */

static void number(struct nccl_work *work)
{
	struct nccl_comm *comm = work->comm;
	int peer = work->message.peer;

	work->is_read = work->message.kind == NCCL_RECEIVE;
	work->began_ns = nccl_clock_ns();
	switch (work->message.kind) {
	case NCCL_SEND:
		work->lane = nccl_lane_between(comm->room, comm->rank, peer);
		work->number = comm->sent_count[peer]++;
		break;
	case NCCL_RECEIVE:
		work->lane = nccl_lane_between(comm->room, peer, comm->rank);
		work->number = comm->received_count[peer]++;
		break;
	default:
		work->lane = comm->rank;
		work->number = comm->call_count++;
		break;
	}
}

static void append(struct nccl_work *work, uint64_t gate)
{
	struct nccl_work **link = &works;

	while (*link != NULL)
		link = &(*link)->next;
	work->gate = gate;
	work->next = NULL;
	number(work);
	__atomic_add_fetch(&shut_count, 1, __ATOMIC_ACQ_REL);
	*link = work;
}

static void append_locked(struct nccl_work *work, uint64_t gate)
{
	pthread_mutex_lock(&lock);
	append(work, gate);
	pthread_mutex_unlock(&lock);
}

/* In a graph, or without a driver, nothing happens now. */
static void put_on_stream(struct nccl_work *work, uint64_t gate)
{
	const struct sim_gate_table *gates = nccl_gates();
	CUstream stream = work->stream;

	nccl_note_work(stream);
	if (gates == NULL || gates->is_captured(stream)) {
		work_free(work);
		return;
	}
	append_locked(work, gate);
	gates->put(stream, gate);
}

int nccl_work_submit(struct nccl_work *list, uint64_t *gate)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct nccl_work *next;

	pthread_once(&once, begin);
	uint64_t number = __atomic_add_fetch(&last_gate, 1, __ATOMIC_RELAXED);
	for (struct nccl_work *work = list; work != NULL; work = next) {
		next = work->next;
		if (work->message.kind == NCCL_SPLIT) /* the host's own */
			append_locked(work, number);
		else
			put_on_stream(work, number);
	}
	pthread_mutex_lock(&lock);
	move_all();
	pthread_cond_signal(&has_work);
	pthread_mutex_unlock(&lock);
	if (gate != NULL)
		*gate = number;
	return NCCL_SUCCESS;
}

int nccl_work_wait(struct nccl_comm *comm, uint64_t gate)
{
	if (wait_gate(gate, SIM_GATE_FOREVER) != SIM_GATE_FAILED)
		return NCCL_SUCCESS;
	int result = nccl_room_result(comm->room, NULL);
	return result ? result : NCCL_REMOTE_ERROR;
}

static struct nccl_work *first_of_comm(const struct nccl_comm *comm)
{
	struct nccl_work *work = works;

	while (work != NULL && work->comm != comm)
		work = work->next;
	return work;
}

void nccl_work_drain(struct nccl_comm *comm)
{
	struct nccl_work *work;

	pthread_mutex_lock(&lock);
	while (state_of(work = first_of_comm(comm)) == SIM_GATE_SHUT)
		wait_a_little(work, IDLE_TICK_MS);
	pthread_mutex_unlock(&lock);
}

void nccl_work_drop(struct nccl_comm *comm)
{
	pthread_mutex_lock(&lock);
	for (struct nccl_work **link = &works; *link != NULL;) {
		if ((*link)->comm == comm)
			unlink_work(link);
		else
			link = &(*link)->next;
	}
	pthread_mutex_unlock(&lock);
}
