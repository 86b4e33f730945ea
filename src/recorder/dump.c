/* Owns the consumer's side of the ring. The cursor is stored only after the event is in the window, so a kill
 * between the two costs nothing. A ticket that stays unpublished while later ones are (its thread was killed in
 * between) is given up after five seconds of sleeps, not of the clock: a stopped process must not lose what its
 * threads will publish when they go on. */
#include "recorder/dump.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "model/model.h"
#include "recorder/checkpoint.h"
#include "recorder/name_stacks.h"
#include "recorder/notes.h"
#include "recorder/say.h"
#include "recorder/session.h"
#include "recorder/thread.h"
#include "trace/defs.h"

#define OOM_WAIT_NS 500000000u /* for a reading, before it is told without */
#define WAIT_STEP_NS 50000
#define WAIT_STEP_MAX_NS 3000000
#define CURSOR_STRIDE 256   /* events between two stores of the cursor */
#define BATCH_EVENTS 16384  /* before the thread looks at its orders again */
#define SLEEP_MIN_NS 10000000u /* shorter ones cost more than they help: 350 ns an event against 240 */
#define SLEEP_MAX_NS 100000000u
#define HOLE_MAX_NS 5000000000u
#define THREAD_STACK_BYTES (512u << 10)
#define STOP_WAIT_NS 2000000000u /* without progress */
#define STOP_MOST_NS 20000000000u

static void futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec timeout = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &timeout, NULL, 0);
}

