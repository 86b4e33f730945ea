/* Owns the producer's side: from a note to a published slot of the ring. Everything slow (stack, thread) is done
 * before the ticket; from the ticket to the publication there are a few stores and nothing else, so that a ticket
 * never waits for anything. The ticket is the event's place in the global order. */
#include "recorder/record.h"

#include <errno.h>
#include <unistd.h>

#include "recorder/device.h"
#include "recorder/hot.h"
#include "recorder/own_stack.h"
#include "recorder/probe.h"
#include "recorder/python.h"
#include "recorder/session.h"
#include "recorder/thread.h"

#define THREADS_MARGIN 1024 /* tickets taken at once after a look at the room: one a thread */
#define SLOTS_AHEAD 4
#define NO_TICKET UINT64_MAX

__thread struct thread_self thread_self __attribute__((tls_model("initial-exec")));

static void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static inline uint64_t room(const struct memtrace_live *live)
{
	uint64_t head = __atomic_load_n(&live->head, __ATOMIC_RELAXED);
	uint64_t used = head - __atomic_load_n(&live->consumed, __ATOMIC_ACQUIRE);
	return used < WRITER_RING_SLOTS - THREADS_MARGIN ? WRITER_RING_SLOTS - THREADS_MARGIN - used : 0;
}

/* First room, then a ticket: a ticket that could not be used would be a hole for ever. */
static bool room_is_made(struct session *session)
{
	struct patience patience = { .session = session };
	while (!room(session->writer.live))
		if (!dump_is_waited_for(&patience))
			return false;
	return true;
}

/* Out of the way of most events: the ring is, or was when last looked at, half full. */
__attribute__((noinline)) static bool look_for_room(struct session *session)
{
	struct memtrace_live *live = session->writer.live;
	uint64_t free_slots = room(live);
	__atomic_store_n(&live->consumed_seen, __atomic_load_n(&live->consumed, __ATOMIC_ACQUIRE), __ATOMIC_RELAXED);
	if (free_slots >= WRITER_RING_SLOTS / 2)
		return true;
	dump_wake(session);
	if (free_slots || room_is_made(session))
		return true;
	count(&live->lost);
	return false;
}

/* What was seen of `consumed` may be old, and then there is more room than it says. It lies beside the head, which
 * this thread must have anyway; the other changes on another core. */
static inline uint64_t take_ticket(struct session *session)
{
	struct memtrace_live *live = session->writer.live;
	uint64_t used = __atomic_load_n(&live->head, __ATOMIC_RELAXED) -
			__atomic_load_n(&live->consumed_seen, __ATOMIC_RELAXED);
	if (used >= WRITER_RING_SLOTS / 2 && !look_for_room(session))
		return NO_TICKET;
	return __atomic_fetch_add(&live->head, 1, __ATOMIC_RELAXED);
}

/* Slots were last touched by the dump thread. Asked for early, a slot is here when it is stored into; else the next
 * ticket would wait for it, since an atomic addition waits for earlier stores. */
static inline void fetch_slot(struct session *session, uint64_t ticket)
{
	const struct memtrace_slot *slot = &session->writer.ring[ticket & (WRITER_RING_SLOTS - 1)];
	__asm__ volatile("prefetchw %0" : : "m"(*slot));
}

/* What is worked out before the ticket is taken. */
struct prepared {
	uint64_t time_ns;
	uint32_t stack, thread;
	uint8_t flags;
};

static inline void publish(struct session *session, uint64_t ticket, const struct record *record,
			   const struct prepared *prepared)
{
	struct memtrace_slot *slot = &session->writer.ring[ticket & (WRITER_RING_SLOTS - 1)];
	slot->time_ns = prepared->time_ns;
	slot->address = record->address;
	slot->bytes = record->bytes;
	slot->extra = record->extra;
	slot->stream = record->stream;
	slot->stack = prepared->stack;
	slot->thread = prepared->thread;
	slot->what = (uint8_t)record->what;
	slot->space = (uint8_t)record->space;
	slot->device = record->device;
	slot->flags = prepared->flags;
	slot->status = record->status;
	__atomic_store_n(&slot->turn, ticket + 1, __ATOMIC_RELEASE);
}

