/* Why a Python program did not use the simulated GPU. Owns the question to its Python. Must never
 * run a line of the program itself. */
#include "cli/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/run_program.h"
#include "cli/verb.h"

/* "VERSION CUDA" of the installed PyTorch, without importing it; CUDA is None in a build without. */
static const char about_torch[] =
	"import importlib.util as u, os, runpy\n"
	"s = u.find_spec('torch')\n"
	"v = runpy.run_path(os.path.join(os.path.dirname(s.origin), 'version.py')) if s else {}\n"
	"print(v.get('__version__'), v.get('cuda'), v.get('hip'))\n";

/* python, python3, python3.11, python3.13t: what takes -c. */
static bool is_python(const char *program)
{
	const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
	if (strncmp(name, "python", 6))
		return false;
	name += 6;
	name += strspn(name, "0123456789.");
	return !*name || !strcmp(name, "t");
}

/* Of a script, torchrun for one: the word of its first line that is a Python. */
static bool find_in_script(const char *name, char python[PATH_MAX])
{
	char path[PATH_MAX], line[PATH_MAX] = "", *rest = line + 2, *word;
	FILE *file = program_find(name, path) ? fopen(path, "re") : NULL;
	bool is_script = file && fgets(line, sizeof line, file) && !strncmp(line, "#!", 2);
	if (file)
		fclose(file);
	while (is_script && (word = strsep(&rest, " \t\n")))
		if (is_python(word) && program_find(word, python))
			return true;
	return false;
}

/* The Python that runs the program: itself, a word of a launcher (env, numactl, time), or that of a script. */
static bool find_python(char *const *program, char python[PATH_MAX])
{
	for (char *const *word = program; *word; word++)
		if (is_python(*word) && program_find(*word, python))
			return true;
	return find_in_script(program[0], python);
}

/* The one who asks must not be taken for the program: nothing is preloaded. */
static void become_question(const char *python, const char *question, int out)
{
	unsetenv("LD_PRELOAD");
	dup2(out, STDOUT_FILENO);
	execlp(python, python, "-c", question, (char *)NULL);
	_exit(STATUS_NOT_FOUND);
}

bool simulate_ask_python(char *const *program, const char *question, char *answer, size_t bytes, char python[PATH_MAX])
{
	int ends[2], status;
	if (!find_python(program, python) || pipe(ends))
		return false;
	pid_t child = fork();
	if (!child)
		become_question(python, question, ends[1]);
	close(ends[1]);
	size_t used = 0;
	ssize_t got;
	while (used + 1 < bytes && (got = read(ends[0], answer + used, bytes - 1 - used)) > 0)
		used += (size_t)got;
	answer[used] = 0;
	close(ends[0]);
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

bool simulate_explain_silence(char *const *program)
{
	char answer[256], version[64], cuda[64], hip[64], python[PATH_MAX];
	if (!simulate_ask_python(program, about_torch, answer, sizeof answer, python) ||
	    sscanf(answer, "%63s %63s %63s", version, cuda, hip) != 3)
		return false;
	if (!strcmp(version, "None")) {
		tell("%s has no PyTorch; for a dry run it needs the CUDA build: pip install torch", python);
		return true;
	}
	if (strcmp(cuda, "None"))
		return false;
	tell("PyTorch %s of %s was built without CUDA%s, so it cannot use a GPU, simulated or not. "
	     "The CUDA build needs no GPU here: pip install --force-reinstall torch --index-url "
	     "https://download.pytorch.org/whl/cu128 (or another of CUDA 11 to 13)",
	     version, python, strcmp(hip, "None") ? " (for AMD GPUs)" : "");
	return true;
}
