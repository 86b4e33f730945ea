/* Cases of driver_calls.c: arrays and mipmaps. Sizes are counted by hand. */
#ifndef TESTS_DRIVER_ARRAYS_H
#define TESTS_DRIVER_ARRAYS_H

static void expect_array(const void *array, uint64_t bytes)
{
	EXPECT(.what = "alloc", .space = "array", .address = (uintptr_t)array, .bytes = bytes);
}

static void free_array(CUarray array)
{
	CALL(call_cuArrayDestroy(array));
	expect_free("array", (uintptr_t)array);
}

void case_cuArrayCreate_v2(void)
{
	CUarray array;
	CUDA_ARRAY_DESCRIPTOR descriptor = {100, 30, CU_AD_FORMAT_UNSIGNED_INT16, 2};
	CALL(call_cuArrayCreate_v2(&array, &descriptor));
	expect_array(array, 100 * 30 * 4);
	free_array(array);
	descriptor.Height = 0; /* one dimension */
	CALL(call_cuArrayCreate_v2(&array, &descriptor));
	expect_array(array, 100 * 4);
	free_array(array);
}

void case_cuArray3DCreate_v2(void)
{
	static const struct {
		CUDA_ARRAY3D_DESCRIPTOR descriptor;
		uint64_t bytes;
	} arrays[] = {
		{{100, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 400},
		{{100, 30, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0}, 12000},
		{{64, 32, 5, CU_AD_FORMAT_HALF, 2, 0}, 64 * 32 * 5 * 4},
		{{3, 3, 3, CU_AD_FORMAT_SIGNED_INT32, 4, 0}, 27 * 16},
		/* layers, faces of a cube, faces of several cubes: depth is how many */
		{{50, 0, 7, CU_AD_FORMAT_SIGNED_INT32, 2, CUDA_ARRAY3D_LAYERED}, 50 * 7 * 8},
		{{64, 64, 6, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_CUBEMAP}, 64 * 64 * 6 * 16},
		{{64, 64, 12, CU_AD_FORMAT_SIGNED_INT16, 1,
		  CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
		 64 * 64 * 12 * 2},
		/* formats that say what a whole element takes */
		{{10, 10, 0, CU_AD_FORMAT_UNORM_INT8X4, 4, 0}, 400},
		{{10, 10, 0, CU_AD_FORMAT_SNORM_INT16X1, 1, 0}, 200},
		{{10, 10, 0, CU_AD_FORMAT_UNORM_INT_101010_2, 4, 0}, 400},
		{{64, 32, 0, CU_AD_FORMAT_NV12, 3, 0}, 64 * 32 * 3 / 2},
		{{64, 32, 0, CU_AD_FORMAT_P016, 3, 0}, 64 * 32 * 3},
		{{64, 32, 0, CU_AD_FORMAT_Y416, 4, 0}, 64 * 32 * 8},
		/* blocks of 4 by 4: of 8 bytes and of 16 */
		{{10, 10, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0}, 3 * 3 * 8},
		{{10, 10, 0, CU_AD_FORMAT_BC4_SNORM, 1, 0}, 3 * 3 * 8},
		{{16, 16, 0, CU_AD_FORMAT_BC7_UNORM_SRGB, 4, 0}, 4 * 4 * 16},
		/* memory is mapped into it later */
		{{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE}, 0},
	};
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		CUarray array;
		CALL(call_cuArray3DCreate_v2(&array, &arrays[i].descriptor));
		expect_array(array, arrays[i].bytes);
		free_array(array);
	}
}

void case_cuArrayDestroy(void)
{
	case_cuArrayCreate_v2();
}

void case_cuMipmappedArrayCreate(void)
{
	static const struct {
		CUDA_ARRAY3D_DESCRIPTOR descriptor;
		unsigned levels;
		uint64_t bytes;
	} mipmaps[] = {
		{{64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, 1, 4096},
		{{64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, 7, 5461},
		{{64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, 100, 5461}, /* there are no more */
		{{64, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 3, (2048 + 512 + 128) * 4},
		{{16, 16, 16, CU_AD_FORMAT_HALF, 2, 0}, 2, (4096 + 512) * 4},
		{{8, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 4, (8 + 4 + 2 + 1) * 4},
		/* layers and faces do not become fewer */
		{{64, 64, 6, CU_AD_FORMAT_UNSIGNED_INT8, 4, CUDA_ARRAY3D_CUBEMAP},
		 2,
		 (4096 + 1024) * 6 * 4},
		{{16, 0, 5, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED},
		 9,
		 (16 + 8 + 4 + 2 + 1) * 5},
		{{8, 8, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0}, 4, (4 + 1 + 1 + 1) * 8},
	};
	for (size_t i = 0; i < sizeof mipmaps / sizeof *mipmaps; i++) {
		CUmipmappedArray array;
		CALL(call_cuMipmappedArrayCreate(&array, &mipmaps[i].descriptor,
						 mipmaps[i].levels));
		expect_array(array, mipmaps[i].bytes);
		CALL(call_cuMipmappedArrayDestroy(array));
		expect_free("array", (uintptr_t)array);
	}
}

void case_cuMipmappedArrayDestroy(void)
{
	case_cuMipmappedArrayCreate();
}

/* Parts of a sparse array: of a level, whose bytes are not told, and of what is behind the levels.
 */
#define MAP_ARRAY(twin)                                                                    \
	void case_cuMemMapArrayAsync##twin(void)                                           \
	{                                                                                  \
		CUarray array;                                                             \
		CUDA_ARRAY3D_DESCRIPTOR descriptor = {                                     \
			1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE};        \
		CUmemGenericAllocationHandle handle = create_handle(0, 2 * MIB);           \
		CALL(call_cuArray3DCreate_v2(&array, &descriptor));                        \
		expect_array(array, 0);                                                    \
		CUarrayMapInfo parts[] = {                                                 \
			{.resourceType = CU_RESOURCE_TYPE_ARRAY,                           \
			 .resource.array = array,                                          \
			 .subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL, \
			 .memOperationType = CU_MEM_OPERATION_TYPE_MAP,                    \
			 .memHandle.memHandle = handle},                                   \
			{.resourceType = CU_RESOURCE_TYPE_ARRAY,                           \
			 .resource.array = array,                                          \
			 .subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL,      \
			 .subresource.miptail.size = 65536,                                \
			 .memOperationType = CU_MEM_OPERATION_TYPE_UNMAP},                 \
		};                                                                         \
		CALL(call_cuMemMapArrayAsync##twin(parts, 2, stream));                     \
		EXPECT(.what = "map", .space = "array", .device = NO_DEVICE,               \
		       .address = (uintptr_t)array, .name = "handle", .value = handle);    \
		EXPECT(.what = "unmap", .space = "array", .device = NO_DEVICE,             \
		       .address = (uintptr_t)array, .bytes = 65536);                       \
		free_array(array);                                                         \
		release_handle(handle);                                                    \
	}
MAP_ARRAY()
MAP_ARRAY(_ptsz)

#endif
