/* The runs of `memtrace fit`: several at a time, as processors and host memory allow. Owns their
 * folder below $TMPDIR and the line about each on stderr. Leaves no process behind. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/fit.h"
#include "cli/fit_run.h"
#include "cli/fit_texts.h"
#include "cli/output.h"

#define JOBS_MAX  16
#define PAUSE_NS  10000000 /* between two looks at all runs */
#define MEMORY_SHARE 0.8   /* of what is available, for all runs together */

struct job {
	struct fit_running running;
	struct fit_card *card;
	size_t variable;
	struct fit_wish wish;
};

struct runs {
	struct fit *fit;
	struct job jobs[JOBS_MAX];
	size_t busy, limit;
	char folder[PATH_MAX / 2];
	bool is_broken;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	interrupted = signal;
}

/* ---------- how many at a time ---------- */

static uint64_t available_bytes(void)
{
	char line[128];
	uint64_t bytes = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	while (file && fgets(line, sizeof line, file) && !fit_text_available(line, &bytes))
		;
	if (file)
		fclose(file);
	return bytes;
}

/* One until it is known what a run takes of the host's memory. */
static void set_limit(struct runs *runs, uint64_t resident_bytes)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t limit = runs->fit->jobs ? runs->fit->jobs : processors > 0 ? (size_t)processors : 1;
	double room = MEMORY_SHARE * (double)available_bytes() + (double)resident_bytes;
	size_t in_memory = resident_bytes ? (size_t)(room / (double)resident_bytes) : limit;
	if (!runs->fit->jobs && limit > in_memory)
		limit = in_memory ? in_memory : 1;
	runs->limit = limit < JOBS_MAX ? limit : JOBS_MAX;
}

/* ---------- what is said of them ---------- */

static void add_values(struct text *out, const struct fit *fit, const struct job *job)
{
	for (size_t i = 0; i < fit->variable_count; i++) {
		uint64_t index = i == job->variable ? job->wish.index : job->card->chosen[i];
		text_printf(out, " %s=%llu", fit->variables[i].name,
			    (unsigned long long)fit_value(&fit->variables[i], index));
	}
}

static void tell_outcome(const struct fit *fit, const struct job *job,
			 const struct fit_outcome *outcome)
{
	static const char *const words[] = {"", "fits", "fits after retries", "out of memory"};
	char buffer[512];
	struct text line;
	text_init_fixed(&line, buffer, sizeof buffer);
	text_add(&line, job->card->simulation.card.name);
	add_values(&line, fit, job);
	text_add(&line, job->wish.is_endless ? ", memory without end: " : ": ");
	if (outcome->verdict != FIT_FAILED) {
		text_add(&line, "peak ");
		text_add_size(&line, outcome->peak_bytes);
	}
	if (!job->wish.is_endless)
		text_printf(&line, "%s%s", outcome->verdict == FIT_FAILED ? "" : ", ",
			    words[outcome->verdict]);
	text_add(&line, " (");
	text_add_decimal(&line, outcome->seconds, 1);
	text_add(&line, " s)");
	tell("%s", text_string(&line));
}

static void tell_broken(struct runs *runs, const struct job *job, struct text *why)
{
	char buffer[256];
	struct text what;
	text_init_fixed(&what, buffer, sizeof buffer);
	add_values(&what, runs->fit, job);
	tell("the program gives no answer with%s on %s:", text_string(&what),
	     job->card->simulation.card.name);
	readbacks_print(why, &runs->fit->readbacks, runs->fit->has_values);
	output_words(why);
	simulate_explain_silence(runs->fit->words);
	runs->is_broken = true;
}

/* ---------- making them ---------- */

/* The next variable starts from this one's answer: without a retry if there is one. */
static void move_on(const struct fit *fit, struct fit_card *card)
{
	while (card->at < fit->variable_count && card->searches[card->at].end) {
		struct fit_search *done = &card->searches[card->at];
		uint64_t answer = done->clean != FIT_NONE ? done->clean : done->fits;
		if (answer == FIT_NONE || done->end == FIT_IGNORED) {
			card->at = fit->variable_count;
			return;
		}
		card->chosen[card->at++] = answer;
		if (card->at < fit->variable_count)
			fit_search_start(&card->searches[card->at], fit->variables[card->at].count,
					 card->capacity_bytes);
	}
}

static struct job *free_job(struct runs *runs)
{
	for (size_t i = 0; i < runs->limit; i++)
		if (!runs->jobs[i].running.pid)
			return &runs->jobs[i];
	return NULL;
}

