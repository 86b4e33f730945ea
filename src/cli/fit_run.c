/* A run for `memtrace fit`. Owns its folder, and what is judged of it. Must never take a failure for want
 * of memory that is none. */
#include "cli/fit_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/fit_keeper.h"
#include "cli/host_memory.h"
#include "cli/load.h"
#include "cli/output.h"

#define LOOK_EVERY_NS 500000000u
#define LOG_LINES     12
#define LOG_TAIL      4096

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---------- start ---------- */

static void set_path(const char *variable, const char *folder, const char *name)
{
	char path[PATH_MAX + 32];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	setenv(variable, path, 1);
}

static void redirect(const char *folder)
{
	char path[PATH_MAX + 32];
	snprintf(path, sizeof path, "%s/log", folder);
	int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600), null = open("/dev/null", O_RDONLY);
	dup2(null, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
}

struct start {
	const struct fit_order *order;
	const struct fit_running *run;
};

/* Runs between fork and exec: no return. Steps are told from stacks, and the lines that read values back. */
static void become(const void *argument)
{
	const struct start *start = argument;
	const struct fit_order *order = start->order;
	output_restore_signals();
	redirect(start->run->folder);
	set_path("MEMTRACE_OUTPUT", start->run->folder, "run-%p");
	setenv("MEMTRACE_SUMMARY", "file", 1);
	setenv("MEMTRACE", "on", 1);
	setenv("MEMTRACE_STACKS", "python,native", 1);
	if (simulate_set_card(&order->simulation, &start->run->machine))
		execvp(order->words[0], order->words);
	fprintf(stderr, "%s: %s\n", order->words[0], strerror(errno));
	_exit(STATUS_NOT_FOUND);
}

/* Named after the folder of all runs and the number of this one. */
static void open_machine(struct machine *machine, const char *parent, unsigned number)
{
	char id[PATH_MAX];
	const char *slash = strrchr(parent, '/');
	snprintf(id, sizeof id, "%.40s-%u", slash ? slash + 1 : parent, number);
	machine_open(machine, id);
}

int fit_run_start(struct fit_running *run, const struct fit_order *order, const char *parent,
		  unsigned number)
{
	*run = (struct fit_running){.start_ns = now_ns(),
				    .steps = order->steps,
				    .host_kills_before = host_kill_count(),
				    .context_bytes = sim_card_context_bytes(&order->simulation.card)};
	run->next_look_ns = run->start_ns + LOOK_EVERY_NS;
	snprintf(run->folder, sizeof run->folder, "%.*s/%u", PATH_MAX - 16, parent, number);
	if (mkdir(run->folder, 0700))
		return -errno;
	open_machine(&run->machine, parent, number);
	run->pid = fit_keeper_start(become, &(struct start){order, run});
	int error = run->pid < 0 ? errno : 0;
	if (error) {
		machine_close(&run->machine);
		run->pid = 0;
	}
	return -error;
}

/* ---------- what it did ---------- */

struct account {
	uint64_t ooms, retries, work_bytes, peak_bytes, steps, traces;
	uint64_t aborted, unfinished; /* processes: when their own code had ended; earlier, or with another status than 0 */
	uint64_t context_bytes; /* where a trace does not tell it */
};

/* Of a program without PyTorch nobody counts retries: a failed request that it survived is one. */
static uint64_t count_failures(const char *path)
{
	struct loaded loaded;
	struct event event;
	uint64_t count = 0;
	if (load_open(&loaded, path))
		return 0;
	while (trace_next(loaded.trace, &event))
		count += event.what == MEMTRACE_OOM;
	load_close(&loaded);
	return count;
}

static void add_device(struct account *account, const struct model_device *device,
		       uint64_t context_bytes)
{
	uint64_t untracked = device->untracked_known && device->untracked_is_own
				     ? device->untracked_bytes
				     : context_bytes;
	uint64_t peak = device->reserved.peak_bytes + untracked;
	account->ooms += device->ooms;
	account->retries += device->retries;
	account->work_bytes += device->has_blocks ? device->pytorch_allocated.total_bytes
						  : device->reserved.total_bytes;
	if (peak > account->peak_bytes)
		account->peak_bytes = peak;
}

