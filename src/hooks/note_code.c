/* What calls about modules and libraries of code mean: loading them takes device memory whose size CUDA does not tell,
 * so the event names the moment. A variable in one has a size, but is part of what its module took. */
#include "hooks/rows.h"

static uint64_t bits_of(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

static void note_load(struct call *call, const void *module, uint64_t is_library)
{
	call_tell(call, MEMTRACE_MODULE, MEMTRACE_SPACE_NONE, bits_of(module), 0, is_library);
}

static void note_unload(struct call *call, const void *module, uint64_t is_library)
{
	call_tell(call, MEMTRACE_MODULE_END, MEMTRACE_SPACE_NONE, bits_of(module), 0, is_library);
}

void note_cuModuleLoadData(struct call *call, CUmodule *module, const void *image)
{
	(void)image;
	note_load(call, call->status ? NULL : *module, 0);
}

void note_cuModuleLoad(struct call *call, CUmodule *module, const char *path)
{
	note_cuModuleLoadData(call, module, path);
}

void note_cuModuleLoadDataEx(struct call *call, CUmodule *module, const void *image, unsigned int count,
			     CUjit_option *options, void **values)
{
	(void)count;
	(void)options;
	(void)values;
	note_cuModuleLoadData(call, module, image);
}

void note_cuModuleUnload(struct call *call, CUmodule module)
{
	note_unload(call, module, 0);
}

void note_cuLibraryLoadData(struct call *call, CUlibrary *library, const void *code, CUjit_option *jit_options,
			    void **jit_values, unsigned int jit_count, CUlibraryOption *options, void **values,
			    unsigned int count)
{
	(void)code;
	(void)jit_options;
	(void)jit_values;
	(void)jit_count;
	(void)options;
	(void)values;
	(void)count;
	note_load(call, call->status ? NULL : *library, 1);
}

void note_cuLibraryLoadFromFile(struct call *call, CUlibrary *library, const char *path, CUjit_option *jit_options,
				void **jit_values, unsigned int jit_count, CUlibraryOption *options, void **values,
				unsigned int count)
{
	note_cuLibraryLoadData(call, library, path, jit_options, jit_values, jit_count, options, values, count);
}

void note_cuLibraryUnload(struct call *call, CUlibrary library)
{
	note_unload(call, library, 1);
}

/* Either output may be left out by the caller. */
static void note_global(struct call *call, const CUdeviceptr *pointer, const size_t *bytes, const void *module)
{
	if (call->status || !pointer)
		return;
	call_tell(call, MEMTRACE_GLOBAL, MEMTRACE_SPACE_NONE, *pointer, bytes ? *bytes : 0, bits_of(module));
	call_told_inside(call);
}

void note_cuModuleGetGlobal(struct call *call, CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name)
{
	(void)name;
	note_global(call, pointer, bytes, module);
}

void note_cuLibraryGetGlobal(struct call *call, CUdeviceptr *pointer, size_t *bytes, CUlibrary library,
			     const char *name)
{
	(void)name;
	note_global(call, pointer, bytes, library);
}

void note_cudaGetSymbolAddress(struct call *call, void **pointer, const void *symbol)
{
	(void)symbol;
	if (!call_was_told_inside(call) && !call->status)
		call_tell(call, MEMTRACE_GLOBAL, MEMTRACE_SPACE_NONE, bits_of(*pointer), 0, 0);
}
