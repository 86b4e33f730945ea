/* Cases of runtime_calls.c: arrays and mipmaps. Sizes are counted by hand. */
#ifndef TESTS_RUNTIME_ARRAYS_H
#define TESTS_RUNTIME_ARRAYS_H

static const struct cudaChannelFormatDesc
	one_float = {32, 0, 0, 0, cudaChannelFormatKindFloat},
	two_halves = {16, 16, 0, 0, cudaChannelFormatKindFloat},
	four_bytes = {8, 8, 8, 8, cudaChannelFormatKindUnsigned},
	normalized = {16, 16, 16, 16, cudaChannelFormatKindUnsignedNormalized16X4},
	compressed = {8, 8, 8, 8, cudaChannelFormatKindUnsignedBlockCompressed1},
	compressed_hdr = {16, 16, 16, 0, cudaChannelFormatKindSignedBlockCompressed6H},
	planar = {8, 8, 8, 0, cudaChannelFormatKindNV12};

static void free_array(cudaArray_t array)
{
	CALL(RT(cudaFreeArray)(array));
	expect_free("array", (uintptr_t)array);
}

void case_cudaMallocArray(void)
{
	static const struct {
		const struct cudaChannelFormatDesc *channels;
		size_t width, height;
		unsigned flags;
		size_t bytes;
	} arrays[] = {
		{&one_float, 100, 0, 0, 400},
		{&two_halves, 100, 30, 0, 12000},
		{&four_bytes, 64, 64, cudaArraySurfaceLoadStore, 16384},
		{&normalized, 10, 10, 0, 800},
		{&compressed, 10, 10, 0, 3 * 3 * 8},
		{&compressed_hdr, 10, 10, 0, 3 * 3 * 16},
		{&planar, 64, 32, 0, 64 * 32 * 3 / 2},
		{&one_float, 1024, 1024, cudaArraySparse, 0},
	};
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		cudaArray_t array;
		CALL(RT(cudaMallocArray)(&array, arrays[i].channels, arrays[i].width,
					 arrays[i].height, arrays[i].flags));
		expect_alloc("array", array, arrays[i].bytes);
		free_array(array);
	}
}

void case_cudaMalloc3DArray(void)
{
	static const struct {
		const struct cudaChannelFormatDesc *channels;
		struct cudaExtent extent;
		unsigned flags;
		size_t bytes;
	} arrays[] = {
		{&one_float, {64, 32, 5}, 0, 64 * 32 * 5 * 4},
		{&four_bytes, {50, 0, 7}, cudaArrayLayered, 50 * 7 * 4},
		{&two_halves, {64, 64, 6}, cudaArrayCubemap, 64 * 64 * 6 * 4},
		{&one_float, {16, 16, 12}, cudaArrayCubemap | cudaArrayLayered, 16 * 16 * 12 * 4},
	};
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		cudaArray_t array;
		CALL(RT(cudaMalloc3DArray)(&array, arrays[i].channels, arrays[i].extent,
					   arrays[i].flags));
		expect_alloc("array", array, arrays[i].bytes);
		free_array(array);
	}
}

void case_cudaFreeArray(void)
{
	case_cudaMallocArray();
	CALL(RT(cudaFreeArray)(NULL));
}

void case_cudaMallocMipmappedArray(void)
{
	static const struct {
		const struct cudaChannelFormatDesc *channels;
		struct cudaExtent extent;
		unsigned levels, flags;
		size_t bytes;
	} mipmaps[] = {
		{&one_float, {64, 64, 0}, 7, 0, 5461 * 4},
		{&one_float, {64, 64, 0}, 100, 0, 5461 * 4},
		{&two_halves, {16, 16, 16}, 2, 0, (4096 + 512) * 4},
		{&four_bytes, {64, 64, 6}, 2, cudaArrayCubemap, (4096 + 1024) * 6 * 4},
	};
	for (size_t i = 0; i < sizeof mipmaps / sizeof *mipmaps; i++) {
		cudaMipmappedArray_t array;
		CALL(RT(cudaMallocMipmappedArray)(&array, mipmaps[i].channels, mipmaps[i].extent,
						  mipmaps[i].levels, mipmaps[i].flags));
		expect_alloc("array", array, mipmaps[i].bytes);
		CALL(RT(cudaFreeMipmappedArray)(array));
		expect_free("array", (uintptr_t)array);
	}
}

void case_cudaFreeMipmappedArray(void)
{
	case_cudaMallocMipmappedArray();
	CALL(RT(cudaFreeMipmappedArray)(NULL));
}

#endif
