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
#define UNWRAP(...) __VA_ARGS__
#define V11(symbol, parameters, arguments)                                               \
	cudaError_t own_##symbol parameters __asm__(#symbol);                            \
	cudaError_t own_##symbol parameters                                              \
	{                                                                                \
		cudaError_t (*next)(UNWRAP parameters, void *) = next_function(#symbol); \
		return next ? next(UNWRAP arguments, NULL) : cudaErrorNotSupported;      \
	}
#define V12(symbol, parameters, arguments)
#define V13(symbol, parameters, arguments)
#define RUNTIME(node, symbol, note, when, parameters, arguments) node(symbol, parameters, arguments)
#define DRIVER(...)
#define OTHER(symbol)
#include "hooks/hooks.def"
