/* `memtrace run`: runs a program with memtrace preloaded and passes its exit status on. Owns the
 * order: find the library, run, then say what the program itself could not say any more. Nothing of
 * the program's own behaviour is changed but LD_PRELOAD and the MEMTRACE_ variables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/output_name.h"
#include "base/units.h"
#include "cli/card.h"
#include "cli/host_memory.h"
#include "cli/machine.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_child.h"
#include "cli/run_preload.h"
#include "cli/run_program.h"
#include "cli/run_traces.h"
#include "cli/simulate.h"

enum { OPTION_OUTPUT, OPTION_SIMULATE, OPTION_DEVICES, OPTION_MEMORY, OPTION_LATE, OPTION_VALUES };

static const struct option_row options[] = {
	[OPTION_OUTPUT] = {"output", "T", "where traces go: MEMTRACE_OUTPUT for the program"},
	[OPTION_SIMULATE] = {"simulate", "CARD",
			     "on a simulated GPU: a card of `memtrace cards`, a file, like-here"},
	[OPTION_DEVICES] = {"devices", "N", "with --simulate: so many of them"},
	[OPTION_MEMORY] = {"memory", "SIZE", "with --simulate: of this size (22GiB), whatever the card"},
	[OPTION_LATE] = {"late", NULL, "with --simulate: work ends only when the program waits for it"},
	[OPTION_VALUES] = {"values", NULL, "with --simulate: PyTorch's small whole numbers are computed, on the CPU"},
	{0},
};

#define TREE_BYTES 200 /* five runs inside one another; more are trees of their own */

/* An id that no other `memtrace run` has: its processes carry it in their traces. */
static void make_tree_id(char id[33])
{
	unsigned char bytes[16];
	struct timespec now;
	if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) != (ssize_t)sizeof bytes) {
		clock_gettime(CLOCK_REALTIME, &now);
		pid_t pid = getpid();
		memset(bytes, 0, sizeof bytes);
		memcpy(bytes, &now.tv_nsec, 8);
		memcpy(bytes + 8, &pid, sizeof pid);
	}
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(id + 2 * i, 3, "%02x", bytes[i]);
}

/* In a template, a percent sign that stands for itself is doubled. */
static void add_folder(struct text *out, const char *folder)
{
	for (const char *at = folder; *at; at++)
		text_add(out, *at == '%' ? "%%" : (char[]){*at, 0});
	text_add_char(out, '/');
}

/* A process that works in another folder must find the same place. */
static int set_output(const char *asked)
{
	const char *before = getenv("MEMTRACE_OUTPUT");
	const char *output = asked ? asked : before && *before ? before : OUTPUT_NAME_DEFAULT;
	struct text whole;
	char *folder = *output == '/' ? NULL : getcwd(NULL, 0);
	text_init(&whole);
	if (folder)
		add_folder(&whole, folder);
	text_add(&whole, output);
	int failed = setenv("MEMTRACE_OUTPUT", text_string(&whole), 1);
	text_release(&whole);
	free(folder);
	return failed;
}

/* All that stand before a slash in the path; 0 or an errno. */
static int make_folders(char *path)
{
	int error = 0;
	for (char *slash = strchr(path + 1, '/'); slash && !error; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		error = mkdir(path, 0777) && errno != EEXIST ? errno : 0;
		*slash = '/';
	}
	return error;
}

/* Of the traces, before a long program runs for nothing. What a folder that is named after a process (%h, %p) will be
 * called, only the process knows. 0, or it was said why not. */
static int prepare_folder(void)
{
	char *path = strdup(getenv("MEMTRACE_OUTPUT"));
	char *slash = path ? strrchr(path, '/') : NULL;
	if (!slash || memchr(path, '%', (size_t)(slash - path))) {
		free(path);
		return 0;
	}
	int error = make_folders(path);
	slash[1] = 0;
	if (!error && access(path, W_OK))
		error = errno;
	if (error)
		tell("cannot write traces to %s: %s; --output names another place", path, strerror(error));
	free(path);
	return error;
}

static int exit_status(int wait_status)
{
	return WIFSIGNALED(wait_status) ? STATUS_SIGNAL + WTERMSIG(wait_status)
					: WEXITSTATUS(wait_status);
}

static bool is_python_file(const char *program)
{
	const char *dot = strrchr(program, '.');
	return dot && !strcmp(dot, ".py") && !access(program, R_OK);
}

static void tell_start_failure(const char *program, int error)
{
	if (is_python_file(program)) {
		tell("%s is no command by itself; did you mean: memtrace run -- python %s", program, program);
		return;
	}
	if (error == ENOENT && !strchr(program, '/'))
		tell("%s: command not found", program);
	else
		tell("%s: %s", program, strerror(error));
}

