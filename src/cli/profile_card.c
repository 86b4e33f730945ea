/* `memtrace profile-card`: measures the card in this machine, for dry runs elsewhere. Owns the file
 * that comes out; the work is in profile_card.py, run by the user's Python, which has PyTorch. Must
 * never write a file that `run --simulate` would not take. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/card.h"
#include "cli/new_file.h"
#include "cli/options.h"
#include "cli/output.h"

extern const char profile_card_script[];

#define MEASURED_BYTES 12288

enum { OPTION_OUTPUT };

static const struct option_row options[] = {
	[OPTION_OUTPUT] = {"output", "FILE", "where the card's file goes; else to stdout"},
	{0},
};

/* Runs between fork and exec: no return. */
static void become_python(const char *asked, int out)
{
	const char *python = asked ? asked : "python";
	output_restore_signals();
	dup2(out, STDOUT_FILENO);
	execlp(python, python, "-W", "ignore", "-c", profile_card_script, (char *)NULL);
	if (!asked)
		execlp("python3", "python3", "-W", "ignore", "-c", profile_card_script, (char *)NULL);
	fprintf(stderr, "memtrace: %s: %s\n", python, strerror(errno));
	_exit(STATUS_CANNOT_RUN);
}

static size_t read_all(int fd, char *text, size_t bytes)
{
	size_t used = 0;
	ssize_t got;
	while (used + 1 < bytes && (got = read(fd, text + used, bytes - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = 0;
	return used;
}

/* What the script printed; its exit status. */
static int measure(const char *python, char *text, size_t bytes)
{
	int ends[2], status = 0;
	if (pipe(ends))
		return STATUS_CANNOT_RUN;
	pid_t child = fork();
	if (!child)
		become_python(python, ends[1]);
	close(ends[1]);
	read_all(ends[0], text, bytes);
	close(ends[0]);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return STATUS_CANNOT_RUN;
	return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_SIGNAL + WTERMSIG(status);
}

static bool write_file(const char *path, const struct text *out)
{
	int error = new_file_write(path, out);
	if (error)
		tell("%s: %s", path, new_file_why(error));
	return !error;
}

/* What the driver tells of the card, and over it what was measured. */
static bool complete_card(struct sim_card *card, const char *measured)
{
	char description[SIM_CARD_TEXT_BYTES], why[160];
	struct text both;
	sim_card_describe(card, "\n", description, sizeof description);
	text_init(&both);
	text_printf(&both, "%s\n%s", description, measured);
	bool is_good = !sim_card_parse(card, text_string(&both), why, sizeof why);
	if (!is_good)
		tell("what was measured makes no card: %s", why);
	text_release(&both);
	return is_good;
}

/* The card, and for people the notes among what was measured. */
static void add_file(struct text *out, const struct sim_card *card, const char *measured)
{
	char description[SIM_CARD_TEXT_BYTES];
	sim_card_describe(card, "\n", description, sizeof description);
	text_add(out, "# Measured by memtrace profile-card, for memtrace run --simulate\n");
	text_printf(out, "%s\n", description);
	for (const char *at = measured, *end; *at; at = *end ? end + 1 : end) {
		end = at + strcspn(at, "\n");
		if (*at == '#')
			text_printf(out, "%.*s\n", (int)(end - at), at);
	}
}

static int run(const struct arguments *arguments)
{
	char measured[MEASURED_BYTES];
	const char *path = arguments->options[OPTION_OUTPUT];
	struct sim_card card;
	struct text out;
	if (arguments->operand_count > 1)
		return options_wrong(&verb_profile_card, "there are too many operands");
	if (!card_read_here(&card))
		return STATUS_NO;
	int status = measure(arguments->operands[0], measured, sizeof measured);
	if (status)
		return status;
	if (!complete_card(&card, measured))
		return STATUS_UNREADABLE;
	text_init(&out);
	add_file(&out, &card, measured);
	bool is_good = path ? write_file(path, &out) : output_write(&out);
	text_release(&out);
	return is_good ? STATUS_YES : STATUS_UNREADABLE;
}

const struct verb verb_profile_card = {
	.name = "profile-card",
	.summary = "Measures the real card in this machine, for --simulate elsewhere",
	.usage = "[-o FILE] [--] [PYTHON]",
	.details = "Needs a real card with nothing else on it, 4 GB of its memory and a minute: what the CUDA context\n"
		   "and the first use of each library take, and cuDNN's workspaces for 16 convolutions, by the PyTorch\n"
		   "of PYTHON (else python); without PyTorch the context alone. FILE is for run --simulate FILE and fit\n"
		   "--card FILE. Exit status: 1 there is no card.",
	.options = options,
	.letter = 'o',
	.letter_row = OPTION_OUTPUT,
	.run = run,
};
