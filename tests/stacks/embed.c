/* Usage: embed LIBPYTHON early|late SCRIPT OUT
 *
 * Opens libpython with RTLD_LOCAL, as a plug-in does, and runs a script that has the names allocate
 * and OUT besides its own. `late`: the first allocation is made before libpython is opened. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES        1
#define TAKES_ONE_ARGUMENT 8 /* METH_O */

int cuMemAlloc_v2(uint64_t *address, size_t bytes);

struct method { /* PyMethodDef */
	const char *name;
	void *(*call)(void *self, void *argument);
	int flags;
	const char *text;
};

static unsigned long (*as_unsigned)(void *);
static void *(*from_unsigned)(unsigned long);

static void *allocate(void *self, void *argument)
{
	uint64_t address = 0;
	(void)self;
	cuMemAlloc_v2(&address, as_unsigned(argument));
	return from_unsigned(address);
}

static struct method method = {"allocate", allocate, TAKES_ONE_ARGUMENT, NULL};

static void *need(void *library, const char *name)
{
	void *found = dlsym(library, name);
	if (!found) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return found;
}

static void run(void *library, const char *script, const char *out)
{
	void (*initialize)(int) = need(library, "Py_InitializeEx");
	int (*finalize)(void) = need(library, "Py_FinalizeEx");
	int (*execute)(const char *) = need(library, "PyRun_SimpleString");
	void *(*module)(const char *) = need(library, "PyImport_AddModule");
	void *(*function)(struct method *, void *, void *) = need(library, "PyCFunction_NewEx");
	int (*set)(void *, const char *, void *) = need(library, "PyObject_SetAttrString");
	char code[4096];
	as_unsigned = need(library, "PyLong_AsUnsignedLong");
	from_unsigned = need(library, "PyLong_FromUnsignedLong");
	snprintf(code, sizeof code, "OUT = '%s'\nexec(compile(open('%s').read(), '%s', 'exec'))\n",
		 out, script, script);
	initialize(0);
	set(module("__main__"), "allocate", function(&method, NULL, NULL));
	if (execute(code))
		exit(1);
	finalize();
}

int main(int argc, char **argv)
{
	uint64_t address;
	if (argc != 5)
		return 2;
	if (!strcmp(argv[2], "late"))
		cuMemAlloc_v2(&address, FIRST_BYTES);
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	run(library, argv[3], argv[4]);
	cuMemAlloc_v2(&address, FIRST_BYTES); /* after the interpreter: no frames */
	return 0;
}
