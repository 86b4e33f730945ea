/* Owns the words about a recording: what process this is, and the reports made of the model. It runs on the first
 * thread that allocates (the facts) and on the draining thread (all else). It must never fail loudly: a report
 * that cannot be written is one line on stderr. */
#include "recorder/notes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/errno_text.h"
#include "base/text.h"
#include "model/model.h"
#include "recorder/name_stacks.h"
#include "recorder/python.h"
#include "recorder/say.h"
#include "recorder/session.h"
#include "recorder/texts.h"
#include "report/facts.h"
#include "report/oom.h"
#include "report/run_table.h"
#include "report/snapshot.h"
#include "report/summary.h"
#include "trace/defs.h"
#include "trace/proc.h"
#include "trace/sink.h"

#define ARGUMENTS_MAX 64
#define CMDLINE_BYTES 16384

/* ---------- facts about the process ---------- */

static void tell_argument(struct session *session, const char *argument, bool *hide_next)
{
	char buffer[1024];
	struct text kept;
	text_init_fixed(&kept, buffer, sizeof buffer);
	intern_info(session, MEMTRACE_INFO_ARGUMENT, texts_argument(argument, hide_next, &kept));
}

static void tell_arguments(struct session *session)
{
	char line[CMDLINE_BYTES];
	size_t bytes = proc_read("/proc/self/cmdline", line, sizeof line);
	bool hide_next = false;
	unsigned count = 0;
	for (size_t at = 0; at < bytes && count < ARGUMENTS_MAX; at += strlen(line + at) + 1, count++)
		tell_argument(session, line + at, &hide_next);
}

#define NAMES(...) (const char *const[]){ __VA_ARGS__, NULL }

static const struct fact {
	enum memtrace_info info;
	const char *const *names;
} facts[] = {
	{ MEMTRACE_INFO_RANK, config_rank_names },
	{ MEMTRACE_INFO_LOCAL_RANK, NAMES("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK") },
	{ MEMTRACE_INFO_WORLD_SIZE, NAMES("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE") },
	{ MEMTRACE_INFO_ALLOC_CONF, NAMES("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF") },
	{ MEMTRACE_INFO_TREE, NAMES("MEMTRACE_TREE") },
};

void notes_tell_process(struct session *session)
{
	char buffer[CONFIG_PATH_BYTES];
	tell_arguments(session);
	for (unsigned i = 0; i < sizeof facts / sizeof *facts; i++) {
		const char *value = config_environment(facts[i].names);
		if (value)
			intern_info(session, facts[i].info, value);
	}
	if (getcwd(buffer, sizeof buffer))
		intern_info(session, MEMTRACE_INFO_CWD, buffer);
	if (!gethostname(buffer, 256))
		intern_info(session, MEMTRACE_INFO_HOST, buffer);
	if (python_version())
		intern_info(session, MEMTRACE_INFO_PYTHON, python_version());
	session->dump.python_told = python_version() != NULL;
}

/* …/torch/lib/libc10_cuda.so → __version__ of …/torch/version.py. */
static bool read_torch_version(const char *library, struct text *version)
{
	char path[1024], content[4096];
	struct text text;
	const char *folder = strstr(library, "/lib/libc10_cuda");
	if (!folder)
		return false;
	text_init_fixed(&text, path, sizeof path);
	text_printf(&text, "%.*s/version.py", (int)(folder - library), library);
	proc_read(text_string(&text), content, sizeof content);
	return texts_torch_version(content, version);
}

static void tell_torch(struct session *session)
{
	const struct def_module *module;
	for (uint32_t id = 1; (module = defs_module(session->dump.defs, id)); id++) {
		char buffer[256];
		struct text version;
		text_init_fixed(&version, buffer, sizeof buffer);
		if (!strncmp(module->name, "libc10_cuda", 11))
			session->dump.framework_told = !read_torch_version(module->path, &version) ||
						       intern_try_info(session, MEMTRACE_INFO_FRAMEWORK,
								       text_string(&version));
	}
}

void notes_tell_framework(struct session *session)
{
	if (!session->dump.framework_told)
		tell_torch(session);
	if (session->dump.python_told)
		return;
	if (python_version())
		session->dump.python_told = intern_try_info(session, MEMTRACE_INFO_PYTHON, python_version());
}

/* ---------- reports ---------- */

static void report_facts(const struct session *session, struct summary_facts *facts, const char *trace_path)
{
	const struct memtrace_live *live = session->writer.live;
	*facts = (struct summary_facts){ .trace_path = trace_path,
					 .pid = session->writer.header->pid,
					 .ended = SUMMARY_RUNNING,
					 .status = -1,
					 .duration_ns = session_now(session),
					 .file_bytes = writer_file_bytes(&session->writer),
					 .events = session->dump.cursor - live->in_flight,
					 .lost = live->lost + live->unwritten,
					 .in_flight = live->in_flight,
					 .stacks_lost = live->stacks_lost,
					 .disagreements = live->disagreements,
					 .blind_lookups = live->blind_lookups,
					 .blind_deepbind = live->blind_deepbind,
					 .blind_dlmopen = live->blind_dlmopen,
					 .write_errno = live->write_errno };
	model_note_lost(session->dump.model, live->lost, live->disagreements);
}

