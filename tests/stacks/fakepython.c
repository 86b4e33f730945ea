/* Something that calls itself an interpreter and is none that memtrace knows. Everything that a
 * walk would follow is a trap: whoever touches more than the version dies. VERSION is set when it
 * is built. MEMBERS: it is of a known version, and the type of its code objects looks sound but
 * says that they are laid out otherwise. */
#include <stddef.h>
#include <stdint.h>

#ifndef VERSION
#define VERSION "3.99.0"
#endif

#define TRAP ((void *)8)

const char *Py_GetVersion(void);
void *PyGILState_GetThisThreadState(void);
int _Py_IsFinalizing(void);

const char *Py_GetVersion(void)
{
	return VERSION " (default) [GCC]";
}

void *PyGILState_GetThisThreadState(void)
{
	return TRAP;
}

int _Py_IsFinalizing(void)
{
	return 0;
}

#ifdef MEMBERS
struct member {
	const char *name;
	int type;
	intptr_t offset;
	int flags;
	const char *text;
};

static const struct member members[] = {
	{"co_name", 6, 120, 1, NULL},       {"co_filename", 6, 112, 1, NULL},
	{"co_qualname", 6, 128, 1, NULL},   {"co_linetable", 6, 136, 1, NULL},
	{"co_firstlineno", 1, 76, 1, NULL}, {NULL, 0, 0, 0, NULL}};

const void *PyType_Type[64];
const void *PyUnicode_Type[64], *PyBytes_Type[64];
const void *PyCode_Type[64] = {[1] = PyType_Type, [30] = members};
#endif
