/* LD_PRELOAD for `memtrace run`. Owns where the library is looked for. Must never drop what stood
 * in LD_PRELOAD before. */
#include "cli/run_preload.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"

/* The folder that the tool lies in, without a slash at its end. */
static bool find_own_folder(char folder[PATH_MAX])
{
	ssize_t bytes = readlink("/proc/self/exe", folder, PATH_MAX - 1);
	if (bytes <= 0)
		return false;
	folder[bytes] = 0;
	char *slash = strrchr(folder, '/');
	if (slash)
		*slash = 0;
	return slash;
}

bool run_find_beside(const char *what, const char *const *places, size_t count,
		     char path[PATH_MAX])
{
	char folder[PATH_MAX], candidate[2 * PATH_MAX];
	bool is_there = false;
	if (!find_own_folder(folder))
		return false;
	for (size_t i = 0; i < count && !is_there; i++) {
		snprintf(candidate, sizeof candidate, "%s/%s", folder, places[i]);
		is_there = realpath(candidate, path) && !access(path, R_OK);
	}
	if (!is_there)
		tell("%s is neither in %s nor in %s/../lib/memtrace", what, folder, folder);
	else if (strpbrk(path, ": $"))
		tell("%s cannot be preloaded: the loader takes no path with a space, a colon or a "
		     "dollar sign",
		     path);
	return is_there && !strpbrk(path, ": $");
}

/* One of the names that LD_PRELOAD lists, apart by colons or spaces? */
static bool is_listed(const char *list, const char *library)
{
	size_t length = strlen(library);
	for (const char *at = list; (at = strstr(at, library)); at++)
		if ((at == list || strchr(": ", at[-1])) &&
		    (!at[length] || strchr(": ", at[length])))
			return true;
	return false;
}

int run_preload(void)
{
	static const char *const places[] = {"libmemtrace.so", "../lib/memtrace/libmemtrace.so"};
	char library[PATH_MAX];
	const char *before = getenv("LD_PRELOAD");
	char *both = NULL;
	if (!run_find_beside("libmemtrace.so", places, sizeof places / sizeof *places, library))
		return -1;
	if (!before || !*before)
		return setenv("LD_PRELOAD", library, 1);
	if (is_listed(before, library))
		return 0;
	int failed = asprintf(&both, "%s:%s", before, library) < 0 || setenv("LD_PRELOAD", both, 1);
	free(both);
	return failed ? -1 : 0;
}
