/* How many bytes the elements of an array take: CUDA is asked for elements, never for bytes. */
#ifndef MT_HOOKS_ARRAY_BYTES_H
#define MT_HOOKS_ARRAY_BYTES_H

#include <cuda.h>
#include <driver_types.h>
#include <stddef.h>
#include <stdint.h>

struct array_shape {
	size_t width, height, depth; /* elements; 0 counts as 1; of layers and faces depth is their number */
	unsigned flags;              /* CUDA_ARRAY3D_*, cudaArray*: the same numbers */
	unsigned bits;               /* of an element, or of a whole block of a compressed format; 0 unknown */
	unsigned block;              /* elements that a compressed block has in width and height, else 1 */
};

struct array_shape array_shape_of_driver(const CUDA_ARRAY3D_DESCRIPTOR *);
struct array_shape array_shape_of_runtime(const struct cudaChannelFormatDesc *, struct cudaExtent, unsigned flags);

/* All mipmap levels together, at most as many as the shape has; `levels` 1 for a plain array. 0 for a sparse array and
 * one with deferred mapping: memory is mapped into them later. UINT64_MAX when there is no such number. */
uint64_t array_bytes(const struct array_shape *, unsigned levels);

#endif
