/*
 * What this process has under way with other ranks: a list of works, in the order in which they were
 * asked for. A work reads what it sends as soon as no earlier one still writes to it, says it in the
 * communicator's room, and ends when it has heard all that it needs. Nobody waits when he asks for
 * work; the driver waits for gates (sim_gate.h) when the host does.
 *
 * Owns the list, the gates' numbers, and a thread that moves the list on while no other does. Rooms
 * are failed here: for a call that does not match, a rank that is gone, and after SIMGPU_NCCL_TIMEOUT
 * seconds. Must never call the driver's API with the list locked, only its table.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"
#include "sim_nccl.h"

#define EAGER_BYTES  (512 * SIM_KIB) /* a send up to this size needs no receiver to end */
#define TIMEOUT_S    1800
#define CHECK_MS     100 /* between looks at who is gone */
#define IDLE_TICK_MS 5   /* of the thread, while something is under way */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;
static struct nccl_work *works;
static uint64_t last_gate;
static unsigned shut_count; /* works in the list; read by the driver */

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

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

/* ---- saying ---- */

static bool is_zeros(const char *contents, size_t bytes)
{
	return contents[0] == 0 && memcmp(contents, contents + 1, bytes - 1) == 0;
}

static void read_contents(struct nccl_work *work)
{
	const struct sim_gate_table *gates = nccl_gates();
	struct nccl_message *message = &work->message;
	size_t bytes = work->send_bytes;

	work->is_read = true;
	if (gates == NULL || bytes == 0 || bytes > NCCL_CONTENTS_BYTES)
		return;
	work->contents = malloc(bytes);
	if (work->contents == NULL ||
	    !gates->read((uintptr_t)work->send, work->contents, bytes) ||
	    is_zeros(work->contents, bytes))
		return;
	message->contents_bytes = bytes;
	if (work->factor != 1)
		nccl_scale(work->contents, bytes / nccl_type_bytes(message->type), message->type,
			   work->factor);
}

static bool say(struct nccl_work *work)
{
	if (!work->is_read && may_read(work))
		read_contents(work);
	if (!work->is_read || !nccl_room_say(work->comm->room, work->lane, work->number,
					     &work->message, work->contents))
		return false;
	free(work->contents);
	work->contents = NULL;
	return true;
}

/* ---- hearing ---- */

static bool is_between_two(const struct nccl_work *work)
{
	return work->message.kind >= NCCL_SEND;
}

static int lane_of(const struct nccl_work *work, int rank)
{
	return is_between_two(work) ? work->lane : nccl_lane_of(work->comm->room, rank);
}

/* Ranks whose messages it needs: `first` to `end`. */
static void needed(const struct nccl_work *work, int *first, int *end)
{
	*first = is_between_two(work) ? work->message.peer : 0;
	*end = is_between_two(work) ? *first + 1 : work->comm->rank_count;
}

static bool is_alike(const struct nccl_work *work, const struct nccl_message *other)
{
	const struct nccl_message *own = &work->message;

	if (is_between_two(work)) /* sizes alone must be the same */
		return own->count * nccl_type_bytes(own->type) ==
		       other->count * nccl_type_bytes(other->type);
	return own->kind == other->kind && own->type == other->type &&
	       own->operation == other->operation && own->peer == other->peer &&
	       own->count == other->count;
}

static void complain(const struct nccl_work *work, int rank, const struct nccl_message *other)
{
	char own_text[64], other_text[64];

	nccl_describe(&work->message, own_text, sizeof(own_text));
	nccl_describe(other, other_text, sizeof(other_text));
	nccl_room_fail(work->comm->room, NCCL_INVALID_USAGE,
		       "NCCL: call %llu of a communicator of %d is %s on rank %d, but %s on rank %d"
		       " (or other root or operation)",
		       (unsigned long long)work->number + 1, work->comm->rank_count, own_text,
		       work->comm->rank, other_text, rank);
}

