/* Cases of driver_calls.c: modules and libraries of code, and calls that say nothing of memory. */
#ifndef TESTS_DRIVER_CODE_H
#define TESTS_DRIVER_CODE_H

static void expect_code(const char *what, const void *module, uint64_t is_library)
{
	EXPECT(.what = what, .address = (uintptr_t)module, .name = "is_library",
	       .value = is_library);
}

static void unload_module(CUmodule module)
{
	expect_code("module", module, 0);
	CALL(call_cuModuleUnload(module));
	expect_code("module_end", module, 0);
}

void case_cuModuleLoad(void)
{
	CUmodule module;
	CALL(call_cuModuleLoad(&module, "kernels.cubin"));
	unload_module(module);
}

void case_cuModuleLoadData(void)
{
	CUmodule module;
	CALL(call_cuModuleLoadData(&module, ""));
	unload_module(module);
}

void case_cuModuleLoadDataEx(void)
{
	CUmodule module;
	CALL(call_cuModuleLoadDataEx(&module, "", 0, NULL, NULL));
	unload_module(module);
}

void case_cuModuleLoadFatBinary(void)
{
	CUmodule module;
	CALL(call_cuModuleLoadFatBinary(&module, ""));
	unload_module(module);
}

void case_cuModuleUnload(void)
{
	case_cuModuleLoad();
}

static void expect_global(CUdeviceptr pointer, uint64_t bytes, const void *module)
{
	EXPECT(.what = "global", .address = pointer, .bytes = bytes, .name = "module",
	       .value = (uintptr_t)module);
}

void case_cuModuleGetGlobal_v2(void)
{
	CUmodule module;
	CUdeviceptr pointer;
	size_t bytes;
	CALL(call_cuModuleLoadData(&module, ""));
	expect_code("module", module, 0);
	CALL(call_cuModuleGetGlobal_v2(&pointer, &bytes, module, "variable"));
	expect_global(pointer, bytes, module);
	CALL(call_cuModuleGetGlobal_v2(&pointer, NULL, module, "variable"));
	expect_global(pointer, 0, module);
	CALL(call_cuModuleGetGlobal_v2(NULL, &bytes, module, "variable"));
	CALL(call_cuModuleUnload(module));
	expect_code("module_end", module, 0);
}

static CUlibrary load_library(void)
{
	CUlibrary code;
	CALL(call_cuLibraryLoadData(&code, "", NULL, NULL, 0, NULL, NULL, 0));
	expect_code("module", code, 1);
	return code;
}

static void unload_library(CUlibrary code)
{
	CALL(call_cuLibraryUnload(code));
	expect_code("module_end", code, 1);
}

void case_cuLibraryLoadData(void)
{
	unload_library(load_library());
}

void case_cuLibraryUnload(void)
{
	unload_library(load_library());
}

void case_cuLibraryLoadFromFile(void)
{
	CUlibrary code;
	CALL(call_cuLibraryLoadFromFile(&code, "kernels.cubin", NULL, NULL, 0, NULL, NULL, 0));
	expect_code("module", code, 1);
	unload_library(code);
}

static void find_in_library(CUresult (*find)(CUdeviceptr *, size_t *, CUlibrary, const char *))
{
	CUlibrary code = load_library();
	CUdeviceptr pointer;
	size_t bytes;
	CALL(find(&pointer, &bytes, code, "variable"));
	expect_global(pointer, bytes, code);
	unload_library(code);
}

void case_cuLibraryGetGlobal(void)
{
	find_in_library(call_cuLibraryGetGlobal);
}

void case_cuLibraryGetManaged(void)
{
	find_in_library(call_cuLibraryGetManaged);
}

/* ---------- nothing of memory ---------- */

void case_cuInit(void)
{
	CALL(call_cuInit(0));
	expect_nothing();
}

/* The answer is the driver's own: the simulated one has no tables. */
void case_cuGetExportTable(void)
{
	static const CUuuid id;
	const void *table = &id;
	CALL(call_cuGetExportTable(&table, &id) != CUDA_ERROR_NOT_FOUND);
	CALL(table != NULL);
	expect_nothing();
}

#endif
