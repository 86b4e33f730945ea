/*
 * What a card of some compute capability answers when its attributes are asked: the published
 * figures of one data-centre or desktop card of each generation.  Owns no state but the chosen row.
 * Memory is not here: it is a setting of its own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

#define KIB 1024
#define MIB (1024 * 1024)

/* Oldest first. */
static const struct driver_card cards[] = {
	{60, 56, 2048, 48 * KIB, 64 * KIB, 4096, 4 * MIB, 1328500, 715000},
	{61, 28, 2048, 48 * KIB, 96 * KIB, 352, 2816 * KIB, 1582000, 5505000},
	{70, 80, 2048, 96 * KIB, 96 * KIB, 4096, 6 * MIB, 1530000, 877000},
	{75, 40, 1024, 64 * KIB, 64 * KIB, 256, 4 * MIB, 1590000, 5001000},
	{80, 108, 2048, 163 * KIB, 164 * KIB, 5120, 40 * MIB, 1410000, 1593000},
	{86, 84, 1536, 99 * KIB, 100 * KIB, 384, 6 * MIB, 1800000, 8001000},
	{89, 128, 1536, 99 * KIB, 100 * KIB, 384, 72 * MIB, 2520000, 10501000},
	{90, 132, 2048, 227 * KIB, 228 * KIB, 5120, 50 * MIB, 1980000, 2619000},
	{100, 148, 2048, 227 * KIB, 228 * KIB, 8192, 126 * MIB, 1965000, 3996000},
	{120, 170, 1536, 99 * KIB, 100 * KIB, 512, 96 * MIB, 2407000, 14001000},
};
#define CARD_COUNT         (sizeof(cards) / sizeof(cards[0]))
#define DEFAULT_CAPABILITY 90

static struct driver_card chosen;

static int capability_from_environment(void)
{
	const char *text = getenv("SIMGPU_CAPABILITY");
	unsigned major, minor;
	char rest;

	if (text == NULL || *text == '\0')
		return DEFAULT_CAPABILITY;
	if (sscanf(text, "%2u.%1u%c", &major, &minor, &rest) == 2)
		return (int)(10 * major + minor);
	sim_warn("SIMGPU_CAPABILITY=%s is not a capability like 9.0", text);
	return DEFAULT_CAPABILITY;
}

const struct driver_card *card_from_environment(void)
{
	int capability = capability_from_environment();
	size_t i = CARD_COUNT - 1;

	while (i > 0 && cards[i].capability > capability)
		i--;
	chosen = cards[i];
	chosen.capability = capability;
	return &chosen;
}

int card_attribute(const struct driver_card *card, CUdevice_attribute attribute, CUdevice device)
{
	switch ((int)attribute) {
#define ANSWER(name, value)              \
	case CU_DEVICE_ATTRIBUTE_##name: \
		return (value);
		ANSWER(COMPUTE_CAPABILITY_MAJOR, card->capability / 10)
		ANSWER(COMPUTE_CAPABILITY_MINOR, card->capability % 10)
		ANSWER(MULTIPROCESSOR_COUNT, card->multiprocessor_count)
		ANSWER(MAX_THREADS_PER_MULTIPROCESSOR, card->threads_per_multiprocessor)
		ANSWER(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, card->shared_per_block_bytes)
		ANSWER(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, card->shared_per_multiprocessor_bytes)
		ANSWER(GLOBAL_MEMORY_BUS_WIDTH, card->bus_width_bits)
		ANSWER(L2_CACHE_SIZE, card->l2_bytes)
		ANSWER(MAX_PERSISTING_L2_CACHE_SIZE, card->l2_bytes / 8 * 5)
		ANSWER(CLOCK_RATE, card->clock_khz)
		ANSWER(MEMORY_CLOCK_RATE, card->memory_clock_khz)
		ANSWER(PCI_BUS_ID, device + 1)
		ANSWER(PCI_DEVICE_ID, 0)
		ANSWER(PCI_DOMAIN_ID, 0)
		ANSWER(WARP_SIZE, 32)
		ANSWER(MAX_THREADS_PER_BLOCK, 1024)
		ANSWER(MAX_BLOCK_DIM_X, 1024)
		ANSWER(MAX_BLOCK_DIM_Y, 1024)
		ANSWER(MAX_BLOCK_DIM_Z, 64)
		ANSWER(MAX_GRID_DIM_X, 2147483647)
		ANSWER(MAX_GRID_DIM_Y, 65535)
		ANSWER(MAX_GRID_DIM_Z, 65535)
		ANSWER(MAX_BLOCKS_PER_MULTIPROCESSOR, card->threads_per_multiprocessor / 64)
		ANSWER(MAX_SHARED_MEMORY_PER_BLOCK, 48 * KIB)
		ANSWER(RESERVED_SHARED_MEMORY_PER_BLOCK, KIB)
		ANSWER(MAX_REGISTERS_PER_BLOCK, 65536)
		ANSWER(MAX_REGISTERS_PER_MULTIPROCESSOR, 65536)
		ANSWER(TOTAL_CONSTANT_MEMORY, 64 * KIB)
		ANSWER(MAX_PITCH, 2147483647)
		ANSWER(TEXTURE_ALIGNMENT, 512)
		ANSWER(TEXTURE_PITCH_ALIGNMENT, 32)
		ANSWER(ASYNC_ENGINE_COUNT, 3)
		ANSWER(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, card->capability % 10 ? 64 : 2)
		ANSWER(UNIFIED_ADDRESSING, 1)
		ANSWER(MANAGED_MEMORY, 1)
		ANSWER(CONCURRENT_MANAGED_ACCESS, 1)
		ANSWER(CONCURRENT_KERNELS, 1)
		ANSWER(COOPERATIVE_LAUNCH, 1)
		ANSWER(CAN_MAP_HOST_MEMORY, 1)
		ANSWER(GPU_OVERLAP, 1)
		ANSWER(ECC_ENABLED, 1)
		ANSWER(STREAM_PRIORITIES_SUPPORTED, 1)
		ANSWER(GLOBAL_L1_CACHE_SUPPORTED, 1)
		ANSWER(LOCAL_L1_CACHE_SUPPORTED, 1)
		ANSWER(COMPUTE_PREEMPTION_SUPPORTED, 1)
		ANSWER(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1)
		ANSWER(HOST_REGISTER_SUPPORTED, 1)
		ANSWER(READ_ONLY_HOST_REGISTER_SUPPORTED, 1)
		ANSWER(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1)
		ANSWER(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1)
		ANSWER(MEMORY_POOLS_SUPPORTED, 1)
		ANSWER(MEMPOOL_SUPPORTED_HANDLE_TYPES, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		ANSWER(CAN_USE_64_BIT_STREAM_MEM_OPS, 1)
		ANSWER(CAN_USE_STREAM_WAIT_VALUE_NOR, 1)
		ANSWER(CLUSTER_LAUNCH, card->capability >= 90)
		ANSWER(TENSOR_MAP_ACCESS_SUPPORTED, card->capability >= 90)
#undef ANSWER
	default:
		return 0; /* a feature that the simulated card lacks */
	}
}
