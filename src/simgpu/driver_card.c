/*
 * The card that is simulated, and what it answers when its attributes are asked.  Owns the chosen
 * card; which cards there are is in sim_card.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

#define KIB                1024
#define DEFAULT_CAPABILITY 90

static struct sim_card chosen;

static int capability_from_environment(int fallback)
{
	const char *text = getenv("SIMGPU_CAPABILITY");
	unsigned major, minor;
	char rest;

	if (text == NULL || *text == '\0')
		return fallback;
	if (sscanf(text, "%2u.%1u%c", &major, &minor, &rest) == 2)
		return (int)(10 * major + minor);
	sim_warn("SIMGPU_CAPABILITY=%s is not a capability like 9.0", text);
	return fallback;
}

static bool card_of_setting(void)
{
	const char *setting = getenv("SIMGPU_CARD");
	char why[160];

	if (setting == NULL || *setting == '\0')
		return false;
	if (sim_card_get(&chosen, setting, why, sizeof(why)) == 0)
		return true;
	sim_warn("SIMGPU_CARD=%s: %s", setting, why);
	return false;
}

const struct sim_card *card_from_environment(void)
{
	if (card_of_setting())
		chosen.capability = capability_from_environment(chosen.capability);
	else
		sim_card_of_capability(&chosen, capability_from_environment(DEFAULT_CAPABILITY));
	return &chosen;
}

int card_attribute(const struct sim_card *card, CUdevice_attribute attribute, int place)
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
		ANSWER(PCI_BUS_ID, place + 1)
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
