/*
 * The stand-in for libcublasLt: descriptors keep the attributes they are given, every product has
 * exactly one algorithm, and that algorithm needs no workspace.
 *
 * Owns the descriptors. Never refuses a product for its types or layouts, and never computes one.
 * The workspace that PyTorch passes is PyTorch's own choice and independent of what is said here.
 */
#include "sim_cublas.h"
#include "sim_first_use.h"

#include <stdlib.h>
#include <string.h>

/* An attribute of a descriptor is a scalar, a pointer or a few of them. */
#define ATTRIBUTE_BYTES 64
#define ATTRIBUTE_COUNT 40

struct lt_attribute {
	int name;
	size_t bytes;
	unsigned char value[ATTRIBUTE_BYTES];
};

/* A product, a layout or a preference. */
struct lt_desc {
	int count;
	struct lt_attribute attributes[ATTRIBUTE_COUNT];
};

/* cublasLtMatmulDescAttributes_t and cublasLtMatrixLayoutAttribute_t: what Create fills in. */
enum { PRODUCT_COMPUTE_TYPE = 0, PRODUCT_SCALE_TYPE = 1 };
enum {
	LAYOUT_TYPE = 0,
	LAYOUT_ROWS = 2,
	LAYOUT_COLUMNS = 3,
	LAYOUT_LEADING_DIMENSION = 4,
	LAYOUT_BATCH_COUNT = 5,
};

static struct lt_attribute *find(struct lt_desc *desc, int name)
{
	for (int i = 0; i < desc->count; i++) {
		if (desc->attributes[i].name == name)
			return &desc->attributes[i];
	}
	return NULL;
}

static int set(struct lt_desc *desc, int name, const void *value, size_t bytes)
{
	struct lt_attribute *attribute = find(desc, name);

	if (!value || bytes > ATTRIBUTE_BYTES)
		return CUBLAS_INVALID_VALUE;
	if (!attribute && desc->count == ATTRIBUTE_COUNT)
		return CUBLAS_NOT_SUPPORTED;
	if (!attribute)
		attribute = &desc->attributes[desc->count++];
	attribute->name = name;
	attribute->bytes = bytes;
	memcpy(attribute->value, value, bytes);
	return CUBLAS_SUCCESS;
}

/* An attribute that nobody set reads as zero, which is the documented default of most. */
static int get(struct lt_desc *desc, int name, void *value, size_t bytes, size_t *written)
{
	const struct lt_attribute *attribute = find(desc, name);
	size_t known = attribute ? attribute->bytes : bytes;

	if (written)
		*written = known;
	if (!value)
		return CUBLAS_SUCCESS;
	if (bytes < known)
		return CUBLAS_INVALID_VALUE;
	memset(value, 0, bytes);
	if (attribute)
		memcpy(value, attribute->value, known);
	return CUBLAS_SUCCESS;
}

static int desc_new(struct lt_desc **desc)
{
	*desc = malloc(sizeof(**desc));
	if (!*desc)
		return CUBLAS_ALLOC_FAILED;
	(*desc)->count =
		0; /* the rest is written before it is read: five of these serve a product */
	return CUBLAS_SUCCESS;
}