/* STATUS_YES, or it was said what is wrong. */
static int read_simulation(const struct arguments *arguments, struct simulation *simulation)
{
	const char *card = arguments->options[OPTION_SIMULATE];
	const char *devices = arguments->options[OPTION_DEVICES];
	const char *memory = arguments->options[OPTION_MEMORY];
	*simulation = (struct simulation){
		.device_count = 1,
		.is_late = arguments->options[OPTION_LATE],
		.has_values = arguments->options[OPTION_VALUES],
	};
	for (int i = OPTION_DEVICES; !card && i <= OPTION_VALUES; i++)
		if (arguments->options[i])
			return options_wrong(&verb_run, "--%s goes with --simulate", options[i].name);
	if (memory && (parse_bytes(memory, &simulation->memory_bytes) || !simulation->memory_bytes))
		return options_wrong(&verb_run, "--memory is a size such as 22GiB, not %s", memory);
	if (devices && (!options_number(devices, &simulation->device_count) ||
			!simulation->device_count || simulation->device_count > SIMULATE_DEVICES_MAX))
		return options_wrong(&verb_run, "--devices is a number from 1 to %d, not %s",
				     SIMULATE_DEVICES_MAX, devices);
	return !card || card_choose(&simulation->card, card) ? STATUS_YES : STATUS_USAGE;
}

static void tell_silence(char *const *program, bool is_simulated, int status)
{
	if (is_simulated && status && simulate_explain_needs(program))
		return;
	if (!is_simulated || !simulate_explain_silence(program))
		program_explain_silence(program[0]);
	if (!is_simulated && access("/dev/nvidiactl", F_OK) && access("/dev/dxg", F_OK))
		tell("no NVIDIA GPU is seen here; on a simulated one: memtrace run --simulate l4 -- %s ...",
		     program[0]);
}

static void tell_promise(const struct simulation *simulation, const struct machine *machine,
			 struct readbacks *readbacks)
{
	struct text out;
	text_init(&out);
	simulate_add_promise(&out, simulation, machine);
	readbacks_print(&out, readbacks, simulation->has_values);
	output_words(&out);
	text_release(&out);
}

static void tell_host_memory(const struct machine *machine, int wait_status, uint64_t kills_before)
{
	struct text out;
	text_init(&out);
	text_add(&out, "memtrace: ");
	bool is_short = machine_is_host_short(machine);
	if (is_short)
		host_add_shortage(&out);
	if (is_short || host_add_kill(&out, wait_status, kills_before))
		output_words(&out);
	text_release(&out);
}

/* One that the user shares among several commands stays. */
static bool is_machine_given(void)
{
	const char *name = getenv("SIMGPU_MACHINE");
	return name && *name;
}

/* False: it was said why. */
static bool prepare_simulation(const struct simulation *simulation, struct machine *machine, const char *tree)
{
	if (!is_machine_given())
		machine_open(machine, tree);
	return simulate_preload(simulation->has_values, simulation->device_count > 1) &&
	       simulate_set_card(simulation, machine);
}

/* A run inside another's is a branch of that one's tree. */
static void make_tree_path(char *path, size_t bytes, const char *id)
{
	const char *outer = getenv("MEMTRACE_TREE");
	bool is_branch = outer && *outer && strlen(outer) + sizeof "/" + strlen(id) <= bytes;
	snprintf(path, bytes, "%s%s%s", is_branch ? outer : "", is_branch ? "/" : "", id);
}

static int run(const struct arguments *arguments)
{
	char id[33], tree[TREE_BYTES];
	struct machine machine = {.name = NULL};
	struct child child;
	struct simulation simulation;
	bool is_simulated = arguments->options[OPTION_SIMULATE];
	const char *program = arguments->operands[0];
	const char *output = arguments->options[OPTION_OUTPUT];
	if (output && !*output)
		return options_wrong(&verb_run, "--output is empty");
	int wrong = read_simulation(arguments, &simulation);
	if (wrong)
		return wrong;
	make_tree_id(id);
	make_tree_path(tree, sizeof tree, id);
	if (run_preload() || setenv("MEMTRACE_TREE", tree, 1) || set_output(output) || prepare_folder())
		return STATUS_CANNOT_RUN;
	if (is_simulated && !prepare_simulation(&simulation, &machine, id)) {
		machine_close(&machine);
		return STATUS_CANNOT_RUN;
	}
	struct timespec begin;
	uint64_t kills_before = host_kill_count();
	clock_gettime(CLOCK_REALTIME, &begin);
	int error = child_run(&child, arguments->operands);
	if (error) {
		machine_close(&machine);
		tell_start_failure(program, -error);
		return error == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
	}
	tell_host_memory(&machine, child.wait_status, kills_before);
	struct readbacks readbacks = {.count = 0};
	struct tree found = {
		.id = tree,
		.begin_ns = (uint64_t)begin.tv_sec * 1000000000u + (uint64_t)begin.tv_nsec,
		.child = child.pid,
		.signal = WIFSIGNALED(child.wait_status) ? WTERMSIG(child.wait_status) : 0,
		.readbacks = is_simulated ? &readbacks : NULL,
	};
	if (!traces_report(&found))
		tell_silence(arguments->operands, is_simulated, exit_status(child.wait_status));
	else if (is_simulated)
		tell_promise(&simulation, &machine, &readbacks);
	machine_close(&machine);
	readbacks_release(&readbacks);
	return exit_status(child.wait_status);
}

const struct verb verb_run = {
	.name = "run",
	.summary = "Runs a program with memtrace in it",
	.usage = "[--output T] [--simulate CARD] [--] PROGRAM [ARGUMENT...]",
	.details = "The exit status is the program's; 128 plus the signal that killed it; 127 if "
		   "it was not found,\n"
		   "126 if it could not be started, 125 if memtrace could not.\n"
		   "With --values operators and nodes of the backward pass have no names in reports.",
	.options = options,
	.stops_at_operand = true,
	.operands_least = 1,
	.run = run,
};