static inline uint32_t thread_id(struct session *session)
{
	struct thread_self *self = &thread_self;
	if (self->generation != session->generation) {
		self->generation = session->generation;
		self->stack_key = 0;
		self->optimizer = 0;
		self->id = intern_thread(session);
	}
	return self->id;
}

/* A block's free says by its Python frames and its thread who let go; the native ones would double the cost. */
static inline bool wants_native(const struct session *session, const struct record *record)
{
	return record->frame && record->what != MEMTRACE_BLOCK_FREE &&
	       (record->space != MEMTRACE_SPACE_BLOCK || record->bytes >= session->config.native_min_bytes);
}

static bool has_blocks; /* an event of PyTorch's allocator was recorded */

static void tell_optimizer(struct session *, uint32_t stack);

static inline void note_block(struct session *session, const struct record *record, const struct interned *found)
{
	if (record->what != MEMTRACE_BLOCK_FREE && record->what != MEMTRACE_BLOCK_ALLOC)
		return;
	if (__builtin_expect(found->bits & PROBE_OPTIMIZER, 0))
		tell_optimizer(session, found->stack);
	if (record->what == MEMTRACE_BLOCK_FREE) {
		probe_note_free(found->bits);
	} else {
		probe_note_block(found->bits, record->address);
		if (!has_blocks)
			__atomic_store_n(&has_blocks, true, __ATOMIC_RELAXED);
	}
}

static inline void prepare(struct session *session, const struct record *record, struct prepared *prepared)
{
	prepared->thread = thread_id(session);
	struct interned found = intern_stack(session, record->frame, wants_native(session, record));
	prepared->stack = found.stack;
	note_block(session, record, &found);
	if (found.is_finalizing)
		prepared->flags |= MEMTRACE_AT_EXIT;
	prepared->time_ns = session_moment(session);
}

/* The session may have begun because of it, and so later; whether the program's code had ended then, nobody knows. */
static void prepare_told(struct session *session, const struct record *record, struct prepared *prepared)
{
	prepared->thread = record->is_of_other ? 0 : thread_id(session);
	prepared->time_ns = record->at_ns > session->start_ns ? record->at_ns - session->start_ns : 0;
}

static inline uint64_t record_in(struct session *session, const struct record *record)
{
	struct prepared prepared = { .flags = record->flags };
	if (record->at_ns)
		prepare_told(session, record, &prepared);
	else
		prepare(session, record, &prepared);
	uint64_t ticket = take_ticket(session);
	if (ticket == NO_TICKET)
		return ticket;
	publish(session, ticket, record, &prepared);
	fetch_slot(session, ticket + SLOTS_AHEAD);
	if ((prepared.flags & MEMTRACE_AT_EXIT) && !session->writer.live->frozen)
		session->writer.live->frozen = ticket + 1;
	return ticket;
}

/* Before the event of a block, where it is another's step than the last one that was told. */
__attribute__((noinline)) static void tell_optimizer(struct session *session, uint32_t stack)
{
	const struct record record = {
		.what = MEMTRACE_PHASE,
		.device = MEMTRACE_DEVICE_UNKNOWN,
		.address = intern_optimizer(session, stack),
	};
	if (!record.address || record.address == thread_self.optimizer)
		return;
	thread_self.optimizer = record.address;
	record_in(session, &record);
}

/* Only what can leave memory behind makes a file; a program that merely asks around gets none. */
static bool starts_session(enum memtrace_what what)
{
	return what == MEMTRACE_ALLOC || what == MEMTRACE_OOM || what == MEMTRACE_FAILED || what == MEMTRACE_RESERVE ||
	       what == MEMTRACE_BLOCK_ALLOC || what == MEMTRACE_GRAPH_ALLOC || what == MEMTRACE_BLOCK_OOM || what == MEMTRACE_POOL_CREATE ||
	       what == MEMTRACE_WITNESS_ALLOC;
}

/* On entry the thread becomes busy: what a signal handler allocates meanwhile goes unrecorded, counted as lost. */
static inline bool enter(void)
{
	const void *frame = __builtin_frame_address(0);
	if (thread_self.busy && frame < thread_self.busy_frame) {
		struct session *session = thread_self.generation ? session_current() : NULL;
		if (session)
			count(&session->writer.live->lost);
		return false;
	}
	thread_self.busy = 1;
	thread_self.busy_frame = frame;
	return true;
}