static const char *path_with(char *buffer, size_t bytes, const char *base, const char *end)
{
	struct text text;
	text_init_fixed(&text, buffer, bytes);
	text_printf(&text, "%s%s", base, end);
	return text_string(&text);
}

/* The tail that people recognise; the folder when it is the working one is noise. */
static const char *shown_path(const char *path)
{
	char here[CONFIG_PATH_BYTES];
	if (!getcwd(here, sizeof here))
		return path;
	size_t length = strlen(here);
	return !strncmp(path, here, length) && path[length] == '/' ? path + length + 1 : path;
}

static void say_unwritten(const char *path, int error)
{
	char buffer[512];
	struct text line;
	text_init_fixed(&line, buffer, sizeof buffer);
	text_printf(&line, "cannot write %s: %s", path, errno_text(-error));
	say(text_string(&line));
}

static void save_text(struct text *text, const char *path)
{
	struct sink sink;
	int error = sink_create(&sink, path);
	if (!error) {
		error = sink_write(&sink, text->data, text->used_bytes, 0);
		sink_close(&sink);
	}
	if (error)
		say_unwritten(path, error);
}

static int take_snapshot(void *sink, const void *data, size_t bytes, uint64_t offset)
{
	return sink_write(sink, data, bytes, offset);
}

/* False: there is none; a part of one is of no use to anybody. */
static bool save_snapshot(const struct session *session, size_t index, const char *path)
{
	struct sink sink;
	struct snapshot snapshot = { .model = session->dump.model,
				     .defs = session->dump.defs,
				     .index = index,
				     .start_realtime_ns = session->writer.header->start_realtime_ns };
	if (!model_segments_at_oom(snapshot.model, index))
		return false;
	int error = sink_create(&sink, path);
	if (!error) {
		error = snapshot_write_live(&snapshot, take_snapshot, &sink);
		if (error && sink_is_ours(&sink))
			unlink(path);
		sink_close(&sink);
	}
	if (error)
		say_unwritten(path, error);
	return !error;
}

static void oom_path(char *buffer, size_t bytes, const struct session *session, size_t index, const char *kind)
{
	struct text text;
	text_init_fixed(&text, buffer, bytes);
	text_printf(&text, "%s.oom%zu.%s", session->base, index + 1, kind);
	text_string(&text);
}

void notes_report_oom(struct session *session, size_t index)
{
	char trace_path[CONFIG_PATH_BYTES + 32], path[CONFIG_PATH_BYTES + 32];
	char snapshot_path[CONFIG_PATH_BYTES + 32];
	struct summary_facts facts;
	struct text text;
	oom_path(path, sizeof path, session, index, "txt");
	oom_path(snapshot_path, sizeof snapshot_path, session, index, "pickle");
	path_with(trace_path, sizeof trace_path, session->base, ".mtrace");
	name_stacks(session);
	report_facts(session, &facts, shown_path(trace_path));
	if (save_snapshot(session, index, snapshot_path))
		facts.snapshot_path = shown_path(snapshot_path);
	text_init(&text);
	oom_print(&text, session->dump.model, session->dump.defs, &facts, index, NULL);
	save_text(&text, path);
	text.used_bytes = 0;
	oom_print_head(&text, session->dump.model, session->dump.defs, &facts, index, shown_path(path));
	say_text(text.data, text.used_bytes);
	text_release(&text);
}

/* Of many that do the same, one is enough on a screen: the others say a line. */
static bool is_another_rank(const struct defs *defs)
{
	const char *rank = defs_info(defs, MEMTRACE_INFO_RANK, 0);
	return rank && strcmp(rank, "0");
}

static enum summary_ended ended_of(enum memtrace_ended how)
{
	switch (how) {
	case MEMTRACE_EXIT:
		return SUMMARY_EXIT;
	case MEMTRACE_ABORT:
		return SUMMARY_ABORT;
	default:
		return SUMMARY_UNDERSCORE_EXIT;
	}
}

void notes_report_summary(struct session *session, enum memtrace_ended how, int status)
{
	char trace_path[CONFIG_PATH_BYTES + 32], path[CONFIG_PATH_BYTES + 32];
	struct summary_facts facts;
	struct text text;
	path_with(path, sizeof path, session->base, ".txt");
	path_with(trace_path, sizeof trace_path, session->base, ".mtrace");
	report_facts(session, &facts, shown_path(trace_path));
	facts.ended = ended_of(how);
	facts.status = status;
	text_init(&text);
	summary_print(&text, session->dump.model, session->dump.defs, &facts);
	save_text(&text, path);
	if (is_another_rank(session->dump.defs)) {
		text.used_bytes = 0;
		run_line_print(&text, session->dump.model, session->dump.defs, &facts);
	}
	if (session->config.summary_on_stderr)
		say_text(text.data, text.used_bytes);
	text_release(&text);
}