/* Of one that aborted without a word of exit(), Python was taken down, after an exception perhaps (had_exception). */
static void add_end(struct account *account, const struct summary_facts *facts)
{
	account->aborted += facts->ended == SUMMARY_ABORT;
	account->unfinished += !facts_closed(facts) || facts->status > 0;
}

static void add_trace(void *to, const char *path)
{
	struct account *account = to;
	struct loaded loaded;
	struct model_step_totals totals = {0};
	const struct model_device *device;
	bool has_blocks = false;
	if (load_trace(&loaded, path))
		return;
	for (unsigned i = 0; (device = model_device(loaded.model, i)); i++) {
		add_device(account, device, account->context_bytes);
		has_blocks |= device->has_blocks;
	}
	if (!has_blocks)
		account->retries += count_failures(path);
	model_step_totals(loaded.model, &totals);
	if (totals.steps > account->steps)
		account->steps = totals.steps;
	add_end(account, &loaded.facts);
	account->traces++;
	load_close(&loaded);
}

/* The simulated machine's own figure of what all processes had in use at most, on the fullest device. */
static void read_machine(struct account *account, const struct machine *machine)
{
	struct machine_peak peak;
	uint64_t highest = 0;
	for (unsigned i = 0; i < SIMULATE_DEVICES_MAX; i++)
		if (machine_peak(machine, i, &peak) && peak.bytes > highest)
			highest = peak.bytes;
	if (highest)
		account->peak_bytes = highest;
}

/* A process that has only just made its trace has nothing in it, or no more than the room for it. */
static bool is_begun(const char *path)
{
	uint32_t word = 0; /* of the header, which is written last */
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t bytes = fd >= 0 ? pread(fd, &word, sizeof word, 0) : 0;
	if (fd >= 0)
		close(fd);
	return bytes > 0 && word;
}

/* Of each trace of the run that has begun. */
static void each_trace(const struct fit_running *run, void (*visit)(void *to, const char *path), void *to)
{
	char path[2 * PATH_MAX];
	const struct dirent *entry;
	DIR *stream = opendir(run->folder);
	while (stream && (entry = readdir(stream))) {
		if (!strstr(entry->d_name, ".mtrace"))
			continue;
		snprintf(path, sizeof path, "%s/%s", run->folder, entry->d_name);
		if (is_begun(path))
			visit(to, path);
	}
	if (stream)
		closedir(stream);
}

static void read_account(struct account *account, const struct fit_running *run)
{
	*account = (struct account){.context_bytes = run->context_bytes};
	each_trace(run, add_trace, account);
}

static void add_readbacks(void *to, const char *path)
{
	readbacks_add(to, path);
}

void fit_run_readbacks(const struct fit_running *run, struct readbacks *readbacks)
{
	readbacks_release(readbacks);
	each_trace(run, add_readbacks, readbacks);
}

/* ---------- its end ---------- */

/* The end of what it printed. */
static void read_log(char tail[LOG_TAIL + 1], const char *folder)
{
	char path[PATH_MAX + 32];
	struct stat file;
	ssize_t bytes = 0;
	snprintf(path, sizeof path, "%s/log", folder);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &file))
		bytes = pread(fd, tail, LOG_TAIL, file.st_size > LOG_TAIL ? file.st_size - LOG_TAIL : 0);
	if (fd >= 0)
		close(fd);
	tail[bytes > 0 ? bytes : 0] = 0;
}

/* The last lines of it. */
static void add_log(struct text *why, const char *folder)
{
	char tail[LOG_TAIL + 1];
	read_log(tail, folder);
	const char *at = tail + strlen(tail);
	for (unsigned lines = 0; at > tail && lines <= LOG_LINES;)
		lines += *--at == '\n';
	for (const char *end; *at; at = *end ? end + 1 : end) {
		end = at + strcspn(at, "\n");
		text_add(why, end > at ? "    " : "");
		text_add_escaped_bytes(why, at, (size_t)(end - at));
		text_add_char(why, '\n');
	}
}

