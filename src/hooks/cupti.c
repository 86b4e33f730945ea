/* Owns CUPTI's part in a recording: who tells what, the buffers that CUPTI fills, and the order in which its records
 * become events. CUPTI gives buffers back on a thread of its own; that thread feeds the recorder as any other. It is
 * asked for what it has (a flush) by the thread that allocates, so that its records stand before the events of the
 * hooks that follow, and at the end by the one that ends the process. Never by the dump thread. */
#include "hooks/cupti.h"
#include "hooks/cupti_private.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder/activity.h"
#include "recorder/config.h"
#include "recorder/record.h"
#include "recorder/session.h"
#include "recorder/thread.h"

#define BUFFER_BYTES (64u << 10)
#define BUFFER_RECORDS 64 /* then it comes back: a process that is killed loses no more */

uint32_t cupti_role;

static struct cupti cupti;
static CUpti_SubscriberHandle subscriber;
static struct cupti_reading reading;
static pid_t cupti_pid;

/* Leaf but for the recorder: records are put in order, and recorded in it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct activities activities;
static const void *worker; /* the thread that does so now, by its thread_self */
static uint32_t flushes; /* going on: they take what there is */

/* ---------- from records to events ---------- */

struct own_allocation { /* of the thread that waits for it */
	uint64_t address;
	bool is_told;
};

static void record_activity(const struct record *activity, void *context)
{
	const struct own_allocation *own = context;
	struct record record = *activity;
	if (own && record.what == MEMTRACE_ALLOC && record.address == own->address)
		record.is_of_other = false;
	record_event(&record);
}

static void take(uint64_t until_ns, size_t keep, struct own_allocation *own)
{
	__atomic_store_n(&worker, &thread_self, __ATOMIC_RELAXED);
	activities_take(&activities, until_ns, keep, record_activity, own);
	__atomic_store_n(&worker, NULL, __ATOMIC_RELAXED);
}

/* ---------- buffers ---------- */

static void give_buffer(uint8_t **buffer, size_t *bytes, size_t *records)
{
	void *pages = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*buffer = pages == MAP_FAILED ? NULL : pages;
	*bytes = pages == MAP_FAILED ? 0 : BUFFER_BYTES;
	*records = record_has_started() ? BUFFER_RECORDS : 1; /* the first one begins the recording, at its time */
}

static void read_buffer(uint8_t *buffer, size_t bytes)
{
	CUpti_Activity *activity = NULL;
	struct record record;
	while (!cupti.cuptiActivityGetNextRecord(buffer, bytes, &activity))
		if (cupti_read_record(activity, &reading, &record) && activities_add(&activities, &record))
			record_lost(1);
}

static void note_dropped(CUcontext context, uint32_t stream)
{
	size_t dropped = 0;
	if (cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) || !dropped)
		return;
	record_lost(dropped);
	record_notice(RECORD_QUIET, "CUPTI dropped records: what it tells is not complete", NULL);
}

/* Between flushes the newest are kept back: what happened before them may still come. */
static void take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t bytes)
{
	pthread_mutex_lock(&lock);
	if (buffer && bytes)
		read_buffer(buffer, bytes);
	if (!__atomic_load_n(&flushes, __ATOMIC_ACQUIRE))
		take(UINT64_MAX, record_has_started() ? BUFFER_RECORDS : 0, NULL);
	pthread_mutex_unlock(&lock);
	note_dropped(context, stream);
	if (buffer)
		munmap(buffer, size);
}

/* `own` NULL: everything, for the end. */
static void flush(struct own_allocation *own)
{
	uint64_t now = UINT64_MAX;
	if (own && cupti.cuptiGetTimestamp(&now))
		return;
	__atomic_add_fetch(&flushes, 1, __ATOMIC_ACQ_REL);
	cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	__atomic_sub_fetch(&flushes, 1, __ATOMIC_ACQ_REL);
	pthread_mutex_lock(&lock);
	take(own ? now + (uint64_t)reading.offset_ns : now, 0, own);
	if (own)
		own->is_told = activities_knows(&activities, own->address);
	pthread_mutex_unlock(&lock);
}

