/* Owns the finding of an interpreter, also of one that the program opens later, and the checks that
 * decide whether its frames are read. It must never read a library that may be closed meanwhile,
 * nor call into one that the loader is not through with, and refuses for good what it does not
 * know. */
#include <link.h>
#include <string.h>

#include "base/text.h"
#include "recorder/elf.h"
#include "recorder/python.h"
#include "recorder/python_private.h"
#include "recorder/say.h"
#include "recorder/unwind.h"

struct python python;

static uint32_t libraries_opened;
static __thread uint32_t libraries_seen __attribute__((tls_model("initial-exec")));
static bool is_looking;

/* ---------- is it known? ---------- */

static void refuse(const char *why)
{
	char buffer[256];
	struct text text;
	text_init_fixed(&text, buffer, sizeof buffer);
	text_printf(&text, "Python %s: %s, so allocations have no Python lines", python.version,
		    why);
	__atomic_store_n(&python.is_refused, true, __ATOMIC_RELEASE);
	say(text_string(&text));
}

/* The text is static and begins "3.11.7 "; the interpreter is not asked anything else. */
static int read_version(const struct link_map *object)
{
	const char *(*get)(void) = elf_find(object, "Py_GetVersion", NULL);
	const char *text = get ? get() : "";
	size_t length = strcspn(text, " ");
	if (length >= sizeof python.version)
		length = sizeof python.version - 1;
	memcpy(python.version, text, length);
	if (strncmp(text, "3.", 2) != 0)
		return 0;
	int minor = 0;
	for (const char *c = text + 2; *c >= '0' && *c <= '9' && minor < 1000; c++)
		minor = minor * 10 + (*c - '0');
	return minor;
}

static bool find_symbols(const struct link_map *object)
{
	python.is_finalizing = elf_find(object, "Py_IsFinalizing", NULL);
	if (!python.is_finalizing)
		python.is_finalizing = elf_find(object, "_Py_IsFinalizing", NULL);
	python.code_type = elf_find(object, "PyCode_Type", NULL);
	python.text_type = elf_find(object, "PyUnicode_Type", NULL);
	python.bytes_type = elf_find(object, "PyBytes_Type", NULL);
	python.tuple_type = elf_find(object, "PyTuple_Type", NULL);
	return python.is_finalizing && python.code_type && python.text_type && python.bytes_type &&
	       python.tuple_type;
}

/* Everything that the interpreter says of itself must be as the row says. */
static bool checks_out(const struct link_map *object, const struct python_layout *layout,
		       const void *runtime)
{
	return find_symbols(object) && python_layout_agrees(layout, runtime) &&
	       python_layout_agrees_with_type(layout, python.code_type,
					      elf_find(object, "PyType_Type", NULL));
}

/* NULL, or why its frames cannot be read. */
static const char *take(const struct link_map *object)
{
	const void *runtime = elf_find(object, "_PyRuntime", NULL);
	bool is_free_threaded = python_layout_is_free_threaded(runtime);
	const struct python_layout *layout =
		python_layout_find(read_version(object), is_free_threaded);
	if (!layout)
		return "its frames are not known to this version of memtrace";
	if (!checks_out(object, layout, runtime))
		return "its structures are not as expected";
	unwind_set_interpreter((uintptr_t)elf_find(object, "_PyEval_EvalFrameDefault", NULL));
	python_walks_of(layout);
	__atomic_store_n(&python.layout, layout, __ATOMIC_RELEASE);
	say_more("Python %s is known: allocations have its lines", python.version);
	return NULL;
}

/* ---------- where is it? ---------- */

/* glibc relocates these pointers in place. */
static uintptr_t dynamic_pointer(const struct link_map *object, ElfW(Addr) value)
{
	return value < object->l_addr ? value + object->l_addr : value;
}

/* Another thread may be in dlopen: then the library is on the list, but its functions jump to
 * nowhere. What the loader fills in last is the last entry of the table of functions, where the
 * linker had left an address counted from the start of the library. */
static bool is_relocated(const struct link_map *object)
{
	uintptr_t table = 0;
	size_t bytes = 0;
	for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_JMPREL)
			table = dynamic_pointer(object, entry->d_un.d_ptr);
		if (entry->d_tag == DT_PLTRELSZ)
			bytes = entry->d_un.d_val;
	}
	if (!table || bytes < sizeof(ElfW(Rela)))
		return true;
	const ElfW(Rela) *last = (const ElfW(Rela) *)(table + bytes) - 1;
	const uintptr_t *slot = (const uintptr_t *)(object->l_addr + last->r_offset);
	uintptr_t filled = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	return !filled || filled >= object->l_addr; /* 0: a weak symbol that nobody defines */
}

struct look {
	bool is_early; /* found, but not loaded yet */
	const char *refused;
};

static int look_at(const struct link_map *object, void *argument)
{
	struct look *look = argument;
	void *thread_state =
		object->l_ld ? elf_find(object, "PyGILState_GetThisThreadState", NULL) : NULL;
	if (!thread_state)
		return 0;
	python.thread_state = (void *(*)(void))thread_state;
	look->is_early = !is_relocated(object);
	look->refused = look->is_early ? NULL : take(object);
	return 1;
}

/* Under the lock that keeps objects from being unmapped meanwhile (elf.c). */
void python_find(void)
{
	struct look look = {.refused = NULL};
	uint32_t opened = __atomic_load_n(&libraries_opened, __ATOMIC_ACQUIRE);
	if (__atomic_exchange_n(&is_looking, true, __ATOMIC_ACQUIRE))
		return;
	if (!__atomic_load_n(&python.layout, __ATOMIC_ACQUIRE) && !python.is_refused)
		elf_visit(look_at, &look);
	if (look.refused)
		refuse(look.refused);
	if (!look.is_early)
		libraries_seen = opened;
	__atomic_store_n(&is_looking, false, __ATOMIC_RELEASE);
}

void python_expect(void)
{
	__atomic_fetch_add(&libraries_opened, 1, __ATOMIC_RELEASE);
}

bool python_is_expected(void)
{
	return libraries_seen != __atomic_load_n(&libraries_opened, __ATOMIC_ACQUIRE);
}

const char *python_version(void)
{
	bool is_found = __atomic_load_n(&python.layout, __ATOMIC_ACQUIRE) ||
			__atomic_load_n(&python.is_refused, __ATOMIC_ACQUIRE);
	return is_found ? python.version : NULL;
}

bool python_is_finalizing(void)
{
	return __atomic_load_n(&python.layout, __ATOMIC_ACQUIRE) && python.is_finalizing();
}