static void add_reason(struct text *why, const struct fit_running *run, int status, bool has_traces,
		       bool is_host_short)
{
	if (is_host_short)
		host_add_shortage(why);
	else if (host_add_kill(why, status, run->host_kills_before))
		text_add(why, "one run at a time takes less of it: --jobs 1\n");
	else if (WIFSIGNALED(status))
		text_printf(why, "signal %d ended it\n", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		text_printf(why, "it failed, and not for want of GPU memory: exit status %d\n",
			    WEXITSTATUS(status));
	else if (!has_traces)
		text_add(why, "it used no GPU memory\n");
	add_log(why, run->folder);
}

static bool had_exception(const char *folder)
{
	char tail[LOG_TAIL + 1];
	read_log(tail, folder);
	return strstr(tail, "Traceback (most recent call last)");
}

/* A program that aborts when all is done (a thread of PyTorch's own may, while Python is taken down) has its figures. */
static bool has_come_to_its_end(const struct fit_running *run, int status, const struct account *account)
{
	return !status || (account->aborted && !account->unfinished && !had_exception(run->folder));
}

static enum fit_progress judge(struct fit_running *run, int status, struct fit_outcome *outcome,
			       struct text *why)
{
	struct account account;
	read_account(&account, run);
	read_machine(&account, &run->machine);
	bool is_host_short = machine_is_host_short(&run->machine);
	machine_close(&run->machine);
	bool is_well = run->is_stopped || has_come_to_its_end(run, status, &account);
	*outcome = (struct fit_outcome){
		.verdict = account.ooms      ? FIT_FAILED
			   : account.retries ? FIT_RETRIED
					     : FIT_CLEAN,
		.peak_bytes = account.peak_bytes,
		.work_bytes = account.work_bytes,
		.retries = account.retries,
		.seconds = (double)(now_ns() - run->start_ns) / 1e9,
	};
	if (!is_host_short && (account.ooms || (is_well && account.traces)))
		return FIT_ENDED;
	add_reason(why, run, status, account.traces, is_host_short);
	return FIT_BROKEN;
}

/* A run that has failed, or has made its steps, need not go on. */
static void look_inside(struct fit_running *run)
{
	struct account account;
	uint64_t begin_ns = now_ns();
	read_account(&account, run);
	if (account.ooms || (run->steps && account.steps >= run->steps)) {
		run->is_stopped = true;
		fit_keeper_end(run->pid);
	}
	uint64_t end_ns = now_ns(), pause_ns = 5 * (end_ns - begin_ns);
	run->next_look_ns = end_ns + (pause_ns > LOOK_EVERY_NS ? pause_ns : LOOK_EVERY_NS);
}

enum fit_progress fit_run_look(struct fit_running *run, struct fit_outcome *outcome,
			       struct text *why)
{
	struct rusage usage;
	int status;
	if (wait4(run->pid, &status, WNOHANG, &usage) != run->pid) {
		if (!run->is_stopped && now_ns() >= run->next_look_ns)
			look_inside(run);
		return FIT_RUNNING;
	}
	run->pid = 0;
	run->resident_bytes = (uint64_t)usage.ru_maxrss << 10;
	return judge(run, status, outcome, why);
}

void fit_run_kill(struct fit_running *run)
{
	if (!run->pid)
		return;
	fit_keeper_end(run->pid);
	waitpid(run->pid, NULL, 0);
	machine_close(&run->machine);
	run->pid = 0;
}

void fit_run_remove(struct fit_running *run)
{
	char path[2 * PATH_MAX];
	const struct dirent *entry;
	DIR *stream = opendir(run->folder);
	while (stream && (entry = readdir(stream))) {
		snprintf(path, sizeof path, "%s/%s", run->folder, entry->d_name);
		unlink(path); /* "." and ".." stay */
	}
	if (stream)
		closedir(stream);
	rmdir(run->folder);
}
