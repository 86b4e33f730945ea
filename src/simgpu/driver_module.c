/*
 * Code: every module loads, every function in it exists, and nothing runs.  A function is known by
 * the name that was asked for; a variable is a page of device address space that costs no device
 * memory; code costs what SIMGPU_MODULE says.  Owns modules and what was found in them.  Must never
 * read the code it is given.
 */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define VARIABLE_BYTES 4096

/* Something that was looked up in a module by name. */
struct symbol {
	struct CUmod_st *module;
	CUdeviceptr address; /* of a variable */
	struct symbol *next;
	char name[];
};

/* Serves as module and as library: either is a list of what was asked of it. */
struct CUmod_st {
	struct symbol *functions;
	struct symbol *variables;
	size_t charge_bytes;
	int device; /* that is charged */
};

static CUmodule module_of(CUlibrary library)
{
	return (CUmodule)(void *)library;
}

/* ---- modules ---- */

static CUresult module_new(CUmodule *module)
{
	if (module == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*module = calloc(1, sizeof(**module));
	return *module != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Its code is the device's that the calling thread works on. */
static CUresult module_load(CUmodule *module)
{
	CUresult result = module_new(module);
	int device = context_device();

	if (result != CUDA_SUCCESS || driver_machine.module_bytes == 0)
		return result;
	pthread_mutex_lock(&driver_lock);
	result = device_charge_overhead(device, driver_machine.module_bytes);
	pthread_mutex_unlock(&driver_lock);
	if (result != CUDA_SUCCESS) {
		free(*module);
		*module = NULL;
		return result;
	}
	(*module)->charge_bytes = driver_machine.module_bytes;
	(*module)->device = device;
	return CUDA_SUCCESS;
}

static void symbols_free(struct symbol *symbol)
{
	while (symbol != NULL) {
		struct symbol *next = symbol->next;
		struct block *block = symbol->address != 0 ? block_find(symbol->address) : NULL;
		if (block != NULL)
			block_remove(block);
		free(symbol);
		symbol = next;
	}
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	return module_load(module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return module_load(module);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
			    CUjit_option *options, void **values)
{
	return module_load(module);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return module_load(module);
}

CUresult cuModuleUnload(CUmodule module)
{
	if (module == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&driver_lock);
	symbols_free(module->functions);
	symbols_free(module->variables);
	if (module->charge_bytes > 0)
		device_uncharge_overhead(module->device, module->charge_bytes);
	pthread_mutex_unlock(&driver_lock);
	free(module);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	*mode = sim_card_eager_bytes() > 0 ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

/* ---- functions and variables ---- */

static struct symbol *symbol_find(struct symbol *symbol, const char *name)
{
	while (symbol != NULL && strcmp(symbol->name, name) != 0)
		symbol = symbol->next;
	return symbol;
}

/* Find `name` in `list`, or add it.  NULL without memory. */
static struct symbol *symbol_get(CUmodule module, struct symbol **list, const char *name)
{
	struct symbol *symbol = symbol_find(*list, name);
	size_t name_bytes = strlen(name) + 1;

	if (symbol != NULL)
		return symbol;
	symbol = calloc(1, sizeof(*symbol) + name_bytes);
	if (symbol == NULL)
		return NULL;
	symbol->module = module;
	memcpy(symbol->name, name, name_bytes);
	symbol->next = *list;
	*list = symbol;
	return symbol;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	if (module == NULL || name == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&driver_lock);
	struct symbol *symbol = symbol_get(module, &module->functions, name);
	pthread_mutex_unlock(&driver_lock);
	*function = (CUfunction)(void *)symbol;
	return symbol != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult variable_place(struct symbol *symbol)
{
	struct block block = {
		.size_bytes = VARIABLE_BYTES,
		.span_bytes = VARIABLE_BYTES,
		.kind = BLOCK_GLOBAL,
		.device = context_device(),
	};

	if (symbol == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (symbol->address != 0)
		return CUDA_SUCCESS;
	CUresult result = block_insert(&block, VARIABLE_BYTES);
	if (result == CUDA_SUCCESS)
		symbol->address = block.address;
	return result;
}

CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
	if (module == NULL || name == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&driver_lock);
	struct symbol *symbol = symbol_get(module, &module->variables, name);
	CUresult result = variable_place(symbol);
	pthread_mutex_unlock(&driver_lock);
	if (result != CUDA_SUCCESS)
		return result;
	if (address != NULL)
		*address = symbol->address;
	if (bytes != NULL)
		*bytes = VARIABLE_BYTES;
	return CUDA_SUCCESS;
}

/* ---- libraries: the same, without a context ---- */

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit_options,
			   void **jit_values, unsigned jit_count, CUlibraryOption *options,
			   void **values, unsigned count)
{
	return module_load((CUmodule *)(void *)library);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit_options,
			       void **jit_values, unsigned jit_count, CUlibraryOption *options,
			       void **values, unsigned count)
{
	return module_load((CUmodule *)(void *)library);
}

CUresult cuLibraryUnload(CUlibrary library)
{
	return cuModuleUnload(module_of(library));
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	*module = module_of(library);
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	return cuModuleGetFunction((CUfunction *)(void *)kernel, module_of(library), name);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
			    const char *name)
{
	return cuModuleGetGlobal(address, bytes, module_of(library), name);
}

CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary library,
			     const char *name)
{
	return cuModuleGetGlobal(address, bytes, module_of(library), name);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	*function = (CUfunction)(void *)kernel;
	return CUDA_SUCCESS;
}

/* The runtime's functions are addresses in the program and carry no name here. */
CUresult cuFuncGetName(const char **name, CUfunction function)
{
	*name = "simulated_kernel";
	return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- linking ---- */

CUresult cuLinkCreate(unsigned count, CUjit_option *options, void **values, CUlinkState *state)
{
	return module_new((CUmodule *)(void *)state);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t bytes,
		       const char *name, unsigned count, CUjit_option *options, void **values)
{
	return CUDA_SUCCESS;
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned count,
		       CUjit_option *options, void **values)
{
	return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState state, void **image, size_t *bytes)
{
	*image = state;
	*bytes = sizeof(struct CUmod_st);
	return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	return cuModuleUnload((CUmodule)(void *)state);
}
