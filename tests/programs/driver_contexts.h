/* Cases of driver_calls.c: contexts, which device a thread works on, and what ends with a context.
 */
#ifndef TESTS_DRIVER_CONTEXTS_H
#define TESTS_DRIVER_CONTEXTS_H

enum { OWN, PRIMARY, GREEN };

static void expect_context(const char *what, const void *context, int device, uint64_t kind)
{
	EXPECT(.what = what, .device = device, .address = (uintptr_t)context, .name = "kind",
	       .value = kind);
}

/* ---------- the primary ones ---------- */

void case_cuDevicePrimaryCtxRetain(void)
{
	CUcontext context;
	CALL(call_cuDevicePrimaryCtxRetain(&context, 1));
	use_device_1();
	CALL(call_cuDevicePrimaryCtxRelease_v2(1));
}

/* Memory of device 1 that is gone without a free; not that of device 0, nor physical memory. */
static void take_and_lose(CUresult (*end)(CUdevice))
{
	CUcontext context;
	CUdeviceptr kept = alloc_in(NULL, 0);
	CUmemGenericAllocationHandle handle = create_handle(1, 2 * MIB);
	CALL(call_cuCtxSetCurrent(context_1));
	alloc_in(NULL, 1);
	alloc_in(NULL, 1);
	CALL(call_cuCtxSetCurrent(context_0));
	CALL(end(1));
	expect_context("context_end", context_1, 1, PRIMARY);
	CALL(call_cuDevicePrimaryCtxRetain(&context, 1));
	expect_context("context", context_1, 1, PRIMARY);
	release_handle(handle);
	free_device(kept);
}

void case_cuDevicePrimaryCtxRelease(void)
{
	take_and_lose(call_cuDevicePrimaryCtxRelease);
}

void case_cuDevicePrimaryCtxRelease_v2(void)
{
	CUcontext context;
	CALL(call_cuDevicePrimaryCtxRetain(&context, 1));
	CALL(call_cuDevicePrimaryCtxRelease_v2(1)); /* not the last one: nothing ends */
	take_and_lose(call_cuDevicePrimaryCtxRelease_v2);
}

void case_cuDevicePrimaryCtxReset(void)
{
	take_and_lose(call_cuDevicePrimaryCtxReset);
}

void case_cuDevicePrimaryCtxReset_v2(void)
{
	take_and_lose(call_cuDevicePrimaryCtxReset_v2);
}

/* ---------- the thread's ---------- */

void case_cuCtxSetCurrent(void)
{
	use_device_1();
	alloc_on(0);
}

static void expect_pushed(void)
{
	CUcontext popped;
	alloc_on(1);
	CALL(call_cuCtxPopCurrent_v2(&popped));
	alloc_on(0);
}

void case_cuCtxPushCurrent_v2(void)
{
	CALL(call_cuCtxPushCurrent_v2(context_1));
	expect_pushed();
}

void case_cuCtxPopCurrent_v2(void)
{
	case_cuCtxPushCurrent_v2();
}

/* ---------- the program's own ---------- */

/* Two things that stay in it and one that does not, also when it is not the current one. */
static void use_and_destroy(CUcontext context, CUresult (*destroy)(CUcontext))
{
	CUcontext popped;
	CUdeviceptr pointer;
	expect_context("context", context, 1, OWN);
	free_device(alloc_in(context, 1));
	alloc_in(context, 1);
	CALL(call_cuMemAllocManaged(&pointer, MIB, CU_MEM_ATTACH_GLOBAL));
	EXPECT(.what = "alloc", .space = "managed", .device = 1, .address = pointer, .bytes = MIB,
	       .name = "context", .value = (uintptr_t)context);
	CALL(call_cuCtxPopCurrent_v2(&popped));
	pointer = alloc_in(NULL, 0);
	CALL(call_cuCtxPushCurrent_v2(context));
	alloc_in(context, 1);
	CALL(destroy(context)); /* which makes the one below the current one */
	expect_context("context_end", context, 1, OWN);
	free_device(pointer);
	alloc_on(0);
}