/* All that it needs was said: parts of it. */
static bool hear(const struct nccl_work *work, const void **parts)
{
	struct nccl_room *room = work->comm->room;
	int first, end;

	needed(work, &first, &end);
	for (int rank = first; rank < end; rank++) {
		const struct nccl_message *other = nccl_room_hear(
			room, lane_of(work, rank), work->number, &parts[rank - first]);
		if (other == NULL)
			return false;
		if (is_alike(work, other))
			continue;
		complain(work, rank, other);
		return false;
	}
	return true;
}

static void take(const struct nccl_work *work)
{
	struct nccl_room *room = work->comm->room;

	if (is_between_two(work))
		nccl_room_take(room, work->lane, work->number + 1);
	else
		nccl_room_take_all(room, work->comm->rank, work->number + 1);
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

static bool end_send(const struct nccl_work *work)
{
	return work->send_bytes <= EAGER_BYTES ||
	       nccl_room_is_taken(work->comm->room, work->lane, work->number + 1);
}

static bool end(const struct nccl_work *work)
{
	const void *parts[work->comm->rank_count];

	if (work->message.kind == NCCL_SEND)
		return end_send(work);
	if (!is_next(work) || !may_write(work) || !hear(work, parts))
		return false;
	nccl_deliver(work, parts);
	take(work);
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

/* What has failed stays in the list, for those who ask. True: it is done and gone. */
static bool move(struct nccl_work **link)
{
	struct nccl_work *work = *link;

	if (has_failed(work))
		return false;
	if (!work->is_said)
		work->is_said = work->message.kind == NCCL_RECEIVE || say(work);
	if (!work->is_said || !end(work))
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

/* ---- those who do not come; locked ---- */

static bool has_said(const struct nccl_work *work, int rank)
{
	const void *contents;
	struct nccl_room *room = work->comm->room;

	if (work->message.kind == NCCL_SEND)
		return nccl_room_is_taken(room, work->lane, work->number + 1);
	return nccl_room_hear(room, lane_of(work, rank), work->number, &contents) != NULL;
}

static void fail_for(const struct nccl_work *work, int rank, bool is_gone, long waited_s)
{
	char text[64];
	const char *format = is_gone ? "NCCL: rank %d of %d is gone and never came to call %llu, %s, in "
				       "which rank %d waits for it" :
				       "NCCL: rank %d of %d did not come to call %llu, %s, in which rank %d "
				       "waited for it %ld s (SIMGPU_NCCL_TIMEOUT)";

	nccl_describe(&work->message, text, sizeof(text));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	nccl_room_fail(work->comm->room, NCCL_REMOTE_ERROR, format, rank, work->comm->rank_count,
		       (unsigned long long)work->number + 1, text, work->comm->rank, waited_s);
#pragma GCC diagnostic pop
}

static void check(const struct nccl_work *work)
{
	long waited_s = (long)((clock_ns() - work->began_ns) / 1000000000U);
	bool is_late = waited_s >= sim_env_number("SIMGPU_NCCL_TIMEOUT", TIMEOUT_S);
	int first, end;

	needed(work, &first, &end);
	for (int rank = first; rank < end; rank++) {
		/* looked at in this order: who says his last word and goes is not missed */
		bool is_gone = nccl_room_is_gone(work->comm->room, rank);
		if ((is_gone || is_late) && !has_said(work, rank)) {
			fail_for(work, rank, is_gone, waited_s);
			return;
		}
	}
}

static void check_all(void)
{
	static uint64_t checked_ns;
	uint64_t now_ns = clock_ns();

	if (now_ns - checked_ns < CHECK_MS * 1000000U)
		return;
	checked_ns = now_ns;
	for (const struct nccl_work *work = works; work != NULL; work = work->next) {
		if (!has_failed(work))
			check(work);
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
	return !work->is_hurried && clock_ns() - began_ns < (uint64_t)patience_ms * 1000000U;
}

static enum sim_gate_state wait_gate(uint64_t gate, long patience_ms)
{
	uint64_t began_ns = clock_ns();
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
	work->began_ns = clock_ns();
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
		work->lane = nccl_lane_of(comm->room, comm->rank);
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
