/* Names from files. Owns the order in which they are looked for, and the C++ library that spells
 * them out if there is one. */
#include "cli/names.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "trace/name_frames.h"

void names_find(struct loaded *loaded)
{
	name_frames_here(trace_own_defs(loaded->trace));
}

typedef char *demangle_function(const char *, char *, size_t *, int *);

static demangle_function *find_demangle(void)
{
	static demangle_function *found;
	static bool is_looked_for;
	if (is_looked_for)
		return found;
	is_looked_for = true;
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	*(void **)&found = library ? dlsym(library, "__cxa_demangle") : NULL;
	return found;
}

const char *names_demangle(const char *symbol)
{
	static char *name;
	demangle_function *demangle = find_demangle();
	int status = -1;
	free(name);
	name = demangle ? demangle(symbol, NULL, NULL, &status) : NULL;
	return status ? NULL : name;
}