void case_cuCtxCreate(void)
{
	CUcontext context;
	CALL(call_cuCtxCreate(&context, 0, 1));
	use_and_destroy(context, call_cuCtxDestroy_v2);
}

void case_cuCtxCreate_v2(void)
{
	CUcontext context;
	CALL(call_cuCtxCreate_v2(&context, 0, 1));
	use_and_destroy(context, call_cuCtxDestroy_v2);
}

void case_cuCtxCreate_v3(void)
{
	CUcontext context;
	CALL(call_cuCtxCreate_v3(&context, NULL, 0, 0, 1));
	use_and_destroy(context, call_cuCtxDestroy_v2);
}

void case_cuCtxCreate_v4(void)
{
	CUcontext context;
	CALL(call_cuCtxCreate_v4(&context, NULL, 0, 1));
	use_and_destroy(context, call_cuCtxDestroy_v2);
}

void case_cuCtxDestroy(void)
{
	CUcontext context;
	CALL(call_cuCtxCreate_v2(&context, 0, 1));
	use_and_destroy(context, call_cuCtxDestroy);
}

void case_cuCtxDestroy_v2(void)
{
	case_cuCtxCreate_v2();
}

/* ---------- parts of a device ---------- */

void case_cuGreenCtxCreate(void)
{
	CUdevResource resources = {0};
	CUdevResourceDesc description;
	CUgreenCtx green;
	CUcontext context;
	CALL(HELPER(cuDevResourceGenerateDesc)(&description, &resources, 1));
	CALL(call_cuGreenCtxCreate(&green, description, 1, CU_GREEN_CTX_DEFAULT_STREAM));
	expect_context("context", green, 1, GREEN);
	CALL(call_cuCtxFromGreenCtx(&context, green));
	CALL(call_cuCtxSetCurrent(context));
	CUdeviceptr pointer = alloc_in(NULL, 1);
	CALL(call_cuCtxSetCurrent(context_0));
	CALL(call_cuGreenCtxDestroy(green));
	expect_context("context_end", green, 1, GREEN);
	free_device(pointer); /* it was the primary context's */
}

/* ---------- streams: memory comes from their device ---------- */

static void alloc_from_device_1(CUstream created)
{
	CUdeviceptr pointer;
	CALL(call_cuCtxSetCurrent(context_0));
	CALL(call_cuMemAllocAsync(&pointer, 11000, created));
	EXPECT(.what = "alloc", .space = "stream", .device = 1, .address = pointer, .bytes = 11000,
	       .stream = created);
	free_device(pointer);
	CALL(HELPER(cuStreamDestroy_v2)(created));
}

void case_cuStreamCreate(void)
{
	CUstream created;
	CALL(call_cuCtxSetCurrent(context_1));
	CALL(call_cuStreamCreate(&created, CU_STREAM_NON_BLOCKING));
	alloc_from_device_1(created);
}

void case_cuStreamCreateWithPriority(void)
{
	CUstream created;
	CALL(call_cuCtxSetCurrent(context_1));
	CALL(call_cuStreamCreateWithPriority(&created, CU_STREAM_NON_BLOCKING, -1));
	alloc_from_device_1(created);
}

void case_cuGreenCtxStreamCreate(void)
{
	CUdevResource resources = {0};
	CUdevResourceDesc description;
	CUgreenCtx green;
	CUstream created;
	CALL(HELPER(cuDevResourceGenerateDesc)(&description, &resources, 1));
	CALL(call_cuGreenCtxCreate(&green, description, 1, CU_GREEN_CTX_DEFAULT_STREAM));
	expect_context("context", green, 1, GREEN);
	CALL(call_cuGreenCtxStreamCreate(&created, green, CU_STREAM_NON_BLOCKING, 0));
	alloc_from_device_1(created);
	CALL(call_cuGreenCtxDestroy(green));
	expect_context("context_end", green, 1, GREEN);
}

void case_cuCtxFromGreenCtx(void)
{
	case_cuGreenCtxCreate();
}

void case_cuGreenCtxDestroy(void)
{
	case_cuGreenCtxCreate();
}

#endif
