/* Trainings that are nothing but their allocations, with a cache like a framework's: on the driver API.
 *
 *   training MODEL BATCH
 *
 * MODEL: linear (weights and BATCH activations), plateau (an optimizer step that hides small
 * batches), jagged (odd batches need more), cached (keeps what it frees, and gives it back when
 * memory runs out: a retry), deaf (does not know of BATCH), broken (fails, not for want of memory),
 * reading (copies 4 bytes to the host in the three ways that the driver has).
 * Exit status: 1 out of memory, 3 broken. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB          ((size_t)1 << 20)
#define CACHED_MAX   64
#define WEIGHTS_MIB  40

static CUdeviceptr cache[CACHED_MAX];
static unsigned cached_count;

static void give_back(void)
{
	while (cached_count)
		cuMemFree(cache[--cached_count]);
}

static CUdeviceptr take(size_t mib)
{
	CUdeviceptr address;
	if (!cuMemAlloc(&address, mib * MIB))
		return address;
	give_back();
	if (!cuMemAlloc(&address, mib * MIB))
		return address;
	fprintf(stderr, "out of memory\n");
	exit(1);
}

static void keep(CUdeviceptr address)
{
	if (cached_count < CACHED_MAX)
		cache[cached_count++] = address;
	else
		cuMemFree(address);
}

static size_t activation_mib(const char *model, size_t batch)
{
	if (!strcmp(model, "jagged"))
		return 8 * batch + (batch % 2 ? 20 : 0) + (batch % 5 == 3 ? 30 : 0);
	return 10 * batch;
}

static void train(const char *model, size_t batch)
{
	CUdeviceptr activations = take(activation_mib(model, batch));
	if (!strcmp(model, "cached"))
		for (unsigned i = 0; i < 4; i++)
			keep(take(batch));
	CUdeviceptr gradients = take(WEIGHTS_MIB);
	cuMemFree(activations);
	CUdeviceptr step = take(!strcmp(model, "plateau") ? 180 : 20);
	cuMemFree(step);
	cuMemFree(gradients);
}

static void read_back(CUdeviceptr from)
{
	unsigned to = 0;
	CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .srcDevice = from,
			      .dstMemoryType = CU_MEMORYTYPE_HOST,
			      .dstHost = &to,
			      .WidthInBytes = sizeof to,
			      .Height = 1};
	if (cuMemcpyDtoH(&to, from, sizeof to) || cuMemcpyDtoHAsync(&to, from, sizeof to, NULL) ||
	    cuMemcpy2D(&rows))
		exit(4);
}

int main(int count, char **words)
{
	CUcontext context;
	CUdevice device;
	if (count < 3 || cuInit(0) || cuDeviceGet(&device, 0) ||
	    cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context))
		return 4;
	if (!strcmp(words[1], "broken"))
		return fprintf(stderr, "no such data set\n"), 3;
	size_t batch = !strcmp(words[1], "deaf") ? 8 : strtoul(words[2], NULL, 10);
	CUdeviceptr weights = take(WEIGHTS_MIB);
	size_t free_bytes, total_bytes;
	cuMemGetInfo(&free_bytes, &total_bytes);
	for (unsigned step = 0; step < 3; step++)
		train(words[1], batch);
	if (!strcmp(words[1], "reading"))
		read_back(weights);
	return 0;
}
