/* The card in this machine, as its driver tells of it. Owns the only contact of the tool with CUDA,
 * by dlopen. Must never create a context: asking takes no memory of the GPU. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/card.h"
#include "cli/output.h"

struct driver {
	CUresult (*init)(unsigned flags);
	CUresult (*get)(CUdevice *, int ordinal);
	CUresult (*get_name)(char *name, int bytes, CUdevice);
	CUresult (*get_total)(size_t *bytes, CUdevice);
	CUresult (*get_attribute)(int *value, CUdevice_attribute, CUdevice);
};

static bool open_driver(struct driver *driver)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return false;
	*(void **)&driver->init = dlsym(library, "cuInit");
	*(void **)&driver->get = dlsym(library, "cuDeviceGet");
	*(void **)&driver->get_name = dlsym(library, "cuDeviceGetName");
	*(void **)&driver->get_total = dlsym(library, "cuDeviceTotalMem_v2");
	*(void **)&driver->get_attribute = dlsym(library, "cuDeviceGetAttribute");
	return driver->init && driver->get && driver->get_name && driver->get_total &&
	       driver->get_attribute;
}

static int ask(const struct driver *driver, CUdevice device, CUdevice_attribute attribute)
{
	int value = 0;
	return driver->get_attribute(&value, attribute, device) ? 0 : value;
}

/* What a context takes no attribute tells: as on this card's kin. */
static void take_context_of_kin(struct sim_card *card)
{
	struct sim_card kin;
	if (sim_card_find(&kin, card->title)) {
		card->context_bytes = kin.context_bytes;
		card->context_spread_bytes = kin.context_spread_bytes;
		memcpy(card->context_source, kin.context_source, sizeof card->context_source);
		return;
	}
	card->context_spread_bytes = card->context_bytes / 2;
	for (size_t i = 0; sim_card_at(&kin, i); i++)
		if (kin.capability == card->capability) {
			card->context_bytes = kin.context_bytes;
			card->context_spread_bytes = 2 * kin.context_spread_bytes;
		}
}

static void read_card(struct sim_card *card, const struct driver *driver, CUdevice device)
{
	int major = ask(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	int minor = ask(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	char name[sizeof card->title] = "";
	sim_card_of_capability(card, 10 * major + minor);
	driver->get_name(name, sizeof name - 1, device);
	bool has_maker = !strncmp(name, "NVIDIA ", 7);
	snprintf(card->title, sizeof card->title, "%s", name + (has_maker ? 7 : 0));
	snprintf(card->name, sizeof card->name, "%s", CARD_LIKE_HERE);
	driver->get_total(&card->memory_bytes, device);
#define ASK(member, attribute)                                                       \
	do {                                                                         \
		int value = ask(driver, device, CU_DEVICE_ATTRIBUTE_##attribute);    \
		card->member = value ? value : card->member;                         \
	} while (0)
	ASK(multiprocessor_count, MULTIPROCESSOR_COUNT);
	ASK(threads_per_multiprocessor, MAX_THREADS_PER_MULTIPROCESSOR);
	ASK(shared_per_block_bytes, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	ASK(shared_per_multiprocessor_bytes, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
	ASK(l2_bytes, L2_CACHE_SIZE);
#undef ASK
	take_context_of_kin(card);
}

bool card_read_here(struct sim_card *card)
{
	struct driver driver;
	CUdevice device;
	if (!open_driver(&driver)) {
		tell("there is no NVIDIA driver in this machine (no libcuda.so.1): name a card instead; see: memtrace cards");
		return false;
	}
	CUresult error = driver.init(0);
	if (error || (error = driver.get(&device, 0))) {
		tell("the NVIDIA driver of this machine shows no GPU (CUDA error %d): name a card instead; see: memtrace cards",
		     (int)error);
		return false;
	}
	read_card(card, &driver, device);
	return true;
}
