/* Owns the table of element formats and the arithmetic of levels and layers. The figure is what the elements take, as
 * for any other allocation what was asked for: how the driver pads and tiles them it does not say. */
#include "hooks/array_bytes.h"

#include <stdbool.h>

#define NO_MEMORY_YET (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)

/* Formats that say what a whole element takes, all channels together; of planar ones with fewer colours than pixels
 * the mean. Compressed ones (0x91 to 0x9e) come in blocks of 4 by 4. */
static unsigned whole_bits(unsigned format)
{
	switch (format) {
	case CU_AD_FORMAT_UNORM_INT8X1:
	case CU_AD_FORMAT_SNORM_INT8X1:
		return 8;
	case CU_AD_FORMAT_NV12:
		return 12;
	case CU_AD_FORMAT_UNORM_INT8X2:
	case CU_AD_FORMAT_SNORM_INT8X2:
	case CU_AD_FORMAT_UNORM_INT16X1:
	case CU_AD_FORMAT_SNORM_INT16X1:
	case CU_AD_FORMAT_NV16:
	case CU_AD_FORMAT_YUY2:
		return 16;
	case CU_AD_FORMAT_P010:
	case CU_AD_FORMAT_P016:
	case CU_AD_FORMAT_Y444_PLANAR8:
	case CU_AD_FORMAT_YUV444_8bit_SemiPlanar:
		return 24;
	case CU_AD_FORMAT_UNORM_INT8X4:
	case CU_AD_FORMAT_SNORM_INT8X4:
	case CU_AD_FORMAT_UNORM_INT16X2:
	case CU_AD_FORMAT_SNORM_INT16X2:
	case CU_AD_FORMAT_P210:
	case CU_AD_FORMAT_P216:
	case CU_AD_FORMAT_Y210:
	case CU_AD_FORMAT_Y216:
	case CU_AD_FORMAT_AYUV:
	case CU_AD_FORMAT_Y410:
	case CU_AD_FORMAT_UNORM_INT_101010_2:
		return 32;
	case CU_AD_FORMAT_Y444_PLANAR10:
	case CU_AD_FORMAT_YUV444_16bit_SemiPlanar:
		return 48;
	case CU_AD_FORMAT_UNORM_INT16X4:
	case CU_AD_FORMAT_SNORM_INT16X4:
	case CU_AD_FORMAT_Y416:
		return 64;
	default:
		return 0;
	}
}

static unsigned channel_bits(unsigned format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 8;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 16;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 32;
	default:
		return 0;
	}
}

static bool is_compressed(unsigned format)
{
	return format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB;
}

static unsigned block_bits(unsigned format)
{
	bool is_half = format == CU_AD_FORMAT_BC1_UNORM || format == CU_AD_FORMAT_BC1_UNORM_SRGB ||
		       format == CU_AD_FORMAT_BC4_UNORM || format == CU_AD_FORMAT_BC4_SNORM;
	return is_half ? 64 : 128;
}

struct array_shape array_shape_of_driver(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	unsigned format = (unsigned)descriptor->Format;
	struct array_shape shape = { descriptor->Width, descriptor->Height, descriptor->Depth, descriptor->Flags,
				     channel_bits(format) * descriptor->NumChannels, 1 };
	if (is_compressed(format)) {
		shape.bits = block_bits(format);
		shape.block = 4;
	} else if (!shape.bits) {
		shape.bits = whole_bits(format);
	}
	return shape;
}

/* The kinds of compressed formats stand in the driver's order. */
static unsigned compressed_format(int kind)
{
	bool is_one = kind >= cudaChannelFormatKindUnsignedBlockCompressed1 &&
		      kind <= cudaChannelFormatKindUnsignedBlockCompressed7SRGB;
	return is_one ? (unsigned)(CU_AD_FORMAT_BC1_UNORM + kind - cudaChannelFormatKindUnsignedBlockCompressed1) : 0;
}

struct array_shape array_shape_of_runtime(const struct cudaChannelFormatDesc *channels, struct cudaExtent extent,
					  unsigned flags)
{
	int bits = channels->x + channels->y + channels->z + channels->w;
	struct array_shape shape = { extent.width, extent.height, extent.depth, flags, bits > 0 ? (unsigned)bits : 0, 1 };
	unsigned compressed = compressed_format((int)channels->f);
	if (compressed) {
		shape.bits = block_bits(compressed);
		shape.block = 4;
	} else if (channels->f == cudaChannelFormatKindNV12) {
		shape.bits = whole_bits(CU_AD_FORMAT_NV12);
	}
	return shape;
}

static size_t halved(size_t extent, unsigned level)
{
	size_t there = level < 64 ? extent >> level : 0;
	return there ? there : 1;
}

static bool has_layers(const struct array_shape *shape)
{
	return shape->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
}

static uint64_t level_bytes(const struct array_shape *shape, unsigned level)
{
	size_t width = halved(shape->width, level), height = halved(shape->height, level);
	size_t depth = has_layers(shape) ? halved(shape->depth, 0) : halved(shape->depth, level);
	uint64_t count;
	width = width / shape->block + (width % shape->block != 0);
	height = height / shape->block + (height % shape->block != 0);
	if (__builtin_mul_overflow(width, height, &count) || __builtin_mul_overflow(count, depth, &count) ||
	    __builtin_mul_overflow(count, (uint64_t)shape->bits, &count))
		return UINT64_MAX;
	return count / 8 + (count % 8 != 0);
}

static bool is_last_level(const struct array_shape *shape, unsigned level)
{
	size_t depth = has_layers(shape) ? 1 : shape->depth;
	return halved(shape->width, level) == 1 && halved(shape->height, level) == 1 && halved(depth, level) == 1;
}

uint64_t array_bytes(const struct array_shape *shape, unsigned levels)
{
	uint64_t bytes = 0;
	if (shape->flags & NO_MEMORY_YET)
		return 0;
	for (unsigned level = 0; level < levels; level++) {
		if (__builtin_add_overflow(bytes, level_bytes(shape, level), &bytes))
			return UINT64_MAX;
		if (is_last_level(shape, level))
			break;
	}
	return bytes;
}
