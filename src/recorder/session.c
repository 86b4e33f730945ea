/* Owns the life of a recording. The word that says whether there is one lies in pages that are wiped in a forked
 * child (MADV_WIPEONFORK) but shared by a vfork child, and the pid beside it tells the two apart: a forked child
 * starts with nothing and touches nothing of its parent's, a vfork child passes straight on. */
#include "recorder/session.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/errno_text.h"
#include "base/text.h"
#include "recorder/device.h"
#include "recorder/notes.h"
#include "recorder/notice.h"
#include "recorder/nvml.h"
#include "recorder/own_stack.h"
#include "recorder/python.h"
#include "recorder/record.h"
#include "recorder/say.h"
#include "recorder/unwind.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define NAMES_MAX 10000
#define START_WAIT_NS 10000000000u
#define START_LOOK_NS 5000000 /* between two looks, if nobody wakes */

struct anchor *session_anchor;

static uint32_t generations; /* counts on in forked children */

/* ---------- the wiped pages ---------- */

static struct anchor *anchor_create(void)
{
	struct anchor *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, sizeof *page, MADV_WIPEONFORK)) { /* before Linux 4.14: no safe way to tell a child */
		munmap(page, sizeof *page);
		return NULL;
	}
	struct anchor *none = NULL;
	if (__atomic_compare_exchange_n(&session_anchor, &none, page, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return page;
	munmap(page, sizeof *page);
	return none;
}

/* ---------- the start ---------- */

static void say_cannot_start(const char *path, int error)
{
	char buffer[512];
	struct text text;
	text_init_fixed(&text, buffer, sizeof buffer);
	text_add(&text, "cannot write ");
	text_add_escaped(&text, path);
	text_printf(&text, ": %s; nothing is recorded. Set MEMTRACE_OUTPUT to a place that can be written.",
		    errno_text(-error));
	say(text_string(&text));
}

static void say_front_is_elsewhere(const char *path, const char *front_path)
{
	char buffer[1000];
	struct text text;
	text_init_fixed(&text, buffer, sizeof buffer);
	text_add_escaped(&text, path);
	text_add(&text, " is on a file system that cannot be mapped; until the end the newest events are in ");
	text_add_escaped(&text, front_path);
	text_add(&text, ", which must be there to read the trace if the program is killed");
	say(text_string(&text));
}

/* The summary of an earlier run makes a name taken too. */
static bool summary_exists(const char *base)
{
	char path[CONFIG_PATH_BYTES + 32];
	struct text text;
	text_init_fixed(&text, path, sizeof path);
	text_printf(&text, "%s.txt", base);
	return !access(text_string(&text), F_OK);
}

/* Takes the first free name: base, base.2, base.3 … */
static int create_trace(struct session *session)
{
	char path[sizeof session->base + 16];
	int error = -EEXIST;
	for (unsigned i = 1; error == -EEXIST && i < NAMES_MAX; i++) {
		struct text text;
		text_init_fixed(&text, session->base, sizeof session->base);
		text_add(&text, session->config.output);
		if (i > 1)
			text_printf(&text, ".%u", i);
		text_string(&text);
		if (summary_exists(session->base))
			continue;
		text_init_fixed(&text, path, sizeof path);
		text_printf(&text, "%s.mtrace", session->base);
		error = writer_create(&session->writer, text_string(&text));
	}
	if (!error && session->config.max_trace_bytes)
		writer_set_bound(&session->writer, session->config.max_trace_bytes);
	if (error)
		say_cannot_start(path, error);
	else if (*session->writer.header->front_path)
		say_front_is_elsewhere(path, session->writer.header->front_path);
	return error;
}

static struct session *session_allocate(void)
{
	size_t bytes = (sizeof(struct session) + 4095) & ~(size_t)4095;
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return NULL;
	madvise(pages, bytes, MADV_DONTFORK);
	return pages;
}

static int exit_status = -1;

static void remember_status(int status, void *unused)
{
	(void)unused;
	exit_status = status & 0xff;
}

static pid_t first_pid;

__attribute__((constructor)) static void remember_process(void)
{
	first_pid = getpid();
}

/* Children inherit it. In a forked child it may not be called: libc's lock may be held for ever by a thread that is not
 * there, and the child would hang. Of such a child, if its parent did not allocate, the status is unknown. */
static void watch_exit(void)
{
	static bool is_watching;
	if (!is_watching && getpid() == first_pid)
		is_watching = !on_exit(remember_status, NULL);
}

int session_exit_status(void)
{
	return exit_status;
}

static struct session *session_start(void)
{
	struct session *session = session_allocate();
	say_begin();
	if (!session)
		return NULL;
	config_read(&session->config);
	if (!session->config.enabled)
		return NULL;
	say_more_begin(session->config.log);
	session->generation = __atomic_add_fetch(&generations, 1, __ATOMIC_RELAXED);
	if (intern_init(&session->intern) || dump_init(session) || create_trace(session))
		return NULL;
	session->start_ns = session->writer.header->start_monotonic_ns;
	fast_clock_init(&session->clock);
	unwind_init();
	nvml_read_environment();
	session->dump.readings.is_off = !session->config.readings;
	python_find();
	notes_tell_process(session);
	device_define_all(session);
	record_early_blinds(session);
	watch_exit();
	notice_tell_early(session);
	dump_start(session);
	say_more("process %d is recorded in %s.mtrace, by %s", (int)getpid(), session->base,
		 session->dump.is_threaded ? "a thread of its own" : "the threads that allocate: no other could be started");
	return session;
}

static void start_here(void *argument)
{
	struct anchor *anchor = argument;
	anchor->pid = getpid();
	anchor->session = session_start();
	uint32_t starting = ANCHOR_STARTING; /* a waiting thread may have given up */
	__atomic_compare_exchange_n(&anchor->state, &starting, anchor->session ? ANCHOR_READY : ANCHOR_OFF, false,
				    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	syscall(SYS_futex, &anchor->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Nothing may leave it half-way: no signal handler that jumps, no cancellation in one of its calls. */
static void start_undisturbed(struct anchor *anchor)
{
	sigset_t all, before;
	int cancel_state;
	sigfillset(&all);
	sigdelset(&all, SIGXFSZ); /* these two are ours to take where a write of ours raises them (sink.c) */
	sigdelset(&all, SIGPIPE);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	own_stack_run(start_here, anchor);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setcancelstate(cancel_state, NULL);
}

/* Asleep, so that the thread that starts has the processor; on a busy machine it may take seconds. If it is not there by
 * the end, it never will be. Never on the thread that starts. */
static void wait_for_start(struct anchor *anchor)
{
	uint64_t waited_ns = 0; /* in sleeps: a process that was stopped has not started either */
	const struct timespec look = { .tv_nsec = START_LOOK_NS };
	while (__atomic_load_n(&anchor->state, __ATOMIC_ACQUIRE) == ANCHOR_STARTING && waited_ns < START_WAIT_NS) {
		uint64_t begun_ns = monotonic_ns();
		syscall(SYS_futex, &anchor->state, FUTEX_WAIT_PRIVATE, ANCHOR_STARTING, &look, NULL, 0);
		waited_ns += slept_ns(begun_ns, START_LOOK_NS);
	}
	uint32_t state = ANCHOR_STARTING;
	if (__atomic_compare_exchange_n(&anchor->state, &state, ANCHOR_OFF, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		say("the start of the recording did not end within ten seconds; nothing is recorded");
}

/* The first event of a process starts it; others that come meanwhile wait. */
static void start_or_wait(struct anchor *anchor)
{
	uint32_t state = ANCHOR_NONE;
	if (__atomic_compare_exchange_n(&anchor->state, &state, ANCHOR_STARTING, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		start_undisturbed(anchor);
		return;
	}
	wait_for_start(anchor);
}

struct session *session_get(bool may_start)
{
	struct anchor *anchor = __atomic_load_n(&session_anchor, __ATOMIC_ACQUIRE);
	if (!anchor && (!may_start || !(anchor = anchor_create())))
		return NULL;
	switch (__atomic_load_n(&anchor->state, __ATOMIC_ACQUIRE)) {
	case ANCHOR_READY:
		return anchor->session;
	case ANCHOR_OVER:
		writer_note_late(&anchor->session->writer);
		return NULL;
	case ANCHOR_OFF:
		return NULL;
	default:
		if (!may_start)
			return NULL;
		start_or_wait(anchor);
		return session_get(false); /* it may be over already */
	}
}

/* ---------- the end ---------- */

struct session *session_end(void)
{
	struct anchor *anchor = __atomic_load_n(&session_anchor, __ATOMIC_ACQUIRE);
	uint32_t ready = ANCHOR_READY;
	if (anchor && __atomic_load_n(&anchor->state, __ATOMIC_ACQUIRE) == ANCHOR_STARTING)
		wait_for_start(anchor); /* by another thread: signals are blocked on the one that starts */
	if (!anchor || __atomic_load_n(&anchor->state, __ATOMIC_ACQUIRE) != ANCHOR_READY || anchor->pid != getpid())
		return NULL;
	if (!__atomic_compare_exchange_n(&anchor->state, &ready, ANCHOR_OVER, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return NULL;
	return anchor->session;
}