/* ---------- what the hooks leave to CUPTI ---------- */

static bool is_known_to_cupti(const struct record *record)
{
	static const uint32_t spaces = 1u << MEMTRACE_SPACE_DEVICE | 1u << MEMTRACE_SPACE_STREAM |
				       1u << MEMTRACE_SPACE_MANAGED | 1u << MEMTRACE_SPACE_ARRAY |
				       1u << MEMTRACE_SPACE_PINNED;
	return (record->what == MEMTRACE_ALLOC || record->what == MEMTRACE_FREE) && spaces >> record->space & 1;
}

/* Events of the hooks that say how things stand, so that what was before them must have been told. */
static bool wants_order(enum memtrace_what what)
{
	return what == MEMTRACE_ALLOC || what == MEMTRACE_MEMINFO || what == MEMTRACE_CONTEXT_END ||
	       what == MEMTRACE_OOM || what == MEMTRACE_FAILED || what == MEMTRACE_GRAPH_LAUNCH;
}

/* CUPTI does not tell what has just happened: another client has registered buffers of its own. */
static void give_up(void)
{
	uint32_t source = CUPTI_SOURCE;
	if (__atomic_compare_exchange_n(&cupti_role, &source, CUPTI_ABSENT, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		record_notice(RECORD_ALOUD, "another tool or profiler took CUPTI over; from there on the hooks record",
			      NULL);
}

bool cupti_tells_instead(const struct record *record)
{
	struct own_allocation own = { .address = record->address };
	enum cupti_role role = cupti_has_role();
	if (role == CUPTI_UNDECIDED && record->what == MEMTRACE_ALLOC)
		cupti_begin(); /* cuInit was not seen: from the next allocation on */
	if (role != CUPTI_SOURCE)
		return false;
	if (wants_order(record->what))
		flush(&own);
	if (record->what == MEMTRACE_ALLOC && is_known_to_cupti(record) && !own.is_told)
		give_up();
	return is_known_to_cupti(record) && cupti_has_role() == CUPTI_SOURCE;
}

void cupti_learn_context(void *context)
{
	uint32_t id;
	if (cupti_has_role() == CUPTI_SOURCE && !cupti.cuptiGetContextId(context, &id))
		cupti_know_context(context, id);
}

/* ---------- the beginning ---------- */

static void ignore_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	(void)user;
	(void)domain;
	(void)id;
	(void)data;
}

static int64_t clock_offset(void)
{
	uint64_t now = 0;
	cupti.cuptiGetTimestamp(&now);
	return (int64_t)(monotonic_ns() - now);
}

static const char *result_text(CUptiResult result)
{
	const char *text = NULL;
	if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
		return "CUPTI is in use by another tool or profiler";
	return !cupti.cuptiGetResultString(result, &text) && text ? text : "CUPTI gives an error";
}

static CUptiResult enable_kinds(void)
{
	CUptiResult result = cupti.cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
	if (!result && reading.has_pools)
		result = cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY_POOL);
	return result ? result : cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY2);
}

/* NULL, or why it cannot be. Who subscribes first has CUPTI: so no other tool's buffers are ever taken away. */
static const char *connect_cupti(void)
{
	const char *reason = cupti_open(&cupti);
	if (!reason && activities_init(&activities))
		reason = "there is no memory";
	if (reason)
		return reason;
	CUptiResult result = cupti.cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)ignore_callback, NULL);
	if (result)
		return result_text(result);
	reading.offset_ns = clock_offset();
	result = enable_kinds();
	if (!result)
		return NULL;
	cupti.cuptiUnsubscribe(subscriber);
	return result_text(result);
}

/* CUDA does not outlive fork, nor does CUPTI: a child decides anew. */
static void forget_in_child(void)
{
	__atomic_store_n(&cupti_role, CUPTI_UNDECIDED, __ATOMIC_RELEASE);
	pthread_mutex_init(&lock, NULL);
	cupti_pid = 0;
	flushes = 0;
	cupti_forget_contexts();
}

