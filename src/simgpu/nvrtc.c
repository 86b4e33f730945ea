/*
 * The stand-in for libnvrtc: every program compiles, to the same few lines of text.
 *
 * Owns the programs and the names their callers asked for. Nothing is compiled: the simulated
 * driver loads any image and any function name, and a launch does nothing.
 */
#include "sim_api.h"

#include <stdlib.h>
#include <string.h>

#ifndef SIM_CUDA_MAJOR
#error "simgpu.mk says which CUDA the library is for"
#endif

enum nvrtc_result {
	NVRTC_SUCCESS = 0,
	NVRTC_OUT_OF_MEMORY = 1,
	NVRTC_INVALID_INPUT = 3,
	NVRTC_NAME_EXPRESSION_NOT_VALID = 10,
};

static const char image[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

struct name {
	struct name *next;
	char text[]; /* a lowered name is the expression itself */
};

struct nvrtc_program {
	struct name *names;
};

SIM_API(const char *, nvrtcGetErrorString, int result)
{
	return result == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "not supported by the simulated NVRTC";
}

SIM_API(int, nvrtcVersion, int *major, int *minor)
{
	*major = SIM_CUDA_MAJOR;
	*minor = SIM_CUDA_MAJOR == 13 ? 0 : SIM_CUDA_MAJOR == 12 ? 8 : 7;
	return NVRTC_SUCCESS;
}

static const int architectures[] = {75, 80, 86, 89, 90, 100, 120};
#define ARCHITECTURE_COUNT ((int)(sizeof(architectures) / sizeof(architectures[0])))

SIM_API(int, nvrtcGetNumSupportedArchs, int *count)
{
	*count = ARCHITECTURE_COUNT;
	return NVRTC_SUCCESS;
}

SIM_API(int, nvrtcGetSupportedArchs, int *supported)
{
	memcpy(supported, architectures, sizeof(architectures));
	return NVRTC_SUCCESS;
}

SIM_API(int, nvrtcCreateProgram, struct nvrtc_program **program, const char *source,
	const char *name, int header_count, const char *const *headers,
	const char *const *include_names)
{
	*program = calloc(1, sizeof(**program));
	return *program ? NVRTC_SUCCESS : NVRTC_OUT_OF_MEMORY;
}

SIM_API(int, nvrtcDestroyProgram, struct nvrtc_program **program)
{
	struct name *name, *next;

	if (!program || !*program)
		return NVRTC_INVALID_INPUT;
	for (name = (*program)->names; name; name = next) {
		next = name->next;
		free(name);
	}
	free(*program);
	*program = NULL;
	return NVRTC_SUCCESS;
}

SIM_API(int, nvrtcAddNameExpression, struct nvrtc_program *program, const char *expression)
{
	size_t bytes = strlen(expression) + 1;
	struct name *name = malloc(sizeof(*name) + bytes);

	if (!name)
		return NVRTC_OUT_OF_MEMORY;
	memcpy(name->text, expression, bytes);
	name->next = program->names;
	program->names = name;
	return NVRTC_SUCCESS;
}

/* The name lives as long as the program. */
SIM_API(int, nvrtcGetLoweredName, struct nvrtc_program *program, const char *expression,
	const char **lowered)
{
	for (const struct name *name = program->names; name; name = name->next) {
		if (strcmp(name->text, expression) == 0) {
			*lowered = name->text;
			return NVRTC_SUCCESS;
		}
	}
	return NVRTC_NAME_EXPRESSION_NOT_VALID;
}

SIM_ACCEPT(nvrtcCompileProgram)

static int text_bytes(size_t *bytes)
{
	*bytes = sizeof(image); /* the closing NUL counts */
	return NVRTC_SUCCESS;
}

static int copy_text(char *out)
{
	memcpy(out, image, sizeof(image));
	return NVRTC_SUCCESS;
}

SIM_API(int, nvrtcGetPTXSize, struct nvrtc_program *program, size_t *bytes)
{
	return text_bytes(bytes);
}

SIM_API(int, nvrtcGetPTX, struct nvrtc_program *program, char *out)
{
	return copy_text(out);
}

SIM_API(int, nvrtcGetCUBINSize, struct nvrtc_program *program, size_t *bytes)
{
	return text_bytes(bytes);
}

SIM_API(int, nvrtcGetCUBIN, struct nvrtc_program *program, char *out)
{
	return copy_text(out);
}

SIM_API(int, nvrtcGetProgramLogSize, struct nvrtc_program *program, size_t *bytes)
{
	*bytes = 1;
	return NVRTC_SUCCESS;
}

SIM_API(int, nvrtcGetProgramLog, struct nvrtc_program *program, char *out)
{
	*out = '\0';
	return NVRTC_SUCCESS;
}
