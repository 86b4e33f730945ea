/* The traces of one `memtrace run`. Owns finding them and what is printed when all is over. Must
 * never print what a process has said itself, and must not take another run's trace for one of its
 * own. */
#include "cli/run_traces.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output_name.h"
#include "base/units.h"
#include "cli/cure.h"
#include "cli/load.h"
#include "cli/names.h"
#include "cli/output.h"
#include "report/run_table.h"
#include "report/summary.h"
#include "report/verdict_words.h"

#define TRACES_MAX 1024

/* For glob(): all traces in the folder, or folders, that the output template names; run.c made it
 * absolute. What name a process gave its trace there does not matter. */
static void make_pattern(struct text *pattern)
{
	const char *output = getenv("MEMTRACE_OUTPUT"), *slash = output ? strrchr(output, '/') : NULL;
	for (const char *at = output; slash && at < slash; at++) {
		bool is_placeholder = *at == '%' && *++at != '%';
		if (!is_placeholder && strchr("*?[\\", *at))
			text_add_char(pattern, '\\');
		text_add_char(pattern, is_placeholder ? '*' : *at);
	}
	text_add(pattern, "/*.mtrace*");
}

/* Cheap: one page of the file, before it is opened in earnest. */
static bool is_trace_since(const char *path, uint64_t begin_ns)
{
	struct memtrace_header header;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0)
		return false;
	bool is_whole = pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header;
	close(fd);
	return is_whole && !memcmp(header.magic, MEMTRACE_MAGIC, sizeof header.magic) &&
	       header.start_realtime_ns >= begin_ns;
}

static bool is_of_tree(const struct loaded *loaded, const struct tree *tree)
{
	const char *id = defs_info(trace_defs(loaded->trace), MEMTRACE_INFO_TREE, 0);
	size_t length = strlen(tree->id);
	return id && !strncmp(id, tree->id, length) && (!id[length] || id[length] == '/');
}

static void note_signal(struct loaded *loaded, const struct tree *tree)
{
	if (tree->signal && loaded->facts.pid == (uint32_t)tree->child &&
	    (loaded->facts.ended == SUMMARY_UNKNOWN || loaded->facts.ended == SUMMARY_RUNNING)) {
		loaded->facts.ended = SUMMARY_SIGNAL;
		loaded->facts.status = tree->signal;
	}
}

/* Opens a trace if it is one of the tree's; a damaged stranger is not worth a word. */
static bool open_member(struct loaded *loaded, const char *path, const struct tree *tree)
{
	char error[512];
	if (!is_trace_since(path, tree->begin_ns))
		return false;
	*loaded = (struct loaded){.trace = trace_open(path, error, sizeof error)};
	if (!loaded->trace)
		return false;
	load_refresh_facts(loaded);
	if (is_of_tree(loaded, tree))
		return true;
	load_close(loaded);
	return false;
}

struct member {
	char *path;
	unsigned long rank; /* ULONG_MAX without one: it stands last */
};

struct members {
	struct member list[TRACES_MAX];
	size_t count;
};

static unsigned long rank_of(const struct loaded *loaded)
{
	const char *rank = defs_info(trace_defs(loaded->trace), MEMTRACE_INFO_RANK, 0);
	return rank ? strtoul(rank, NULL, 10) : ULONG_MAX;
}

/* Below the working folder, its name is noise. */
static const char *short_path(const char *path)
{
	char here[PATH_MAX];
	size_t length = getcwd(here, sizeof here) ? strlen(here) : 0;
	bool is_below = length && !strncmp(path, here, length) && path[length] == '/';
	return is_below ? path + length + 1 : path;
}

static void add_member(struct members *members, const char *path, const struct tree *tree)
{
	struct loaded loaded;
	if (!open_member(&loaded, path, tree))
		return;
	struct member *member = &members->list[members->count];
	*member = (struct member){.path = strdup(path), .rank = rank_of(&loaded)};
	members->count += member->path != NULL;
	load_close(&loaded);
}

static int compare_members(const void *a, const void *b)
{
	const struct member *first = a, *second = b;
	if (first->rank != second->rank)
		return first->rank < second->rank ? -1 : 1;
	return strverscmp(first->path, second->path);
}

