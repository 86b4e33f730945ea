/* Who asked: from the module that a stack belongs to. Owns how owners are called in texts for
 * people. Must give the names that model/owner.c gives. */
#include "report/owner.h"

#include <string.h>

static const struct known_owner {
	const char *library, *name, *title; /* part of the file's name */
} known_owners[] = {
	{"libc10_cuda", "pytorch", "PyTorch"},   {"libnccl", "nccl", "NCCL"},
	{"libcublas", "cublas", "cuBLAS"},       {"libcudnn", "cudnn", "cuDNN"},
	{"libcusparse", "cusparse", "cuSPARSE"}, {"libcusolver", "cusolver", "cuSOLVER"},
	{"libcufft", "cufft", "cuFFT"},          {"libcurand", "curand", "cuRAND"},
};

#define KNOWN_COUNT (sizeof known_owners / sizeof *known_owners)

const char *owner_title(const char *owner)
{
	for (size_t i = 0; i < KNOWN_COUNT; i++)
		if (!strcmp(owner, known_owners[i].name))
			return known_owners[i].title;
	return strcmp(owner, "program") ? owner : "the program";
}

/* A library's name without its version suffix; anything else is the program itself. */
static const char *name_of_file(const char *file, char buffer[OWNER_NAME_BYTES])
{
	const char *suffix = strstr(file, ".so");
	size_t bytes = suffix ? (size_t)(suffix - file) + 3 : strlen(file);
	if (!suffix && strncmp(file, "lib", 3))
		return "program";
	if (bytes >= OWNER_NAME_BYTES)
		bytes = OWNER_NAME_BYTES - 1;
	memcpy(buffer, file, bytes);
	buffer[bytes] = 0;
	return buffer;
}

const char *owner_of_event(const struct defs *defs, const struct event *event,
			   char buffer[OWNER_NAME_BYTES])
{
	const struct def_stack *stack = defs_stack(defs, event->stack);
	const struct def_module *module = stack ? defs_module(defs, stack->owner) : NULL;
	if (event->space == MEMTRACE_SPACE_BLOCK)
		return "pytorch";
	if (!module || !*module->name)
		return NULL;
	for (size_t i = 0; i < KNOWN_COUNT; i++)
		if (strstr(module->name, known_owners[i].library))
			return known_owners[i].name;
	return name_of_file(module->name, buffer);
}
