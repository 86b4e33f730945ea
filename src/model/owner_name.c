/* Owns the table of libraries whose memory is called by the project's name and not by the file's. */
#include "model/owner_name.h"

#include <stddef.h>
#include <string.h>

static const struct known_owner {
	const char *library, *name, *title; /* part of the file's name */
} known_owners[] = {
	{"libc10_cuda", "pytorch", "PyTorch"},   {"libnccl", "nccl", "NCCL"},
	{"libcublas", "cublas", "cuBLAS"},       {"libcudnn", "cudnn", "cuDNN"},
	{"libcusparse", "cusparse", "cuSPARSE"}, {"libcusolver", "cusolver", "cuSOLVER"},
	{"libcufft", "cufft", "cuFFT"},          {"libcurand", "curand", "cuRAND"},
	{"xla_cuda_plugin", "xla", "XLA (JAX)"},
};

#define KNOWN_COUNT (sizeof known_owners / sizeof *known_owners)

const char *owner_title(const char *owner)
{
	for (size_t i = 0; i < KNOWN_COUNT; i++)
		if (!strcmp(owner, known_owners[i].name))
			return known_owners[i].title;
	return strcmp(owner, "program") ? owner : "the program";
}

/* Where the name of an extension module of Python ends: "name.cpython-311-x86_64-linux-gnu.so", "name.abi3.so". */
static const char *python_suffix(const char *file)
{
	const char *suffix = strstr(file, ".cpython-");
	return suffix ? suffix : strstr(file, ".abi3.so");
}

static const char *copy_name(const char *file, size_t bytes, char buffer[OWNER_NAME_BYTES])
{
	if (bytes >= OWNER_NAME_BYTES)
		bytes = OWNER_NAME_BYTES - 1;
	memcpy(buffer, file, bytes);
	buffer[bytes] = 0;
	return buffer;
}

/* A library's name without its version suffix, an extension module's without Python's; anything else is the program
 * itself. */
const char *owner_name(const char *file, char buffer[OWNER_NAME_BYTES])
{
	for (size_t i = 0; i < KNOWN_COUNT; i++)
		if (strstr(file, known_owners[i].library))
			return known_owners[i].name;
	const char *suffix = python_suffix(file);
	if (suffix)
		return copy_name(file, (size_t)(suffix - file), buffer);
	suffix = strstr(file, ".so");
	size_t bytes = suffix ? (size_t)(suffix - file) + strlen(".so") : strlen(file);
	if (!suffix && strncmp(file, "lib", 3))
		return "program";
	return copy_name(file, bytes, buffer);
}