static void collect(struct members *members, const struct tree *tree)
{
	struct text pattern;
	glob_t found = {0};
	text_init(&pattern);
	make_pattern(&pattern);
	if (!glob(text_string(&pattern), GLOB_NOSORT, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc && members->count < TRACES_MAX; i++)
			add_member(members, short_path(found.gl_pathv[i]), tree);
	globfree(&found);
	text_release(&pattern);
	qsort(members->list, members->count, sizeof *members->list, compare_members);
}

static bool wants_words(void)
{
	const char *where = getenv("MEMTRACE_SUMMARY");
	return !where || strcmp(where, "file");
}

/* NAME.mtrace has its summary in NAME.txt; one that is there stays. */
static void save_summary(const char *path, const struct text *summary)
{
	char name[2 * PATH_MAX];
	int stem = (int)output_stem_bytes(path);
	if (!path[stem])
		return;
	snprintf(name, sizeof name, "%.*s.txt", stem, path);
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	bool is_whole = write(fd, summary->data, summary->used_bytes) == (ssize_t)summary->used_bytes;
	if (close(fd) || !is_whole)
		tell("cannot write %s", name);
}

/* A process that ran out of memory has said why, in NAME.oom1.txt. */
static bool has_run_out(const char *path)
{
	char name[2 * PATH_MAX];
	snprintf(name, sizeof name, "%.*s.oom1.txt", (int)output_stem_bytes(path), path);
	return !access(name, F_OK);
}

static void add_cure(struct text *out, const struct loaded *loaded, size_t index, const struct verdict_cure *cure)
{
	struct verdict verdict;
	struct text words;
	if (!model_verdict(loaded->model, index, &verdict))
		return;
	text_init(&words);
	verdict_print_cure(&words, &verdict, cure);
	if (words.used_bytes) {
		text_add(out, "memtrace: out of memory");
		if (model_oom_count(loaded->model) > 1)
			text_printf(out, ", number %zu", index + 1);
		text_add(out, " (memtrace oom tells more):");
		text_add(out, *text_string(&words) == '\n' ? "" : "\n");
		text_add(out, text_string(&words));
	}
	text_release(&words);
}

/* Which setting cures it takes a replay, which the process itself never does. */
static void print_cures(const struct loaded *loaded)
{
	struct verdict_cure cures[MODEL_OOMS_MAX];
	struct text out;
	cures_find(loaded, cures);
	text_init(&out);
	for (size_t i = 0; i < model_oom_count(loaded->model); i++)
		add_cure(&out, loaded, i, &cures[i]);
	if (out.used_bytes)
		output_words(&out);
	text_release(&out);
}

/* What the process could not say itself: where it would have said it. */
static void print_one(const char *path, const struct tree *tree)
{
	struct loaded loaded;
	struct text out;
	if (load_open(&loaded, path))
		return;
	bool is_replayed = (!facts_closed(&loaded.facts) || has_run_out(path)) && !load_replay(&loaded);
	if (is_replayed && !facts_closed(&loaded.facts)) {
		note_signal(&loaded, tree);
		names_find(&loaded);
		text_init(&out);
		summary_print(&out, loaded.model, trace_defs(loaded.trace), &loaded.facts);
		save_summary(path, &out);
		if (wants_words())
			output_words(&out);
		text_release(&out);
	}
	if (is_replayed && wants_words())
		print_cures(&loaded);
	load_close(&loaded);
}

static void print_table(const struct members *members, const struct tree *tree)
{
	struct run_table table;
	struct text out;
	text_init(&out);
	run_table_start(&table, &out, members->count);
	for (size_t i = 0; i < members->count; i++) {
		struct loaded loaded;
		if (load_trace(&loaded, members->list[i].path))
			continue;
		note_signal(&loaded, tree);
		run_table_add(&table, loaded.model, trace_defs(loaded.trace), &loaded.facts);
		load_close(&loaded);
	}
	run_table_end(&table);
	output_words(&out);
	text_release(&out);
}

bool traces_report(const struct tree *tree)
{
	static struct members members;
	collect(&members, tree);
	if (members.count == 1)
		print_one(members.list[0].path, tree);
	else if (members.count)
		print_table(&members, tree);
	for (size_t i = 0; i < members.count; i++) {
		if (tree->readbacks)
			readbacks_add(tree->readbacks, members.list[i].path);
		free(members.list[i].path);
	}
	return members.count;
}
