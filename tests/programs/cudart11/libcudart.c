/* A runtime with CUDA 11's version node, for the programs that call through it: every function of
 * the table that it has goes on to the runtime of CUDA 12. The structures that differ between the
 * two are never looked into. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <string.h>

#undef cudaGetDeviceProperties

static void *next_function(const char *symbol)
{
	void *library = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
	if (!strcmp(symbol, "cudaGetDeviceProperties")) /* what 12 calls so is not simulated */
		symbol = "cudaGetDeviceProperties_v2";
	return library ? dlvsym(library, symbol, "libcudart.so.12") : NULL;
}

/* One argument more than CUDA 11 knew: the one that cudaGetDriverEntryPoint got in 12; the others
 * never look. */
#define UNWRAP(...)               __VA_ARGS__
#define NEXT_TYPE(parameters)     (UNWRAP parameters, void *)
#define NEXT_ARGUMENTS(arguments) (UNWRAP arguments, NULL)
#define TYPE_AFTER                NEXT_TYPE
#define TYPE_AROUND               NEXT_TYPE
#define TYPE_BOTH                 NEXT_TYPE
#define TYPE_ALWAYS               NEXT_TYPE
#define TYPE_PROBE                NEXT_TYPE
#define TYPE_PASS                 NEXT_TYPE
#define TYPE_ALONE(parameters)    (void)
#define WITH_AFTER                NEXT_ARGUMENTS
#define WITH_AROUND               NEXT_ARGUMENTS
#define WITH_BOTH                 NEXT_ARGUMENTS
#define WITH_ALWAYS               NEXT_ARGUMENTS
#define WITH_PROBE                NEXT_ARGUMENTS
#define WITH_PASS                 NEXT_ARGUMENTS
#define WITH_ALONE(arguments)     ()
#define V11(symbol, when, parameters, arguments)                                     \
	cudaError_t own_##symbol parameters __asm__(#symbol);                        \
	cudaError_t own_##symbol parameters                                          \
	{                                                                            \
		cudaError_t(*next) TYPE_##when(parameters) = next_function(#symbol); \
		return next ? next WITH_##when(arguments) : cudaErrorNotSupported;   \
	}
#define V12(symbol, when, parameters, arguments)
#define V13(symbol, when, parameters, arguments)
#define RUNTIME(node, symbol, note, when, parameters, arguments) \
	node(symbol, when, parameters, arguments)
#define DRIVER(...)
#define OTHER(symbol)
#include "hooks/hooks.def"