#define DESCRIPTOR(name)                                                                \
	SIM_API(int, cublasLt##name##Destroy, struct lt_desc *desc)                     \
	{                                                                               \
		free(desc);                                                             \
		return CUBLAS_SUCCESS;                                                  \
	}                                                                               \
	SIM_API(int, cublasLt##name##SetAttribute, struct lt_desc *desc, int attribute, \
		const void *value, size_t bytes)                                        \
	{                                                                               \
		return set(desc, attribute, value, bytes);                              \
	}                                                                               \
	SIM_API(int, cublasLt##name##GetAttribute, struct lt_desc *desc, int attribute, \
		void *value, size_t bytes, size_t *written)                             \
	{                                                                               \
		return get(desc, attribute, value, bytes, written);                     \
	}

DESCRIPTOR(MatmulDesc)
DESCRIPTOR(MatmulPreference)
DESCRIPTOR(MatrixLayout)

SIM_API(int, cublasLtMatmulDescCreate, struct lt_desc **desc, int compute_type, int scale_type)
{
	int status = desc_new(desc);

	if (status == CUBLAS_SUCCESS) {
		set(*desc, PRODUCT_COMPUTE_TYPE, &compute_type, sizeof(compute_type));
		set(*desc, PRODUCT_SCALE_TYPE, &scale_type, sizeof(scale_type));
	}
	return status;
}

SIM_API(int, cublasLtMatmulPreferenceCreate, struct lt_desc **desc)
{
	return desc_new(desc);
}

SIM_API(int, cublasLtMatrixLayoutCreate, struct lt_desc **desc, int type, uint64_t rows,
	uint64_t columns, int64_t leading_dimension)
{
	const int one_matrix = 1;
	int status = desc_new(desc);

	if (status == CUBLAS_SUCCESS) {
		set(*desc, LAYOUT_TYPE, &type, sizeof(type));
		set(*desc, LAYOUT_ROWS, &rows, sizeof(rows));
		set(*desc, LAYOUT_COLUMNS, &columns, sizeof(columns));
		set(*desc, LAYOUT_LEADING_DIMENSION, &leading_dimension, sizeof(leading_dimension));
		set(*desc, LAYOUT_BATCH_COUNT, &one_matrix, sizeof(one_matrix));
	}
	return status;
}

/* --- handle --- */

SIM_API(int, cublasLtCreate, void **handle)
{
	*handle = malloc(1); /* nothing is kept in it; it only has to be an address of its own */
	return *handle ? CUBLAS_SUCCESS : CUBLAS_ALLOC_FAILED;
}

SIM_API(int, cublasLtDestroy, void *handle)
{
	free(handle);
	return CUBLAS_SUCCESS;
}

SIM_API(size_t, cublasLtGetVersion, void)
{
	return CUBLAS_VERSION_NUMBER;
}

SIM_API(size_t, cublasLtGetCudartVersion, void)
{
	return SIM_CUDA_MAJOR * 1000;
}

SIM_API(int, cublasLtGetProperty, int part, int *value)
{
	return cublas_property(part, value);
}

/* --- the one algorithm --- */

/* cublasLtMatmulAlgo_t: 64 bytes, opaque to callers. We keep its settings as 4-byte words. */
struct lt_algorithm {
	uint32_t settings[16];
};

enum { ALGORITHM_ID = 0 };

/* cublasLtMatmulHeuristicResult_t, 96 bytes */
struct lt_choice {
	struct lt_algorithm algorithm;
	size_t workspace_bytes;
	int status;
	float waves;
	int reserved[4];
};

SIM_API(int, cublasLtMatmulAlgoGetHeuristic, void *handle, const struct lt_desc *product,
	const struct lt_desc *a, const struct lt_desc *b, const struct lt_desc *c,
	const struct lt_desc *d, const struct lt_desc *preference, int wanted,
	struct lt_choice *choices, int *count)
{
	_Static_assert(sizeof(*choices) == 96, "the layout that callers were compiled with");
	if (wanted < 1)
		return CUBLAS_INVALID_VALUE;
	memset(choices, 0, sizeof(*choices));
	*count = 1;
	return CUBLAS_SUCCESS;
}

SIM_API(int, cublasLtMatmulAlgoInit, void *handle, int compute_type, int scale_type, int a_type,
	int b_type, int c_type, int d_type, int id, struct lt_algorithm *algorithm)
{
	memset(algorithm, 0, sizeof(*algorithm));
	algorithm->settings[ALGORITHM_ID] = (uint32_t)id;
	return CUBLAS_SUCCESS;
}

SIM_API(int, cublasLtMatmulAlgoCheck, void *handle, const struct lt_desc *product,
	const struct lt_desc *a, const struct lt_desc *b, const struct lt_desc *c,
	const struct lt_desc *d, const struct lt_algorithm *algorithm, struct lt_choice *choice)
{
	const struct lt_choice checked = {.algorithm = *algorithm}; /* may lie inside *choice */

	*choice = checked;
	return CUBLAS_SUCCESS;
}

/* A setting is an integer of 2 or 4 bytes. */
static int is_setting(int name, size_t bytes)
{
	return name >= 0 && name < 16 && bytes <= sizeof(uint32_t);
}

SIM_API(int, cublasLtMatmulAlgoConfigSetAttribute, struct lt_algorithm *algorithm, int name,
	const void *value, size_t bytes)
{
	if (!is_setting(name, bytes))
		return CUBLAS_INVALID_VALUE;
	memcpy(&algorithm->settings[name], value, bytes);
	return CUBLAS_SUCCESS;
}

SIM_API(int, cublasLtMatmulAlgoConfigGetAttribute, const struct lt_algorithm *algorithm, int name,
	void *value, size_t bytes, size_t *written)
{
	if (!is_setting(name, bytes))
		return CUBLAS_INVALID_VALUE;
	if (value)
		memcpy(value, &algorithm->settings[name], bytes);
	if (written)
		*written = bytes;
	return CUBLAS_SUCCESS;
}

/* PyTorch makes no handle of its own for it: it uses cuBLAS's. The parameters are as in SIM_ACCEPT. */
SIM_API(int, cublasLtMatmul, void)
{
	return sim_first_use(SIM_CODE_cublaslt) != 0 ? CUBLAS_ALLOC_FAILED : CUBLAS_SUCCESS;
}