static inline void leave(void)
{
	thread_self.busy = 0;
}

MT_HOT uint64_t record_event(const struct record *record)
{
	int saved = errno;
	uint64_t ticket = NO_TICKET;
	if (!enter())
		return ticket;
	struct session *session = session_current();
	if (!session)
		session = session_get(starts_session(record->what));
	if (session)
		ticket = record_in(session, record);
	leave();
	errno = saved;
	return ticket;
}

int record_reading(struct session *session, struct record *record, uint64_t begun)
{
	struct prepared prepared = { .flags = python_is_finalizing() ? MEMTRACE_AT_EXIT : 0 };
	if (!room(session->writer.live))
		return -EAGAIN;
	prepared.time_ns = session_now(session);
	uint64_t ticket = __atomic_fetch_add(&session->writer.live->head, 1, __ATOMIC_SEQ_CST);
	bool is_exact = calls_begun(&session_anchor->calls) == begun;
	record->status = !is_exact;
	publish(session, ticket, record, &prepared);
	return is_exact ? 0 : -EAGAIN;
}

void record_device_uuid(unsigned ordinal, const void *uuid)
{
	device_learn_uuid(ordinal, uuid);
}

/* Python frames only. */
struct record_look record_look(void)
{
	int saved = errno;
	struct record_look look = { .bits = 0 };
	struct session *session = session_current();
	if (session && enter()) {
		thread_id(session);
		struct interned found = intern_stack(session, NULL, false);
		look.bits = found.bits;
		look.step = session->intern.stack_steps[found.stack];
		look.optimizer = intern_optimizer(session, found.stack);
		leave();
	}
	errno = saved;
	return look;
}

bool record_has_blocks(void)
{
	return __atomic_load_n(&has_blocks, __ATOMIC_RELAXED);
}

void record_device(unsigned ordinal, const char *name, uint64_t total_bytes)
{
	int saved = errno;
	device_learn(ordinal, name, total_bytes);
	struct session *session = session_current();
	if (session && enter()) {
		intern_device(session, ordinal, name, total_bytes);
		leave();
	}
	errno = saved;
}

uint32_t record_text(const char *text)
{
	int saved = errno;
	uint32_t id = 0;
	struct session *session = session_current();
	if (session && enter()) {
		id = intern_text(session, text);
		leave();
	}
	errno = saved;
	return id;
}

void record_lost(uint64_t lost)
{
	struct session *session = session_current();
	if (session && lost)
		__atomic_fetch_add(&session->writer.live->lost, lost, __ATOMIC_RELAXED);
}

void record_loader_changed(void)
{
	python_expect();
}

MT_HOT bool record_has_started(void)
{
	struct session *session = session_current();
	return session && __atomic_load_n(&session->writer.live->head, __ATOMIC_RELAXED) > 0;
}

#define CLOSE_LOOK_NS  1000000
#define CLOSE_LOOKS    2000 /* then the trace stays as it is */

static pid_t closing_pid; /* not 0: a thread of this process closes the trace; a child that it forks meanwhile does not */

/* A thread that ends the process would cut off another that ends it too and is writing the last. */
static void wait_for_close(void)
{
	const struct timespec look = { .tv_nsec = CLOSE_LOOK_NS };
	for (unsigned i = 0; i < CLOSE_LOOKS && !thread_self.busy &&
			     __atomic_load_n(&closing_pid, __ATOMIC_ACQUIRE) == getpid(); i++)
		nanosleep(&look, NULL);
}

struct close {
	struct session *session;
	enum memtrace_ended how;
	int status;
};

static void close_session(void *argument)
{
	const struct close *close = argument;
	uint32_t busy = thread_self.busy;
	thread_self.busy = 1;
	thread_self.busy_frame = (const void *)UINTPTR_MAX;
	__atomic_store_n(&closing_pid, getpid(), __ATOMIC_RELEASE);
	dump_finish(close->session, close->how, close->status);
	__atomic_store_n(&closing_pid, 0, __ATOMIC_RELEASE);
	thread_self.busy = busy;
}

void record_close(enum memtrace_ended how, int status)
{
	int saved = errno;
	struct close close = { session_end(), how, status };
	if (close.session)
		own_stack_run(close_session, &close);
	else
		wait_for_close();
	errno = saved;
}
