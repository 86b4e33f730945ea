/* Finds CUPTI. One that the program has loaded is the one that fits its CUDA (PyTorch brings its own); otherwise the
 * loader looks. Owns nothing: the library is never closed. */
#include "hooks/cupti_private.h"

#include <dlfcn.h>
#include <string.h>

#include "recorder/elf.h"

static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so.11.7",
				      "libcupti.so" };
#define NAME_COUNT (sizeof names / sizeof *names)

static void *open_library(void)
{
	void *library = NULL;
	for (unsigned i = 0; !library && i < NAME_COUNT; i++)
		library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
	for (unsigned i = 0; !library && i < NAME_COUNT; i++)
		library = dlopen(names[i], RTLD_LAZY);
	return library;
}

const char *cupti_open(struct cupti *cupti)
{
	void *library = open_library();
	if (!library)
		return "libcupti cannot be opened (is its folder in LD_LIBRARY_PATH?)";
#define X(name)                                                                                                  \
	cupti->name = (__typeof__(cupti->name))dlsym(library, #name);                                            \
	if (!cupti->name)                                                                                        \
		return "libcupti has no " #name;
	CUPTI_FUNCTIONS(X)
#undef X
	return NULL;
}

/* What is preloaded stands before the libraries that it needs. */
bool cupti_is_preloaded(void)
{
	static const char here;
	const struct link_map *object = elf_object_of(&here);
	while (object && strncmp(elf_basename(object), "libc.so", 7) != 0)
		object = object->l_next;
	return object;
}
