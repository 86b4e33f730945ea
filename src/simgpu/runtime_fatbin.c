/*
 * For which GPUs the registered code was built.  Owns a list of images with their architectures,
 * which are read from the headers (these stand there uncompressed; the code itself is never looked
 * at), and for each kernel the image that it is in: PyTorch has 10,000s of kernels.
 */
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS_MAX 24

#define WRAPPER_MAGIC 0x466243b1U
#define IMAGE_MAGIC   0xba55ed50U

struct wrapper { /* what __cudaRegisterFatBinary() is given */
	uint32_t magic, version;
	const void *image;
};

struct image {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t bytes; /* of the entries that follow */
};

struct image_entry {
	uint16_t kind; /* 1 PTX, 2 code */
	uint16_t version;
	uint32_t header_bytes;
	uint64_t bytes;
	uint32_t unused[3];
	uint32_t architecture; /* 86 is 8.6 */
};

enum { KIND_PTX = 1, KIND_CODE = 2 };

struct fatbin {
	unsigned count;
	struct target {
		uint16_t kind, architecture;
	} targets[TARGETS_MAX];
};

static struct kernel {
	const void *host; /* NULL: free */
	const struct fatbin *fatbin;
} *kernels; /* open addressing, at most half full */
static size_t kernel_count, kernel_room;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

/* ---- images ---- */

static void target_add(struct fatbin *fatbin, struct target target)
{
	for (unsigned i = 0; i < fatbin->count; i++) {
		if (memcmp(&fatbin->targets[i], &target, sizeof(target)) == 0)
			return;
	}
	if (fatbin->count < TARGETS_MAX)
		fatbin->targets[fatbin->count++] = target;
}

static void read_image(struct fatbin *fatbin, const struct image *image)
{
	const char *at = (const char *)image + image->header_bytes, *end = at + image->bytes;

	while ((size_t)(end - at) >= sizeof(struct image_entry)) {
		const struct image_entry *entry = (const void *)at;
		if (entry->header_bytes < sizeof(*entry) ||
		    entry->bytes > (size_t)(end - at) - entry->header_bytes)
			return;
		if (entry->kind == KIND_PTX || entry->kind == KIND_CODE)
			target_add(fatbin, (struct target){entry->kind,
							   (uint16_t)entry->architecture});
		at += entry->header_bytes + entry->bytes;
	}
}

struct fatbin *fatbin_note(const void *registered)
{
	const struct wrapper *wrapper = registered;
	struct fatbin *fatbin = calloc(1, sizeof(*fatbin));

	if (fatbin == NULL || wrapper == NULL || wrapper->magic != WRAPPER_MAGIC)
		return fatbin;
	const struct image *image = wrapper->image;
	if (image != NULL && image->magic == IMAGE_MAGIC)
		read_image(fatbin, image);
	return fatbin;
}

/* ---- kernels ---- */

static struct kernel *kernel_place(const void *host)
{
	size_t i = ((uintptr_t)host >> 4) * 0x9e3779b97f4a7c15U >> 20;

	while (kernels[i &= kernel_room - 1].host != NULL && kernels[i].host != host)
		i++;
	return &kernels[i];
}

static bool make_room(void)
{
	struct kernel *before = kernels;
	size_t count = kernel_room;

	if (2 * (kernel_count + 1) <= kernel_room)
		return true;
	kernels = calloc(count > 0 ? 2 * count : 1 << 16, sizeof(*kernels));
	if (kernels == NULL) {
		kernels = before;
		return false;
	}
	kernel_room = count > 0 ? 2 * count : 1 << 16;
	for (size_t i = 0; i < count; i++) {
		if (before[i].host != NULL)
			*kernel_place(before[i].host) = before[i];
	}
	free(before);
	return true;
}

/* The address may have been that of a kernel of a library that was closed. */
void fatbin_note_kernel(const struct fatbin *fatbin, const void *host)
{
	pthread_rwlock_wrlock(&lock);
	if (host != NULL && make_room()) {
		struct kernel *kernel = kernel_place(host);
		kernel_count += kernel->host == NULL;
		*kernel = (struct kernel){host, fatbin};
	}
	pthread_rwlock_unlock(&lock);
}

static const struct fatbin *fatbin_of(const void *host)
{
	const struct fatbin *fatbin = NULL;

	pthread_rwlock_rdlock(&lock);
	if (kernel_room > 0)
		fatbin = kernel_place(host)->fatbin;
	pthread_rwlock_unlock(&lock);
	return fatbin;
}

/* Code runs on GPUs of its own generation that are not older than it; PTX on all that are not. */
static bool runs(const struct target *target, int capability)
{
	return target->architecture <= capability &&
	       (target->kind == KIND_PTX || target->architecture / 10 == capability / 10);
}

enum fatbin_answer fatbin_choose(const void *kernel, int capability, struct fatbin_choice *choice)
{
	const struct fatbin *fatbin = fatbin_of(kernel);
	unsigned count = fatbin != NULL ? fatbin->count : 0;

	*choice = (struct fatbin_choice){0, 0};
	for (unsigned i = 0; i < count; i++) {
		const struct target *target = &fatbin->targets[i];
		int *best = target->kind == KIND_PTX ? &choice->ptx : &choice->code;
		if (runs(target, capability) && target->architecture > *best)
			*best = target->architecture;
	}
	if (count == 0)
		return FATBIN_UNKNOWN;
	return choice->code > 0 || choice->ptx > 0 ? FATBIN_FOUND : FATBIN_NONE;
}
