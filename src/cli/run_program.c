/* Why a program left no trace. Owns the look into its file. Must never claim more than the file
 * shows: a program that can be traced and allocated nothing is the usual case. */
#include "cli/run_program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"

static bool is_program(const char *path)
{
	struct stat file;
	return !stat(path, &file) && S_ISREG(file.st_mode) && !access(path, X_OK);
}

bool program_find(const char *name, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");
	if (strchr(name, '/') || !folders)
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && is_program(path);
	for (const char *at = folders, *end; *folders; at = end + 1) {
		end = at + strcspn(at, ":");
		int bytes = snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - at),
				     end > at ? at : ".", name);
		if (end == at)
			bytes = snprintf(path, PATH_MAX, "./%s", name);
		if (bytes < PATH_MAX && is_program(path))
			return true;
		if (!*end)
			break;
	}
	return false;
}

static bool has_interpreter(int fd, const Elf64_Ehdr *header)
{
	for (unsigned i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;
		off_t at = (off_t)(header->e_phoff + (uint64_t)i * header->e_phentsize);
		if (pread(fd, &segment, sizeof segment, at) != (ssize_t)sizeof segment)
			return true; /* not known: no claim */
		if (segment.p_type == PT_INTERP)
			return true;
	}
	return false;
}

static const char *reason_of_elf(int fd)
{
	Elf64_Ehdr header;
	if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG))
		return NULL;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
		return "it is not an x86-64 program, and libmemtrace.so is one";
	return has_interpreter(fd, &header)
		       ? NULL
		       : "it is statically linked, so nothing can be preloaded into it";
}

/* What keeps the loader from preloading into the program; NULL: nothing that its file shows. */
static const char *reason_of(const char *path)
{
	struct stat file;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!stat(path, &file) && file.st_mode & (S_ISUID | S_ISGID) && geteuid()) {
		if (fd >= 0)
			close(fd);
		return "it runs with other rights than yours (setuid), so the loader preloads "
		       "nothing";
	}
	if (fd < 0)
		return NULL;
	const char *reason = reason_of_elf(fd);
	close(fd);
	return reason;
}

void program_explain_silence(const char *name)
{
	char path[PATH_MAX];
	const char *reason = program_find(name, path) ? reason_of(path) : NULL;
	if (reason)
		tell("nothing of %s was traced: %s", name, reason);
	else
		tell("there is no trace: no GPU memory was allocated that memtrace saw, or a line above says why it could not record");
}