static void start(struct runs *runs, struct fit_card *card, struct fit_wish wish)
{
	struct job *job = free_job(runs);
	struct fit_order order = {.simulation = card->simulation, .steps = runs->fit->steps};
	order.simulation.is_late = runs->fit->is_late;
	char **words = fit_put_values(runs->fit, card, wish.index);
	*job = (struct job){.card = card, .variable = card->at, .wish = wish};
	order.words = words;
	order.simulation.memory_bytes = wish.is_endless ? FIT_ENDLESS_BYTES : card->capacity_bytes;
	int error = words ? fit_run_start(&job->running, &order, runs->folder, runs->fit->run_count++)
			  : -ENOMEM;
	fit_free_words(words);
	if (error) {
		tell("a run cannot be started: %s", strerror(-error));
		runs->is_broken = true;
		return;
	}
	runs->busy++;
}

/* False: the card's searches are over. One that ends makes room for the next at once. */
static bool start_for(struct runs *runs, struct fit_card *card)
{
	struct fit_wish wishes[JOBS_MAX];
	size_t at;
	do {
		move_on(runs->fit, card);
		at = card->at;
		if (at == runs->fit->variable_count)
			return false;
		size_t room = runs->limit > runs->busy ? runs->limit - runs->busy : 0;
		size_t count = fit_search_next(&card->searches[at], wishes, room);
		for (size_t w = 0; w < count && !runs->is_broken; w++)
			start(runs, card, wishes[w]);
		move_on(runs->fit, card);
	} while (card->at != at);
	return true;
}

/* A run for every free place; false: all searches are over. */
static bool start_wanted(struct runs *runs)
{
	bool goes_on = false;
	for (size_t i = 0; i < runs->fit->card_count; i++)
		goes_on |= start_for(runs, runs->fit->cards[i]);
	return goes_on;
}

static void finish(struct runs *runs, struct job *job, const struct fit_outcome *outcome)
{
	tell_outcome(runs->fit, job, outcome);
	if (job->variable == job->card->at)
		fit_search_note(&job->card->searches[job->variable], job->wish, outcome);
	set_limit(runs, job->running.resident_bytes);
}

static bool look_at_all(struct runs *runs)
{
	bool has_ended = false;
	for (size_t i = 0; i < JOBS_MAX && !runs->is_broken; i++) {
		struct job *job = &runs->jobs[i];
		struct fit_outcome outcome;
		struct text why;
		if (!job->running.pid)
			continue;
		text_init(&why);
		enum fit_progress progress = fit_run_look(&job->running, &outcome, &why);
		if (progress == FIT_BROKEN || (progress == FIT_ENDED && !runs->fit->readbacks.count))
			fit_run_readbacks(&job->running, &runs->fit->readbacks);
		if (progress == FIT_ENDED)
			finish(runs, job, &outcome);
		else if (progress == FIT_BROKEN)
			tell_broken(runs, job, &why);
		text_release(&why);
		if (progress == FIT_RUNNING)
			continue;
		fit_run_remove(&job->running);
		runs->busy--;
		has_ended = true;
	}
	return has_ended;
}

static void watch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = interrupt};
	struct sigaction before;
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (!sigaction(signals[i], NULL, &before) && before.sa_handler != SIG_IGN) /* nohup */
			sigaction(signals[i], &action, NULL);
}

static void clean_up(struct runs *runs)
{
	for (size_t i = 0; i < JOBS_MAX; i++)
		if (runs->jobs[i].running.pid) {
			fit_run_kill(&runs->jobs[i].running);
			fit_run_remove(&runs->jobs[i].running);
		}
	rmdir(runs->folder);
}

static void stop_searches(struct fit *fit)
{
	for (size_t i = 0; i < fit->card_count; i++)
		for (size_t v = 0; v < fit->variable_count; v++)
			fit_search_stop(&fit->cards[i]->searches[v]);
}

static double now_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int fit_run_all(struct fit *fit)
{
	static struct runs runs;
	const char *temporary = getenv("TMPDIR");
	struct timespec pause = {.tv_nsec = PAUSE_NS};
	double begin = now_seconds();
	runs = (struct runs){.fit = fit, .limit = fit->jobs ? fit->jobs : 1};
	runs.limit = runs.limit < JOBS_MAX ? runs.limit : JOBS_MAX;
	snprintf(runs.folder, sizeof runs.folder, "%s/memtrace-fit.XXXXXX",
		 temporary && *temporary ? temporary : "/tmp");
	if (!mkdtemp(runs.folder)) {
		tell("%s: %s", runs.folder, strerror(errno));
		return STATUS_UNREADABLE;
	}
	watch_signals();
	for (size_t i = 0; i < fit->card_count; i++)
		fit_search_start(&fit->cards[i]->searches[0], fit->variables[0].count,
				 fit->cards[i]->capacity_bytes);
	while (!runs.is_broken && !interrupted && start_wanted(&runs))
		while (!runs.is_broken && !interrupted && !look_at_all(&runs))
			nanosleep(&pause, NULL);
	clean_up(&runs);
	stop_searches(fit);
	fit->seconds = now_seconds() - begin;
	fit->interrupted = interrupted;
	return interrupted ? STATUS_SIGNAL + interrupted : runs.is_broken ? STATUS_UNREADABLE : STATUS_YES;
}
