/* Cases of runtime_calls.c: the reset of a device, variables, and calls that say nothing of memory.
 */
#ifndef TESTS_RUNTIME_REST_H
#define TESTS_RUNTIME_REST_H

static uint64_t set_device(int device)
{
	CUcontext context = NULL;
	CALL(RT(cudaSetDevice)(device));
	CALL(((__typeof__(cuCtxGetCurrent) *)dlsym(dlopen("libcuda.so.1", RTLD_NOW),
						   "cuCtxGetCurrent"))(&context));
	return (uintptr_t)context;
}

/* Linear and managed memory and an array of device 1 are gone, and what is on device 0 is not. */
void case_cudaDeviceReset(void)
{
	void *kept, *lost;
	cudaArray_t array;
	CALL(RT(cudaMalloc)(&kept, 5000));
	expect_alloc("device", kept, 5000);
	uint64_t context = set_device(1);
	CALL(RT(cudaMalloc)(&lost, 6000));
	EXPECT(.what = "alloc", .space = "device", .device = 1, .address = (uintptr_t)lost,
	       .bytes = 6000);
	CALL(RT(cudaMallocManaged)(&lost, MIB, cudaMemAttachGlobal));
	EXPECT(.what = "alloc", .space = "managed", .device = 1, .address = (uintptr_t)lost,
	       .bytes = MIB);
	CALL(RT(cudaMallocArray)(&array, &one_float, 100, 0, 0));
	EXPECT(.what = "alloc", .space = "array", .device = 1, .address = (uintptr_t)array,
	       .bytes = 400);
	CALL(RT(cudaDeviceReset)());
	EXPECT(.what = "context_end", .device = 1, .address = context, .name = "kind", .value = 1);
	set_device(1);
	EXPECT(.what = "context", .device = 1, .address = context, .name = "kind", .value = 1);
	set_device(0);
	free_device(kept);
}

/* Its size is known from what the runtime asks of the driver. */
void case_cudaGetSymbolAddress(void)
{
	static int variable;
	void *first, *second;
	struct {
		CUdeviceptr start;
		size_t bytes;
	} range;
	CALL(RT(cudaGetSymbolAddress)(&first, &variable));
	CALL(((__typeof__(cuMemGetAddressRange_v2) *)dlsym(dlopen("libcuda.so.1", RTLD_NOW),
							"cuMemGetAddressRange_v2"))(
		&range.start, &range.bytes, (CUdeviceptr)(uintptr_t)first));
	EXPECT(.what = "global", .address = (uintptr_t)first, .bytes = range.bytes);
	CALL(RT(cudaGetSymbolAddress)(&second, &variable));
	EXPECT(.what = "global", .address = (uintptr_t)second, .bytes = range.bytes);
}

/* The answer is the runtime's own: the simulated one has no tables. */
void case_cudaGetExportTable(void)
{
	static const cudaUUID_t id;
	const void *table = NULL;
	CALL(RT(cudaGetExportTable)(&table, &id) != cudaErrorNotSupported);
	expect_nothing();
}

#endif