static void say_that_it_cannot(enum cupti_role wanted, const char *reason, bool is_preloaded)
{
	if (!is_preloaded)
		record_notice(RECORD_AT_ONCE, reason, "; nothing is recorded", NULL);
	else if (wanted == CUPTI_SOURCE)
		record_notice(RECORD_ALOUD, "MEMTRACE_SOURCE=cupti: ", reason, "; the hooks record instead", NULL);
	else
		record_notice(RECORD_ALOUD, "MEMTRACE_CHECK=cupti: ", reason, "; nothing is compared", NULL);
}

static void tell_what_it_means(bool is_preloaded)
{
	record_fact(MEMTRACE_INFO_SOURCE, "cupti");
	record_notice(RECORD_QUIET,
		      is_preloaded ? "Allocations are told by CUPTI, which knows no stacks and no owners" :
				     "CUPTI tells no stacks, owners, virtual memory, graphs or PyTorch blocks",
		      NULL);
}

static enum cupti_role begin(enum cupti_role wanted, bool is_preloaded)
{
	reading = (struct cupti_reading){ .as_witness = wanted == CUPTI_WITNESS, .has_pools = !is_preloaded };
	const char *reason = connect_cupti();
	if (reason) {
		say_that_it_cannot(wanted, reason, is_preloaded);
		return CUPTI_ABSENT;
	}
	cupti_pid = getpid();
	if (wanted == CUPTI_SOURCE)
		tell_what_it_means(is_preloaded);
	else
		record_fact(MEMTRACE_INFO_CHECK, "cupti");
	atexit(cupti_end);
	pthread_atfork(NULL, NULL, forget_in_child);
	return wanted;
}

static enum cupti_role wanted_role(bool is_preloaded)
{
	uint64_t source = config_early(offsetof(struct config, source_cupti));
	if (getauxval(AT_SECURE)) /* whoever had us opened may not have the rights of the process */
		return CUPTI_ABSENT;
	if (!config_early(offsetof(struct config, enabled)))
		return CUPTI_ABSENT;
	if (source == 1 || (source == CONFIG_UNSET && !is_preloaded))
		return CUPTI_SOURCE;
	return config_early(offsetof(struct config, check_cupti)) && is_preloaded ? CUPTI_WITNESS : CUPTI_ABSENT;
}

void cupti_begin(void)
{
	uint32_t undecided = CUPTI_UNDECIDED;
	/* Until it is decided the hooks tell: nothing can be allocated before the first cuInit returns. */
	if (!__atomic_compare_exchange_n(&cupti_role, &undecided, CUPTI_ABSENT, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return;
	bool is_preloaded = cupti_is_preloaded();
	enum cupti_role wanted = wanted_role(is_preloaded);
	if (wanted != CUPTI_ABSENT)
		__atomic_store_n(&cupti_role, begin(wanted, is_preloaded), __ATOMIC_RELEASE);
}

__attribute__((visibility("default"))) int InitializeInjection(void);

/* Called by the driver that CUDA_INJECTION64_PATH made open us. */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	cupti_begin();
	return 1;
}

/* ---------- the end ---------- */

static void tell_the_end(void)
{
	struct record record = { .what = MEMTRACE_WITNESS_END,
				 .device = MEMTRACE_DEVICE_UNKNOWN,
				 .at_ns = monotonic_ns(),
				 .is_of_other = true };
	record_event(&record);
}

/* Where a signal handler interrupted one of our calls or CUDA's, locks may be held: nothing more can be asked. */
void cupti_end(void)
{
	enum cupti_role role = cupti_has_role();
	if ((role != CUPTI_SOURCE && role != CUPTI_WITNESS) || cupti_pid != getpid() || thread_self.busy ||
	    thread_self.depth || __atomic_load_n(&worker, __ATOMIC_RELAXED) == &thread_self)
		return;
	flush(NULL);
	if (!__atomic_compare_exchange_n(&cupti_role, (uint32_t *)&role, CUPTI_ABSENT, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return;
	cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMORY2);
	if (role == CUPTI_WITNESS)
		tell_the_end();
}