void dump_wake(struct session *session)
{
	struct dump *dump = &session->dump;
	if (!__atomic_load_n(&dump->sleeping, __ATOMIC_SEQ_CST))
		return;
	__atomic_fetch_add(&dump->wakes, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &dump->wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* ---------- definitions ---------- */

static void read_half(struct session *session, unsigned i)
{
	struct dump *dump = &session->dump;
	struct memtrace_definitions_window *half = session->writer.halves[i];
	if (!__atomic_load_n(&half->state, __ATOMIC_ACQUIRE))
		return;
	if (dump->half_order[i] != half->order) {
		dump->half_order[i] = half->order;
		dump->half_read[i] = 0;
	}
	uint64_t used = __atomic_load_n(&half->used_bytes, __ATOMIC_ACQUIRE);
	size_t read = 0;
	defs_add(dump->defs, (char *)(half + 1) + dump->half_read[i], used - dump->half_read[i], &read);
	dump->half_read[i] += read;
}

/* The older half first: ids are defined in order. Full halves are then written and opened again. */
void dump_read_definitions(struct session *session)
{
	struct memtrace_definitions_window **halves = session->writer.halves;
	unsigned first = halves[0]->order > halves[1]->order && halves[1]->state;
	read_half(session, first);
	read_half(session, !first);
	writer_flush_full_halves(&session->writer);
}

static void learn_definitions(struct session *session)
{
	dump_read_definitions(session);
	mark_frames(session);
}

/* ---------- events ---------- */

static void event_read(struct event *ev, const struct memtrace_slot *slot, uint64_t ticket)
{
	*ev = (struct event){ .sequence = ticket,
			      .time_ns = slot->time_ns,
			      .address = slot->address,
			      .bytes = slot->bytes,
			      .extra = slot->extra,
			      .stream = slot->stream,
			      .stack = slot->stack,
			      .thread = slot->thread,
			      .what = (enum memtrace_what)slot->what,
			      .space = (enum memtrace_space)slot->space,
			      .device = slot->device,
			      .flags = slot->flags,
			      .status = slot->status };
}

/* A block that goes back takes the stream of its allocation. */
static void complete_block_free(struct model *model, struct event *ev)
{
	uint64_t stream;
	if (model_block_stream(model, ev->address, &stream))
		ev->stream = stream;
}

/* From when this thread met it: on a busy machine that may be long after it happened. */
static uint64_t oom_waited_ns(struct session *session)
{
	struct dump *dump = &session->dump;
	uint64_t now_ns = session_now(session);
	if (dump->ooms_met == dump->ooms_reported) {
		dump->ooms_met++;
		dump->oom_met_ns = now_ns;
	}
	return now_ns - dump->oom_met_ns;
}

/* Of a program that runs out soon after its start it is not known yet what others have on the card: a reading tells. */
static bool is_worth_waiting(struct session *session, const struct model_oom *oom)
{
	return oom_waited_ns(session) < OOM_WAIT_NS && !oom->untracked_known &&
	       readings_will_tell(&session->dump.readings, oom->device);
}

static void report_ooms(struct session *session)
{
	struct dump *dump = &session->dump;
	while (model_oom_count(dump->model) > dump->ooms_reported &&
	       !is_worth_waiting(session, model_oom(dump->model, dump->ooms_reported)))
		notes_report_oom(session, dump->ooms_reported++);
}

static void take_event(struct session *session, struct event *ev)
{
	struct dump *dump = &session->dump;
	if (ev->stack > defs_stack_count(dump->defs) || ev->thread > defs_thread_count(dump->defs))
		learn_definitions(session);
	if (ev->what == MEMTRACE_BLOCK_FREE)
		complete_block_free(dump->model, ev);
	if (writer_wants_checkpoint(&session->writer))
		checkpoint_write(session, ev->sequence);
	writer_add(&session->writer, ev);
	model_apply(dump->model, ev);
	readings_take_event(&dump->readings, ev);
	if (ev->what == MEMTRACE_BLOCK_FREE && model_pytorch_live_bytes(dump->model, ev->device) != ev->extra)
		session->writer.live->disagreements++; /* `extra` is PyTorch's own total */
	if (model_oom_count(dump->model) > dump->ooms_reported)
		report_ooms(session);
}

/* True when the unpublished ticket at the cursor is to be skipped. */
static bool hole_is_given_up(struct session *session, bool is_last)
{
	struct dump *dump = &session->dump;
	if (dump->hole_at != dump->cursor + 1) { /* seen for the first time */
		dump->hole_at = dump->cursor + 1;
		dump->hole_ns = 0;
		dump->hole_head = __atomic_load_n(&session->writer.live->head, __ATOMIC_ACQUIRE);
	}
	if (dump->hole_ns >= HOLE_MAX_NS)
		dump->abandoned = dump->hole_head; /* all tickets that were taken before the wait began */
	if (!is_last && dump->cursor >= dump->abandoned)
		return false;
	session->writer.live->in_flight++;
	say_more("event %llu was begun and never stored: its thread is gone", (unsigned long long)dump->cursor);
	return true;
}

/* All tickets below `head` were taken before `now_ns`: a later time is one that the counter told wrong, after the
 * machine had slept. */
static unsigned drain_some(struct session *session, uint64_t head, uint64_t now_ns, bool is_last)
{
	struct dump *dump = &session->dump;
	struct memtrace_live *live = session->writer.live;
	unsigned taken = 0;
	for (; dump->cursor < head && taken < BATCH_EVENTS; dump->cursor++, taken++) {
		struct memtrace_slot *slot = &session->writer.ring[dump->cursor & (WRITER_RING_SLOTS - 1)];
		if (__atomic_load_n(&slot->turn, __ATOMIC_ACQUIRE) == dump->cursor + 1) {
			struct event ev;
			event_read(&ev, slot, dump->cursor);
			if (ev.time_ns > now_ns)
				ev.time_ns = now_ns;
			take_event(session, &ev);
		} else if (!hole_is_given_up(session, is_last)) {
			break;
		}
		if (dump->cursor % CURSOR_STRIDE == 0)
			__atomic_store_n(&live->consumed, dump->cursor + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&live->consumed, dump->cursor, __ATOMIC_RELEASE);
	return taken;
}

static unsigned drain(struct session *session, bool is_last)
{
	struct dump *dump = &session->dump;
	if (__atomic_exchange_n(&dump->draining, 1, __ATOMIC_ACQUIRE))
		return 0;
	learn_definitions(session);
	uint64_t head = __atomic_load_n(&session->writer.live->head, __ATOMIC_ACQUIRE);
	uint64_t now_ns = session_now(session);
	unsigned total = 0, taken;
	do {
		taken = drain_some(session, head, now_ns, is_last);
		total += taken;
	} while (is_last && taken);
	report_ooms(session);
	notes_tell_framework(session);
	mark_frames_rest(session, is_last);
	__atomic_store_n(&dump->draining, 0, __ATOMIC_RELEASE);
	return total;
}

bool dump_is_waited_for(struct patience *patience)
{
	struct session *session = patience->session;
	uint64_t consumed = __atomic_load_n(&session->writer.live->consumed, __ATOMIC_RELAXED);
	if (patience->consumed != consumed)
		patience->waited_ns = 0;
	patience->consumed = consumed;
	if (__atomic_load_n(&session->dump.stalled_at, __ATOMIC_RELAXED) == consumed + 1)
		return false; /* somebody has waited for this already */
	if (patience->waited_ns > DUMP_PATIENCE_NS) {
		__atomic_store_n(&session->dump.stalled_at, consumed + 1, __ATOMIC_RELAXED);
		return false;
	}
	if (session->dump.is_threaded)
		dump_wake(session);
	else
		drain(session, false);
	/* Not sched_yield, and longer each time: waiting threads must not starve the dump thread of a core. */
	patience->step_ns = patience->step_ns ? patience->step_ns * 2 : WAIT_STEP_NS;
	if (patience->step_ns > WAIT_STEP_MAX_NS)
		patience->step_ns = WAIT_STEP_MAX_NS;
	const struct timespec moment = { .tv_nsec = (long)patience->step_ns };
	int cancel_state;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* nanosleep is a place to be cancelled at */
	uint64_t begun_ns = monotonic_ns();
	nanosleep(&moment, NULL);
	patience->waited_ns += slept_ns(begun_ns, patience->step_ns);
	pthread_setcancelstate(cancel_state, NULL);
	return true;
}

/* ---------- the thread ---------- */

static uint64_t rest(struct session *session, uint64_t ns)
{
	struct dump *dump = &session->dump;
	uint64_t begun_ns = monotonic_ns();
	uint32_t wakes = __atomic_load_n(&dump->wakes, __ATOMIC_SEQ_CST);
	__atomic_store_n(&dump->sleeping, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&dump->stop, __ATOMIC_SEQ_CST))
		futex_wait(&dump->wakes, wakes, ns);
	__atomic_store_n(&dump->sleeping, 0, __ATOMIC_SEQ_CST);
	dump->hole_ns += slept_ns(begun_ns, ns); /* for an unpublished ticket, if there is one */
	return ns * 2 > SLEEP_MAX_NS ? SLEEP_MAX_NS : ns * 2;
}

/* The affinity of the process, not that of the thread which happened to allocate first. */
static void run_where_the_process_runs(void)
{
	cpu_set_t cpus;
	if (!sched_getaffinity(getpid(), sizeof cpus, &cpus))
		sched_setaffinity(0, sizeof cpus, &cpus);
}

/* What was allocated meanwhile may be the first. */
static void read_last(struct session *session)
{
	while (drain(session, false))
		continue;
	readings_run(session, true);
}

static void *dump_main(void *argument)
{
	struct session *session = argument;
	struct dump *dump = &session->dump;
	thread_self.busy = 1; /* nothing on this thread is the program's */
	thread_self.busy_frame = (const void *)UINTPTR_MAX;
	prctl(PR_SET_NAME, "memtrace");
	run_where_the_process_runs();
	uint64_t pause_ns = SLEEP_MIN_NS;
	while (!__atomic_load_n(&dump->stop, __ATOMIC_SEQ_CST)) {
		fast_clock_keep(&session->clock);
		unsigned taken = drain(session, false);
		readings_run(session, false);
		pause_ns = taken ? SLEEP_MIN_NS : rest(session, pause_ns);
	}
	read_last(session);
	__atomic_store_n(&dump->stopped, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &dump->stopped, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return NULL;
}

void dump_start(struct session *session)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: no signal of the program is ever ours */
	session->dump.is_threaded = !pthread_create(&thread, &attributes, dump_main, session);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

int dump_init(struct session *session)
{
	session->dump.defs = defs_create();
	session->dump.model = session->dump.defs ? model_create(session->dump.defs) : NULL;
	return session->dump.model ? 0 : -ENOMEM;
}

/* Bounded: the thread may be gone already, or be stopped by a debugger. One that gets on, on a busy machine, is given
 * more time: no event comes any more, so it has an end. */
static void await_stop(struct session *session)
{
	struct dump *dump = &session->dump;
	uint64_t waited_ns = 0, unmoved_ns = 0, seen = 0;
	while (!__atomic_load_n(&dump->stopped, __ATOMIC_SEQ_CST) && unmoved_ns < STOP_WAIT_NS && waited_ns < STOP_MOST_NS) {
		uint64_t begun_ns = monotonic_ns();
		futex_wait(&dump->stopped, 0, SLEEP_MAX_NS);
		uint64_t ns = slept_ns(begun_ns, SLEEP_MAX_NS);
		uint64_t consumed = __atomic_load_n(&session->writer.live->consumed, __ATOMIC_ACQUIRE);
		waited_ns += ns;
		unmoved_ns = consumed == seen ? unmoved_ns + ns : 0;
		seen = consumed;
	}
}

static void stop_thread(struct session *session)
{
	struct dump *dump = &session->dump;
	__atomic_store_n(&dump->stop, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&dump->wakes, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &dump->wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	if (dump->is_threaded)
		await_stop(session);
}

void dump_finish(struct session *session, enum memtrace_ended how, int status)
{
	struct dump *dump = &session->dump;
	stop_thread(session);
	while (drain(session, true))
		continue;
	if (__atomic_exchange_n(&dump->draining, 1, __ATOMIC_ACQUIRE))
		return; /* the thread is still at it: what is in the file stays as it is */
	model_finish(dump->model);
	name_stacks(session);
	while (model_oom_count(dump->model) > dump->ooms_reported)
		notes_report_oom(session, dump->ooms_reported++);
	writer_finish(&session->writer, how, status, session_now(session));
	say_more("process %d: %llu events, closed", (int)getpid(), (unsigned long long)dump->cursor);
	notes_report_summary(session, how, status);
}
